import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Service, ServiceSpec } from 'kubernetes-types/core/v1';
import { isInPool, parseAddressPool, parseAddressRange } from '../../../src/base/address-pool.ts';
import { type LoadBalancerInput, planLoadBalancers } from '../../../src/core/reconcile/service-lb/plan.ts';

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

test('ranges are addresses, networks or two addresses of one family in order', () => {
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

test('an address of the pool belongs to one service, and an old address stays although a younger one asks for it', () => {
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
  // As in the cluster: the next plan is made from what the last one gave.
  assert.equal(plan([service('any', { has: ['10.0.0.3'] })], { ranges })['any'], '10.0.0.3');
  assert.equal(plan([service('any', { has: ['10.0.7.3'] })], { ranges })['any'], '10.0.0.1');
});

test('of two families, the pool may lack one where the service prefers both', () => {
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

test('without a pool, services share the addresses of ready nodes by their ports', () => {
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
      own: 'port TCP/8443 is in use by the node',
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
