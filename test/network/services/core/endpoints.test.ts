import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Service } from '../../../../src/api/generated/core/v1.ts';
import type { Endpoint, EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import { ServicePlanner } from '../../../../src/network/services/core/index.ts';
import { UdpZones } from '../../../../src/network/services/core/zones.ts';
import { desiredServicePorts, nftState } from './desired.ts';

const http = { name: 'http', port: 80, protocol: 'TCP' as const };
const nodes = [{ metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'z1' } } }];

function desired(spec: Service['spec'], endpoints: Endpoint[], status: Service['status'] = {}) {
  const service: Service = {
    metadata: { namespace: 'ns', name: 'web' },
    spec: { clusterIP: '172.30.0.9', ports: [http], ...spec },
    status,
  };
  const slices: EndpointSlice[] = [
    {
      addressType: 'IPv4',
      metadata: { namespace: 'ns', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints,
    },
  ];
  return desiredServicePorts({
    services: [service],
    slices,
    nodes,
    nodeName: 'n1',
    hostAddresses: [],
    reservedPorts: [{ protocol: 'TCP', port: 10_250 }],
    serviceCidrs: ['172.30.0.0/16'],
    clusterCidrs: ['10.128.0.0/14'],
  });
}
const ips = (list: readonly { ip: string }[] | undefined): string[] => (list ?? []).map(({ ip }) => ip);
const hint = (last: number, nodeName: string, hints: object): Endpoint =>
  ({ addresses: [`10.128.0.${last}`], nodeName, hints }) as Endpoint;
const zone = (name: string): object => ({ forZones: [{ name }] });
const node = (name: string): object => ({ forNodes: [{ name }], forZones: [{ name: 'z1' }] });

test('prefers endpoints by zone and node hints only if all endpoints have hints', () => {
  const internal = (endpoints: Endpoint[], spec: Service['spec'] = {}): string[] =>
    ips(desired(spec, endpoints).ports[0]?.endpoints);
  assert.deepEqual(internal([hint(1, 'n2', zone('z1')), hint(2, 'n3', zone('z2'))]), ['10.128.0.1']);
  assert.deepEqual(internal([hint(1, 'n2', zone('z1')), hint(2, 'n3', {})]), ['10.128.0.1', '10.128.0.2']);
  assert.deepEqual(internal([hint(1, 'n2', zone('z2')), hint(2, 'n3', zone('z3'))]), ['10.128.0.1', '10.128.0.2']);
  assert.deepEqual(internal([hint(1, 'n1', node('n1')), hint(2, 'n2', node('n2'))]), ['10.128.0.1']);
  assert.deepEqual(internal([hint(3, 'n3', node('n3')), hint(2, 'n2', node('n2'))]), ['10.128.0.2', '10.128.0.3']);
  const local: Service['spec'] = { internalTrafficPolicy: 'Local' };
  assert.deepEqual(internal([hint(1, 'n1', zone('z9')), hint(2, 'n2', zone('z1'))], local), ['10.128.0.1']);
});

test('limits the endpoints of each of 5,000 ports, and lists endpoints of this node first for policy Local', () => {
  const ports = Array.from({ length: 5000 }, (_, index) => ({ name: `p${index}`, port: index + 1, protocol: 'TCP' }));
  const service: Service = {
    metadata: { namespace: 'ns', name: 'wide' },
    spec: { clusterIP: '172.30.0.9', externalIPs: ['192.0.2.7'], ports: ports as never },
  };
  const endpoints = Array.from({ length: 100 }, (_, index) => ({
    addresses: [`10.128.0.${index + 1}`],
    nodeName: index === 99 ? 'n1' : 'n2',
  }));
  const slice = {
    addressType: 'IPv4',
    metadata: { namespace: 'ns', name: 'wide-1', labels: { 'kubernetes.io/service-name': 'wide' } },
    ports,
    endpoints,
  } as EndpointSlice;
  const input = {
    services: [service],
    slices: [slice],
    nodes,
    nodeName: 'n1',
    hostAddresses: [],
    reservedPorts: [],
    serviceCidrs: ['172.30.0.0/16'],
    clusterCidrs: ['10.128.0.0/14'],
  };
  const found = desiredServicePorts(input).ports;
  assert.equal(found.length, 5000);
  assert.ok(found.every((port) => port.endpoints.length === 4));
  const used = new Set(found.flatMap((port) => ips(port.endpoints)));
  assert.equal(used.size, 100, 'all endpoints receive traffic through some port');
  service.spec = { ...service.spec, internalTrafficPolicy: 'Local' };
  const local = desiredServicePorts(input).ports;
  assert.ok(local.every((port) => ips(port.endpoints).join() === '10.128.0.100'));
});

test('excludes endpoints on failed nodes while endpoints on other nodes remain', () => {
  const planner = new ServicePlanner({
    nodeName: 'n1',
    reservedPorts: [],
    serviceCidrs: ['172.30.0.0/16'],
    clusterCidrs: ['10.128.0.0/14'],
  });
  planner.setService({ metadata: { namespace: 'ns', name: 'web' }, spec: { clusterIP: '172.30.0.9', ports: [http] } });
  planner.setSlice({
    addressType: 'IPv4',
    metadata: { namespace: 'ns', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [hint(1, 'n1', {}), hint(2, 'n2', {}), hint(3, 'n3', {})],
  });
  const after = (...failed: string[]): string[] => {
    planner.setFailedNodes(new Set(failed));
    planner.changes();
    return ips(planner.portsOf('ns/web')[0]?.endpoints).map((ip) => ip.slice(-1));
  };
  assert.deepEqual(after(), ['1', '2', '3']);
  assert.deepEqual(after('n2'), ['1', '3']);
  // A host never counts itself as failed.
  assert.deepEqual(after('n1', 'n2', 'n3'), ['1']);
  assert.deepEqual(after('n3'), ['1', '2']);
  planner.setSlice({
    addressType: 'IPv4',
    metadata: { namespace: 'ns', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    endpoints: [hint(3, 'n3', {})],
  });
  assert.deepEqual(after('n3'), ['3'], 'the last resort');
});

test('with policy Local, uses a terminating local endpoint if no local endpoint is ready', () => {
  const last = {
    addresses: ['10.128.0.3'],
    nodeName: 'n1',
    conditions: { ready: false, serving: true, terminating: true },
  };
  const elsewhere = { addresses: ['10.128.0.4'], nodeName: 'n2', conditions: { ready: true } };
  const spec: Service['spec'] = {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ ...http, nodePort: 30_080 }],
  };
  const [port] = desired(spec, [last, elsewhere]).ports;
  assert.deepEqual(ips(port?.endpoints), ['10.128.0.4']);
  assert.deepEqual(ips(port?.externalEndpoints), ['10.128.0.3']);
});

test('applies source ranges only to load balancer addresses, and ignores invalid ranges', () => {
  const spec: Service['spec'] = {
    type: 'LoadBalancer',
    externalIPs: ['192.0.2.7'],
    loadBalancerSourceRanges: ['198.51.100.7/24', 'fd00::/64', '10.0.0.0/8 } ; flush ruleset'],
  };
  const balancer = { loadBalancer: { ingress: [{ ip: '192.0.2.8' }] } };
  const { ports } = desired(spec, [hint(1, 'n1', {})], balancer);
  const state = nftState(ports, { table: 'he', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] });
  assert.deepEqual([...(state.get('firewall_ips') ?? [])], [['192.0.2.8 . tcp . 80', 'goto fw/ns/web/http/TCP']]);
  assert.deepEqual(state.get('chains')?.get('fw/ns/web/http/TCP'), 'ip saddr 198.51.100.0/24 return\ndrop');
});

