import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Service, ServiceSpec } from '../../../../src/api/generated/core/v1.ts';
import { isInPool, parseAddressPool, parseAddressRange } from '../../../../src/base/addresses/address-pool.ts';
import {
  type LoadBalancerInput,
  planLoadBalancers,
} from '../../../../src/controllers/network/service-load-balancer/plan.ts';

interface Wanted {
  readonly spec?: ServiceSpec;
  readonly has?: readonly string[];
  readonly age?: number;
}

const service = (name: string, { spec = {}, has = [], age = 0 }: Wanted = {}): Service => ({
  metadata: { name, namespace: 'default', creationTimestamp: `2026-01-01T00:00:${String(30 - age).padStart(2, '0')}Z` },
  spec: { type: 'LoadBalancer', ipFamilies: ['IPv4'], ports: [{ port: 80 }], ...spec },
  status: { loadBalancer: { ingress: has.map((ip) => ({ ip })) } },
});
const node = (name: string, address: string, ready = 'True', metadata: Node['metadata'] = {}): Node => ({
  metadata: { name, ...metadata },
  status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: ready }] },
});
const plan = (services: Service[], rest: Partial<LoadBalancerInput> & { readonly ranges?: readonly string[] }) => {
  const plans = planLoadBalancers({
    nodes: [],
    slices: () => [],
    ...rest,
    services,
    pool: parseAddressPool(rest.ranges ?? []),
  });
  return Object.fromEntries(
    [...plans].map(([key, { addresses, problem }]) => [key.slice('default/'.length), problem ?? addresses?.join()]),
  );
};

test('parses addresses, networks, and ordered pairs of addresses of one family as ranges', () => {
  assert.deepEqual(parseAddressRange('10.0.0.1'), { family: 4, first: 167772161n, last: 167772161n });
  assert.equal(parseAddressRange('10.0.0.9-10.0.0.1'), undefined);
  assert.equal(parseAddressRange('10.0.0.1-fd00::1'), undefined);
  assert.equal(parseAddressRange('10.0.0.0/33'), undefined);
  const pool = parseAddressPool(['10.0.0.4-10.0.0.6', 'fd00::/126']);
  assert.deepEqual(
    ['10.0.0.3', '10.0.0.4', '10.0.0.6', '10.0.0.7', 'fd00::3', 'fd00::4', 'x'].map((each) => isInPool(pool, each)),
    [false, true, true, false, true, false, false],
  );
});

test('assigns each pool address to one service, and not to a younger service that requests the address', () => {
  const ranges = ['10.0.0.1-10.0.0.3'];
  const services = [
    service('young', { spec: { loadBalancerIP: '10.0.0.2' } }),
    service('old', { has: ['10.0.0.2'], age: 9 }),
    service('asks', { spec: { loadBalancerIP: '10.0.0.3' }, age: 3 }),
    service('any', { age: 2 }),
    service('too-many', { age: 1 }),
    service('outside', { spec: { loadBalancerIP: '10.9.9.9' } }),
    service('foreign', { spec: { loadBalancerClass: 'example.com/other' } }),
    service('internal', { spec: { type: 'ClusterIP' } }),
  ];
  assert.deepEqual(plan(services, { ranges }), {
    old: '10.0.0.2',
    asks: '10.0.0.3',
    any: '10.0.0.1',
    'too-many': 'serviceLoadBalancer.addresses has no free IPv4 address',
    young: '10.0.0.2 is in use by another service',
    outside: '10.9.9.9 is not in serviceLoadBalancer.addresses',
  });
  // The next plan uses the result of the last plan, as in the cluster.
  assert.equal(plan([service('any', { has: ['10.0.0.3'] })], { ranges })['any'], '10.0.0.3');
  assert.equal(plan([service('any', { has: ['10.0.7.3'] })], { ranges })['any'], '10.0.0.1');
});

