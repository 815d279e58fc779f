/**
 * Services must not capture or lead to the hosts' own addresses and ports, special addresses, or each other's
 * addresses.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Service, ServicePort } from '../../../../src/api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../../src/api/generated/discovery/v1.ts';
import { ServicePlanner } from '../../../../src/network/services/core/index.ts';
import { type DesiredInput, desiredServicePorts, nftState } from './desired.ts';

const OWN = '10.0.0.5';
const OTHER = '10.0.0.6';
const cluster: Omit<DesiredInput, 'services' | 'slices'> = {
  nodeName: 'n1',
  hostAddresses: ['127.0.0.1', OWN, '10.128.0.1', '172.30.0.77'],
  reservedPorts: [
    { protocol: 'TCP', port: 9443 },
    { protocol: 'TCP', port: 10_250 },
    { protocol: 'UDP', port: 7946 },
  ],
  nodes: [
    {
      metadata: { name: 'n2', annotations: { 'hyperedge.dev/reserved-host-ports': 'TCP/2380' } },
      status: {
        addresses: [
          { type: 'InternalIP', address: OTHER },
          { type: 'Hostname', address: '10.0.0.99' },
        ],
        daemonEndpoints: { kubeletEndpoint: { Port: 10_255 } },
      },
    } satisfies Node,
  ],
  serviceCidrs: ['172.30.0.0/16'],
  clusterCidrs: ['10.128.0.0/14'],
};
const kubernetes: Service = {
  metadata: { namespace: 'default', name: 'kubernetes' },
  spec: { clusterIP: '172.30.0.1', ports: [{ name: 'https', port: 443 }] },
};
const slice = (service: string, addresses: string[], port: number): EndpointSlice => {
  const [namespace = '', name = ''] = service.split('/');
  return {
    addressType: 'IPv4',
    metadata: { namespace, name, labels: { 'kubernetes.io/service-name': name } },
    ports: [{ name: 'https', port }],
    endpoints: addresses.map((each) => ({ addresses: [each] })),
  };
};
const apiServers = slice('default/kubernetes', [OWN, '10.0.0.7'], 9443);

function portsOf(spec: Service['spec'], more: Partial<Service> = {}, ...others: Service[]) {
  const service: Service = {
    metadata: { namespace: 'ns', name: 'thief', creationTimestamp: '2026-02-01T00:00:00Z' },
    spec: { clusterIP: '172.30.0.9', ...spec },
    ...more,
  };
  const slices = [apiServers, slice('ns/thief', ['10.128.0.9'], 8080)];
  const { ports, refused } = desiredServicePorts({ ...cluster, services: [kubernetes, service, ...others], slices });
  return { ports: ports.filter(({ id }) => id.startsWith('ns/')), refused, all: ports };
}

const port = (number: number, more: Partial<ServicePort> = {}): ServicePort => ({
  name: 'https',
  port: number,
  ...more,
});

test('rejects external IPs that conflict with host ports, cluster IPs, pods and special addresses', () => {
  const refusals: [string, number, 'TCP' | 'UDP', RegExp][] = [
    [OWN, 9443, 'TCP', /a port of the control plane or of a node/],
    [OWN, 10_250, 'TCP', /a port of the control plane/],
    [OWN, 7946, 'UDP', /a port of the control plane/],
    ['10.128.0.1', 9443, 'TCP', /a port of the control plane/],
    [OTHER, 10_255, 'TCP', /a port of the control plane/],
    [OTHER, 2380, 'TCP', /a port of the control plane/],
    ['10.0.0.7', 9443, 'TCP', /a port of the control plane/],
    ['172.30.0.1', 443, 'TCP', /a cluster IP/],
    ['172.30.200.1', 443, 'TCP', /a cluster IP/],
    ['10.128.0.44', 80, 'TCP', /an address of a pod/],
    ['127.0.0.1', 2379, 'TCP', /loopback/],
    ['127.8.8.8', 80, 'TCP', /loopback/],
    ['169.254.169.254', 80, 'TCP', /link-local/],
    ['0.0.0.0', 80, 'TCP', /reserved/],
    ['224.0.0.1', 80, 'UDP', /multicast/],
    ['255.255.255.255', 80, 'UDP', /reserved/],
  ];
  for (const [ip, number, protocol, why] of refusals) {
    const ports = [port(number, { protocol })];
    for (const made of [
      portsOf({ ports, externalIPs: [ip] }),
      portsOf({ ports, type: 'LoadBalancer' }, { status: { loadBalancer: { ingress: [{ ip }] } } }),
    ]) {
      assert.deepEqual(made.ports[0]?.externalIps, [], ip);
      const refusal = made.refused.find(({ service }) => service.startsWith('ns/thief:'));
      assert.equal(refusal?.address, `${ip}:${number}`);
      assert.match(refusal?.why ?? '', why);
    }
  }
});

test('forwards external IPs of a host for ports and protocols that the host does not use', () => {
  for (const [ip, number, protocol] of [
    [OWN, 443, 'TCP'],
    [OWN, 9443, 'UDP'],
    [OTHER, 9443, 'TCP'],
    ['192.0.2.1', 9443, 'TCP'],
    ['10.0.0.99', 10_255, 'TCP'],
  ] as const) {
    const { ports, refused } = portsOf({ ports: [port(number, { protocol })], externalIPs: [ip] });
    assert.deepEqual([ports[0]?.externalIps, refused], [[ip], []], `${ip}:${number}/${protocol}`);
  }
  const proxied = { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'Proxy' }] } } };
  assert.deepEqual(portsOf({ ports: [port(80)] }, proxied as Partial<Service>).ports[0]?.externalIps, []);
});

test('rejects an external IP that is the cluster IP of another service, also outside of the service range', () => {
  const victim: Service = {
    metadata: { namespace: 'victim', name: 'db' },
    spec: { clusterIP: '10.99.0.4', ports: [{ port: 5432 }] },
  };
  const { ports, all } = portsOf({ ports: [port(5432)], externalIPs: ['10.99.0.4'] }, {}, victim);
  assert.deepEqual(ports[0]?.externalIps, []);
  assert.deepEqual(all.find(({ id }) => id.startsWith('victim/'))?.clusterIps, ['10.99.0.4']);
});

test('assigns an external IP and port to the oldest service that requests it, regardless of names', () => {
  const older: Service = {
    metadata: { namespace: 'ns', name: 'z-older', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { clusterIP: '172.30.0.10', ports: [port(80)], externalIPs: ['192.0.2.1'] },
  };
  const { ports, refused } = portsOf({ ports: [port(80)], externalIPs: ['192.0.2.1'] }, {}, older);
  const owners = ports.filter(({ externalIps }) => externalIps.length > 0).map(({ id }) => id);
  assert.deepEqual(owners, ['ns/z-older:https/TCP']);
  assert.equal(refused[0]?.why, 'in use by ns/z-older:https/TCP');
});

test('rejects cluster IPs that are host or special addresses, and node ports that the host uses', () => {
  for (const clusterIP of [OWN, OTHER, '127.0.0.1', '169.254.1.1'])
    assert.deepEqual(portsOf({ clusterIP, ports: [port(80)] }).ports[0]?.clusterIps, [], clusterIP);
  assert.deepEqual(portsOf({ clusterIP: '172.30.0.77', ports: [port(9443)] }).ports[0]?.clusterIps, ['172.30.0.77']);
  const nodePort = (number: number, protocol = 'TCP'): number | undefined =>
    portsOf({ type: 'NodePort', ports: [port(80, { nodePort: number, protocol })] }).ports[0]?.nodePort;
  assert.deepEqual([nodePort(9443), nodePort(10_250), nodePort(7946, 'UDP')], [0, 0, 0]);
  assert.deepEqual([nodePort(30_080), nodePort(7946)], [30_080, 7946]);
});

test('rejects endpoints with special addresses, and host ports except for services of system namespaces', () => {
  const to = (service: string, ip: string, number: number): number => {
    const [namespace = '', name = ''] = service.split('/');
    const spec = { clusterIP: '172.30.0.9', ports: [port(80)] };
    const { ports } = desiredServicePorts({
      ...cluster,
      services: [{ metadata: { namespace, name }, spec }],
      slices: [slice(service, [ip], number)],
    });
    return ports[0]?.endpoints.length ?? -1;
  };
  for (const ip of ['127.0.0.1', '127.3.4.5', '169.254.169.254', '0.0.0.0', '239.1.1.1'])
    for (const service of ['ns/thief', 'kube-system/metrics']) assert.equal(to(service, ip, 80), 0, ip);
  for (const [ip, number] of [
    [OWN, 9443],
    [OWN, 10_250],
    [OTHER, 10_255],
  ] as const) {
    assert.equal(to('ns/thief', ip, number), 0);
    assert.equal(to('kube-system/metrics', ip, number), 1);
    assert.equal(to('default/kubernetes', ip, number), 1);
  }
  assert.equal(to('ns/thief', OWN, 80), 1);
});

test('does not forward traffic for a host address and a port that the host itself uses', () => {
  const { all } = portsOf({
    type: 'NodePort',
    ports: [port(9443, { nodePort: 9443 })],
    externalIPs: [OWN, '10.128.0.1', '127.0.0.1'],
  });
  const state = nftState(all, {
    table: 't',
    family: 4,
    clusterCidr: cluster.clusterCidrs[0],
    reservedPorts: cluster.reservedPorts,
  });
  assert.deepEqual(
    [...state]
      .flatMap(([place, content]) => (place === 'chains' ? [] : [...content.keys()]))
      .filter((key) => key.includes(' . tcp . '))
      .sort(),
    [
      '172.30.0.1 . tcp . 443',
      '172.30.0.1 . tcp . 443 . 0',
      '172.30.0.1 . tcp . 443 . 1',
      '172.30.0.9 . tcp . 9443',
      '172.30.0.9 . tcp . 9443 . 0',
    ],
  );
});

test('rejects reserved host ports at host addresses and at external IPs from the service spec', () => {
  const balanced = (ip: string, number: number, protocol: 'TCP' | 'UDP') =>
    portsOf(
      { ports: [port(number, { protocol })], type: 'LoadBalancer' },
      { status: { loadBalancer: { ingress: [{ ip }] } } },
    ).ports[0]?.externalIps;
  const named = (ip: string, number: number, protocol: 'TCP' | 'UDP') =>
    portsOf({ ports: [port(number, { protocol })], externalIPs: [ip] }).ports[0]?.externalIps;
  for (const [number, protocol] of [
    [22, 'TCP'],
    [111, 'TCP'],
    [123, 'UDP'],
    [4789, 'UDP'],
    [1023, 'TCP'],
  ] as const) {
    assert.deepEqual(balanced(OWN, number, protocol), [], `${number}`);
    assert.deepEqual(named(OWN, number, protocol), []);
    assert.deepEqual(named(OTHER, number, protocol), []);
    assert.deepEqual(named('192.0.2.1', number, protocol), []);
    // A load balancer has its own addresses.
    assert.deepEqual(balanced('192.0.2.1', number, protocol), ['192.0.2.1']);
  }
  for (const number of [53, 80, 443, 1024]) assert.deepEqual(balanced(OWN, number, 'TCP'), [OWN]);
  assert.deepEqual(balanced(OWN, 4789, 'TCP'), [OWN]);
});

test('does not forward external IPs for ports on which a host process listens', () => {
  const planner = new ServicePlanner(cluster);
  planner.setHostAddresses(cluster.hostAddresses);
  planner.setService({
    metadata: { namespace: 'ns', name: 'thief' },
    spec: { clusterIP: '172.30.0.9', externalIPs: [OWN, '10.128.0.1'], ports: [port(8080), port(9090)] },
  });
  const ips = () => planner.ports().map(({ externalIps }) => externalIps.join());
  planner.changes();
  assert.deepEqual(ips(), ['10.0.0.5,10.128.0.1', '10.0.0.5,10.128.0.1']);
  planner.setListening([
    { protocol: 'TCP', port: 8080, address: OWN },
    { protocol: 'TCP', port: 9090 },
    { protocol: 'UDP', port: 8080 },
  ]);
  planner.changes();
  assert.deepEqual(ips(), ['10.128.0.1', '']);
  planner.setListening([]);
  planner.changes();
  assert.deepEqual(ips(), ['10.0.0.5,10.128.0.1', '10.0.0.5,10.128.0.1']);
});

test('false addresses and ports in a Node status neither redirect traffic to pods nor block service addresses', () => {
  const liar: Node = {
    metadata: { name: 'liar', annotations: { 'hyperedge.dev/reserved-host-ports': 'TCP/80,TCP/8080' } },
    status: {
      addresses: ['198.51.100.8', '10.128.0.9', '10.128.0.44', '192.0.2.1', '172.30.0.9'].map((address) => ({
        type: 'InternalIP',
        address,
      })),
    },
  };
  const service = (externalIp: string): Service => ({
    metadata: { namespace: 'ns', name: 'thief', creationTimestamp: '2026-02-01T00:00:00Z' },
    spec: { type: 'LoadBalancer', clusterIP: '172.30.0.9', ports: [port(80)] },
    status: { loadBalancer: { ingress: [{ ip: externalIp }] } },
  });
  const planned = (ip: string, nodeName = 'n1') =>
    desiredServicePorts({
      ...cluster,
      nodeName,
      nodes: [...cluster.nodes, liar],
      poolRanges: ['192.0.2.0/24'],
      services: [kubernetes, service(ip)],
      slices: [apiServers, slice('ns/thief', ['10.128.0.9'], 8080)],
    }).ports.find(({ id }) => id.startsWith('ns/'));
  assert.deepEqual(planned('198.51.100.8')?.externalIps, [], 'an address that the node made up');
  assert.deepEqual(planned('10.128.0.44')?.externalIps, [], 'the address of a pod');
  assert.deepEqual(planned('192.0.2.1')?.externalIps, ['192.0.2.1'], 'an address of the pool stays a service’s');
  assert.deepEqual(planned('192.0.2.1')?.clusterIps, ['172.30.0.9']);
  assert.deepEqual(
    planned('192.0.2.1')?.endpoints.map(({ ip }) => ip),
    ['10.128.0.9'],
    'a pod stays an endpoint',
  );
});