test('counts ready local endpoints for the health check, and rejects a health check port that the host uses', () => {
  const spec: Service['spec'] = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_999 };
  const endpoints = [hint(1, 'n1', {}), hint(2, 'n2', {})];
  assert.deepEqual(desired(spec, endpoints).healthChecks, [
    { namespace: 'ns', name: 'web', port: 30_999, localEndpoints: 1 },
  ]);
  assert.deepEqual(desired({ ...spec, healthCheckNodePort: 10_250 }, endpoints).healthChecks, []);
  assert.deepEqual(desired({ ...spec, externalTrafficPolicy: 'Cluster' }, endpoints).healthChecks, []);
});

test('moves a UDP port to another conntrack zone only when it loses an endpoint or gets its first one', () => {
  let zones = new UdpZones();
  const next = (...lasts: number[]): number => {
    const spec: Service['spec'] = { ports: [{ name: 'http', port: 53, protocol: 'UDP' }] };
    const { ports } = desired(spec, []);
    const endpoints = lasts.map((last) => ({ ip: `10.128.0.${last}`, port: 53, local: false, hairpin: false }));
    const [port] = ports;
    assert.ok(port);
    return zones.next({ ...port, endpoints });
  };
  const [two, three, lost, same, other, none] = [
    ...[next(1, 2), next(1, 2, 3), next(1, 3), next(1, 3), next(3, 4), next()],
  ];
  assert.deepEqual([three, same], [two, lost]);
  assert.equal(new Set([two, lost, other, none, next(5)]).size, 5);
  // An endpoint that was added and removed leaves flows in the zone of the original endpoints.
  const [alone, more, less] = [next(5), next(5, 6), next(5)];
  assert.equal(more, alone);
  assert.notEqual(less, alone);
  zones = new UdpZones();
  assert.equal(next(2, 1), two, 'another process finds the zone of the same endpoints');
  for (const zone of [two, lost, other, none]) assert.ok(zone !== undefined && zone >= 1 && zone <= 65_535);
});

test('pods and this host reach every endpoint through an external IP with policy Local', () => {
  const spec: Service['spec'] = {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ ...http, nodePort: 30_080 }],
  };
  const { ports } = desired(spec, [hint(2, 'n2', {})]);
  const state = nftState(ports, { table: 'he', family: 4, clusterCidr: '10.128.0.0/14', reservedPorts: [] });
  assert.equal(
    state.get('chains')?.get('ext/ns/web/http/TCP'),
    'ip saddr 10.128.0.0/14 goto svc/ns/web/http/TCP\nfib saddr type local goto svc/ns/web/http/TCP',
  );
  assert.equal(state.get('no_endpoint_nodeports')?.get('tcp . 30080'), 'drop');
});