test('assigns addresses of one family to a PreferDualStack service if the pool has only this family', () => {
  const both = (ipFamilyPolicy: string): Wanted => ({
    spec: { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy } as ServiceSpec,
  });
  assert.equal(
    plan([service('s', both('RequireDualStack'))], { ranges: ['10.0.0.1', 'fd00::1'] })['s'],
    '10.0.0.1,fd00::1',
  );
  assert.equal(plan([service('s', both('PreferDualStack'))], { ranges: ['10.0.0.1'] })['s'], '10.0.0.1');
  assert.match(plan([service('s', both('RequireDualStack'))], { ranges: ['10.0.0.1'] })['s'] ?? '', /no free IPv6/);
});

test('without a pool, services share node addresses by port', () => {
  const reserved = { annotations: { 'hyperedge.dev/reserved-host-ports': 'TCP/8443' } };
  const excluded = { labels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } };
  const nodes = [
    node('a', '10.0.0.2', 'True', reserved),
    node('b', '10.0.0.1'),
    node('down', '10.0.0.3', 'Unknown'),
    node('out', '10.0.0.4', 'True', excluded),
  ];
  const ports = (port: number): Wanted['spec'] => ({ ports: [{ port }] });
  assert.deepEqual(
    plan(
      [
        service('web', { age: 2 }),
        service('tls', { spec: ports(443) ?? {} }),
        service('again'),
        service('own', { spec: ports(8443) ?? {} }),
      ],
      { nodes },
    ),
    {
      web: '10.0.0.1,10.0.0.2',
      tls: '10.0.0.1,10.0.0.2',
      again: 'port TCP/80 is in use by service default/web',
      // A node reserves ports only at its own addresses.
      own: '10.0.0.1',
    },
  );
  assert.equal(
    plan([service('s', { has: ['10.0.0.2'] })], { nodes: [node('a', '10.0.0.2', 'Unknown')] })['s'],
    'no node is ready',
  );
  const local = service('s', { spec: { externalTrafficPolicy: 'Local' } });
  const slices = () => [
    {
      addressType: 'IPv4',
      endpoints: [
        { addresses: ['10.1.0.1'], nodeName: 'b' },
        { addresses: ['10.1.0.2'], nodeName: 'a', conditions: { ready: false } },
      ],
    },
  ];
  assert.equal(plan([local], { nodes, slices })['s'], '10.0.0.1');
  assert.match(plan([local], { nodes })['s'] ?? '', /no ready node has an endpoint/);
});

test('publishes no node address for ports that hosts reserve, and ignores excessive reports of a node', () => {
  const nodes = [node('a', '10.0.0.1')];
  for (const given of [{ port: 22 }, { port: 4789, protocol: 'UDP' }, { port: 111 }, { port: 873 }])
    assert.match(plan([service('s', { spec: { ports: [given] } })], { nodes })['s'] ?? '', /is reserved for the hosts/);
  for (const given of [{ port: 53, protocol: 'UDP' }, { port: 443 }, { port: 1024 }, { port: 4789 }])
    assert.equal(plan([service('s', { spec: { ports: [given] } })], { nodes })['s'], '10.0.0.1');
  // A pool address belongs to the service.
  assert.equal(plan([service('s', { spec: { ports: [{ port: 22 }] } })], { ranges: ['10.9.0.1'] })['s'], '10.9.0.1');
  const everything = Array.from({ length: 60 }, (_, at) => `TCP/${at + 60}`).join();
  const liar = node('liar', '10.0.0.9', 'True', { annotations: { 'hyperedge.dev/reserved-host-ports': everything } });
  assert.equal(plan([service('s')], { nodes: [...nodes, liar] })['s'], '10.0.0.1');
  assert.equal(plan([service('s')], { nodes: [liar] })['s'], 'port TCP/80 is in use by the node');
});

