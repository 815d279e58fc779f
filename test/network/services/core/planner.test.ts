/** Compares incremental planning after random changes with a fresh planner for the final state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Service } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import { objectKey } from '../../../../src/api/meta/object.ts';
import { NftTable, ServicePlanner, type ServicePort } from '../../../../src/network/services/core/index.ts';
import type { RefusedAddress } from '../../../../src/network/services/core/services.ts';
import { desiredServicePorts } from './desired.ts';

const options = {
  nodeName: 'n0',
  serviceCidrs: ['172.30.0.0/16'],
  clusterCidrs: ['10.128.0.0/14'],
  reservedPorts: [{ protocol: 'TCP' as const, port: 10_250 }],
};

class Cluster {
  readonly services = new Map<string, Service>();
  readonly slices = new Map<string, EndpointSlice>();
  readonly nodes = new Map<string, Node>();
  hostAddresses: readonly string[] = [];
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Changes a random object in the model and in the planner. */
  change(planner: ServicePlanner): void {
    const kind = this.#random();
    if (kind < 0.4) {
      const service = this.#service();
      const key = objectKey(service);
      if (this.#isTrue(0.25)) {
        this.services.delete(key);
        planner.deleteService(key);
      } else {
        this.services.set(key, service);
        planner.setService(service);
      }
    } else if (kind < 0.8) {
      const slice = this.#slice();
      const key = objectKey(slice);
      if (this.#isTrue(0.25)) {
        this.slices.delete(key);
        planner.deleteSlice(key);
      } else {
        this.slices.set(key, slice);
        planner.setSlice(slice);
      }
    } else if (kind < 0.95) {
      const node = this.#node();
      const name = node.metadata?.name ?? '';
      if (this.#isTrue(0.25)) {
        this.nodes.delete(name);
        planner.deleteNode(name);
      } else {
        this.nodes.set(name, node);
        planner.setNode(node);
      }
    } else {
      this.hostAddresses = ['127.0.0.1', 'fe80::1', this.#of(['10.0.0.1', '10.0.0.2', '192.0.2.1'])];
      planner.setHostAddresses(this.hostAddresses);
    }
  }

  #isTrue(part: number): boolean {
    return this.#random() < part;
  }

  #of<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] ?? assert.fail();
  }

  #service(): Service {
    const index = this.#of([0, 1, 2, 3]);
    const protocol = this.#of(['TCP', 'TCP', 'UDP']);
    const number = this.#of([80, 80, 10_250]);
    return {
      metadata: {
        namespace: 'ns',
        name: `s${index}`,
        creationTimestamp: this.#of(['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z']),
      },
      spec: {
        type: this.#of(['ClusterIP', 'LoadBalancer', 'ExternalName']),
        clusterIP: this.#of([`172.30.0.${index + 1}`, `10.0.0.${index + 1}`, 'None']),
        ports: [{ name: 'a', port: number, protocol, nodePort: this.#of([0, 30_000 + index]) }],
        externalIPs: this.#isTrue(0.6) ? [this.#of(['10.0.0.1', '192.0.2.1', '192.0.2.2'])] : [],
        externalTrafficPolicy: this.#of(['Cluster', 'Local']),
        healthCheckNodePort: this.#of([0, 31_000 + index]),
      },
    };
  }

  #slice(): EndpointSlice {
    const service = this.#of(['s0', 's1', 's2', 's3', 'kubernetes']);
    const namespace = service === 'kubernetes' ? 'default' : 'ns';
    return {
      addressType: 'IPv4',
      // A slice may be reassigned to another service.
      metadata: { namespace, name: `slice${this.#of([0, 1, 2])}`, labels: { 'kubernetes.io/service-name': service } },
      ports: [{ name: 'a', port: this.#of([80, 10_250]), protocol: this.#of(['TCP', 'UDP']) }],
      endpoints: Array.from({ length: this.#of([0, 1, 2]) }, () => ({
        addresses: [this.#of(['10.128.0.2', '10.128.0.3', '10.0.0.1', '10.0.0.2'])],
        nodeName: this.#of(['n0', 'n1']),
        ...(this.#isTrue(0.5) ? { hints: { forZones: [{ name: this.#of(['z1', 'z2']) }] } } : {}),
      })),
    };
  }

  #node(): Node {
    return {
      metadata: {
        name: this.#of(['n0', 'n1']),
        labels: { 'topology.kubernetes.io/zone': this.#of(['z1', 'z2']) },
        annotations: { 'hyperedge.dev/reserved-host-ports': this.#of(['TCP/80', 'UDP/80', '']) },
      },
      status: {
        addresses: [{ type: 'InternalIP', address: this.#of(['10.0.0.1', '10.0.0.2']) }],
        ...(this.#isTrue(0.5) ? { daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } } : {}),
      },
    };
  }
}

const addressesOf = (refused: readonly RefusedAddress[]): string[] =>
  [...new Set(refused.map(({ service, address }) => `${service} ${address}`))].sort();

test('incremental planning leads to the same service ports and health checks as planning from scratch', () => {
  let seed = 4_711;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const cluster = new Cluster(random);
  const planner = new ServicePlanner(options);
  const followed = new Map<string, readonly ServicePort[]>();
  let refusedBefore: string[] = [];
  let forwarded = 0;
  let refusals = 0;
  for (let round = 0; round < 3_000; round++) {
    for (let count = 0; count <= random() * 3; count++) cluster.change(planner);
    const refused: RefusedAddress[] = [];
    do {
      const part = planner.changes(1 + Math.floor(random() * 3));
      for (const [service, ports] of part.changed) followed.set(service, ports);
      refused.push(...part.refused);
    } while (planner.isChanged);
    const fresh = desiredServicePorts({
      ...options,
      services: [...cluster.services.values()],
      slices: [...cluster.slices.values()],
      nodes: [...cluster.nodes.values()],
      hostAddresses: cluster.hostAddresses,
    });
    assert.deepEqual(planner.ports(), fresh.ports, `round ${round}`);
    const byId = (left: ServicePort, right: ServicePort): number => (left.id < right.id ? -1 : 1);
    assert.deepEqual([...followed.values()].flat().sort(byId), fresh.ports, `changes of round ${round}`);
    const sorted = (list: readonly object[]): string[] => list.map((each) => JSON.stringify(each)).sort();
    assert.deepEqual(sorted(planner.healthChecks()), sorted(fresh.healthChecks));
    const now = addressesOf(fresh.refused);
    assert.deepEqual(
      addressesOf(refused),
      now.filter((each) => !refusedBefore.includes(each)),
      `round ${round}`,
    );
    refusedBefore = now;
    forwarded += fresh.ports.length;
    refusals += now.length;
    assert.equal(planner.changes().changed.size, 0);
  }
  assert.ok(forwarded > 1_000 && refusals > 1_000, 'the sequence is of no use');
});

test('a Node status report replans no service, and a changed Node address only services with that address', () => {
  const planner = new ServicePlanner(options);
  for (const index of [1, 2]) {
    const name = `s${index}`;
    planner.setService({
      metadata: { namespace: 'ns', name },
      spec: { clusterIP: `172.30.0.${index}`, ports: [{ name: 'a', port: 80 }] },
    });
    planner.setSlice({
      addressType: 'IPv4',
      metadata: { namespace: 'ns', name, labels: { 'kubernetes.io/service-name': name } },
      ports: [{ name: 'a', port: 10_250 }],
      endpoints: [{ addresses: [`10.0.0.${index}`] }],
    });
  }
  const node = (ready: string): Node => ({
    metadata: { name: 'n7' },
    status: {
      addresses: [{ type: 'InternalIP', address: '10.0.0.2' }],
      conditions: [{ type: 'Ready', status: ready }],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
    },
  });
  const changed = (): string[] => [...planner.changes().changed.keys()];
  assert.deepEqual(changed(), ['ns/s1', 'ns/s2']);
  planner.setNode(node('True'));
  assert.deepEqual(changed(), ['ns/s2']);
  assert.deepEqual(
    planner.ports().map(({ endpoints }) => endpoints.length),
    [1, 0],
  );
  planner.setNode(node('Unknown'));
  assert.deepEqual(changed(), []);
});

test('replans one service without the thousands of services that share its external IP', () => {
  const planner = new ServicePlanner(options);
  const service = (index: number, port = index): Service => ({
    metadata: { namespace: 'ns', name: `s${String(index).padStart(4, '0')}` },
    spec: {
      clusterIP: `172.30.${index >> 8}.${index & 255}`,
      externalIPs: ['192.0.2.1'],
      ports: [{ name: 'a', port: 2000 + port }],
    },
  });
  const changed = (): string[] => [...planner.changes().changed.keys()].sort();
  for (let index = 1; index <= 3000; index++) planner.setService(service(index));
  assert.equal(changed().length, 3000);
  planner.setService(service(3001));
  assert.deepEqual(changed(), ['ns/s3001']);
  planner.setService(service(2, 1));
  assert.deepEqual(changed(), ['ns/s0002']);
  const owned = (key: string): readonly string[] => planner.portsOf(key).flatMap(({ externalIps }) => externalIps);
  assert.deepEqual([owned('ns/s0001'), owned('ns/s0002')], [['192.0.2.1'], []]);
  planner.setService(service(1));
  assert.deepEqual(changed(), ['ns/s0001']);
  planner.deleteService('ns/s0001');
  assert.deepEqual(changed(), ['ns/s0001', 'ns/s0002']);
  assert.deepEqual(owned('ns/s0002'), ['192.0.2.1']);
});

test('plans a service with thousands of ports in short steps, and restarts if the service changes meanwhile', () => {
  const planner = new ServicePlanner(options);
  const service = (count: number): Service => ({
    metadata: { namespace: 'a', name: 'big', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      clusterIP: '172.30.0.9',
      ports: Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1, protocol: 'TCP' })),
    },
  });
  planner.setService(service(30_000));
  const steps = planner.changeSteps();
  let longestMs = 0;
  let count = 0;
  let result = steps.next();
  while (result.done !== true) {
    if (count++ === 100) planner.setService(service(2));
    const beginMs = performance.now();
    result = steps.next();
    longestMs = Math.max(longestMs, performance.now() - beginMs);
  }
  assert.ok(count > 10_000 && longestMs < 200, `${count} steps, longest ${longestMs} ms`);
  assert.equal(result.value.changed.get('a/big')?.length, 30_000);
  assert.equal(planner.changes().changed.get('a/big')?.length, 2);
  planner.setService({
    metadata: { namespace: 'a', name: 'addresses' },
    spec: { clusterIP: '172.30.0.8', ports: [{ port: 80 }] },
    status: {
      loadBalancer: {
        ingress: Array.from({ length: 20_000 }, (_, index) => ({ ip: `203.0.${index >> 8}.${index & 255}` })),
      },
    },
  });
  const beginMs = performance.now();
  planner.changes();
  // An implementation that compares each address with all others takes 2 seconds.
  assert.ok(performance.now() - beginMs < 1000, `${performance.now() - beginMs} ms`);
});

test('plans and renders a service with thousands of external addresses in steps', () => {
  const planner = new ServicePlanner(options);
  planner.setService({
    metadata: { namespace: 'a', name: 'external' },
    spec: {
      clusterIP: '172.30.0.7',
      externalIPs: Array.from({ length: 20_000 }, (_, index) => `203.0.${index >> 8}.${index & 255}`),
      ports: [{ port: 80 }],
    },
  });
  planner.setSlice({
    metadata: { namespace: 'a', name: 'external-1', labels: { 'kubernetes.io/service-name': 'external' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.128.0.5'], conditions: { ready: true } }],
    ports: [{ name: '', port: 8080, protocol: 'TCP' }],
  });
  const counted = <T>(steps: Iterator<unknown, T>): readonly [number, T] => {
    for (let count = 1; ; count++) {
      const step = steps.next();
      if (step.done === true) return [count, step.value];
    }
  };
  const [planned, { changed }] = counted(planner.changeSteps());
  const ports = changed.get('a/external') ?? [];
  assert.equal(ports[0]?.externalIps.length, 20_000);
  assert.ok(planned >= 40, `${planned} steps`);
  const table = new NftTable({ table: 'he', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] });
  const [rendered] = counted(table.setSteps('a/external', ports));
  assert.ok(rendered >= 80, `${rendered} steps`);
  assert.match(table.program(), /203\.0\.78\.31 \. tcp \. 80 : goto ext-1/);
});