test('does not publish addresses that only the node reports', () => {
  const liar = (type: string, address: string, annotations = {}): Node => ({
    metadata: { name: 'liar', creationTimestamp: '2026-02-01T00:00:00Z', annotations },
    status: { addresses: [{ type, address }], conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const honest = node('a', '10.0.0.1', 'True', { creationTimestamp: '2026-01-01T00:00:00Z' });
  const published = (each: Node) =>
    plan([service('s')], { nodes: [each, honest], clusterRanges: ['10.128.0.0/14', '172.30.0.0/16'] })['s'];
  const approved = { 'hyperedge.dev/approved-addresses': '10.0.0.9,liar' };
  assert.equal(published(liar('ExternalIP', '198.51.100.8')), '10.0.0.1');
  assert.equal(published(liar('ExternalIP', '198.51.100.8', approved)), '10.0.0.1');
  assert.equal(published(liar('InternalIP', '198.51.100.8', approved)), '10.0.0.1');
  assert.equal(published(liar('InternalIP', '10.0.0.9', approved)), '10.0.0.1,10.0.0.9');
  assert.equal(published(liar('InternalIP', '10.128.3.4')), '10.0.0.1', 'the address of a pod');
  const bridge = {
    ...liar('InternalIP', '10.128.3.1'),
    spec: { podCIDR: '10.128.3.0/24', podCIDRs: ['10.128.3.0/24'] },
  };
  assert.equal(published(bridge), '10.0.0.1,10.128.3.1', 'the pod bridge of a host without another address');
  assert.equal(published(liar('InternalIP', '172.30.0.1')), '10.0.0.1', 'the address of a service');
  assert.equal(published(liar('InternalIP', '127.0.0.1')), '10.0.0.1');
  const declared = { 'hyperedge.dev/serving-addresses': '203.0.113.7' };
  assert.equal(published(liar('ExternalIP', '203.0.113.7', declared)), '10.0.0.1,203.0.113.7');
  // An address of another node belongs to that node: if the node reserves the port, the address is not published.
  const victim = {
    ...honest,
    metadata: { ...honest.metadata, annotations: { 'hyperedge.dev/reserved-host-ports': 'TCP/80' } },
  };
  assert.equal(
    plan([service('s')], { nodes: [liar('InternalIP', '10.0.0.1'), victim] })['s'],
    'no ready node has an address of the family of the service',
  );
});

test('plans thousands of services for a small pool in little time, and gives each address once', () => {
  const services = Array.from({ length: 5000 }, (_, index) => service(`s${index}`));
  const start = performance.now();
  const plans = planLoadBalancers({
    services,
    nodes: [],
    slices: () => [],
    pool: parseAddressPool(['10.0.0.0/24', '10.0.9.0/24']),
  });
  // An implementation that checks all addresses of the pool for each service takes longer.
  assert.ok(performance.now() - start < 5000, `${performance.now() - start} ms`);
  const given = [...plans.values()].flatMap(({ addresses = [] }) => addresses);
  assert.equal(given.length, 512);
  assert.equal(new Set(given).size, 512);
  const last = plans.get('default/s4999')?.problem;
  assert.equal(last, 'serviceLoadBalancer.addresses has no free IPv4 address');
});

test('plans services with thousands of ports for many nodes in little time', () => {
  const ports = Array.from({ length: 10_000 }, (_, index) => ({ port: 2_000 + index, protocol: 'TCP' }));
  const services = Array.from({ length: 40 }, (_, index) => {
    const each = service(`s${index}`);
    return { ...each, spec: { ...each.spec, ports } };
  });
  const nodes = Array.from({ length: 100 }, (_, index) => node(`n${index}`, `192.0.2.${index}`));
  const started = performance.now();
  const plans = planLoadBalancers({ services, nodes, slices: () => [], pool: [] });
  // An implementation that looks up each port for each node takes 5 seconds.
  assert.ok(performance.now() - started < 1500, `${performance.now() - started} ms`);
  assert.equal(plans.get('default/s0')?.addresses?.length, 100);
  assert.equal(plans.get('default/s1')?.problem, 'port TCP/2000 is in use by service default/s0');
});
