/** Addresses to which the server may connect, by purpose. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Destinations, mayBeNamed } from '../../../src/apiserver/server/destinations.ts';
import type { WatchCache } from '../../../src/apiserver/watch-cache/watch-cache.ts';

const slice = {
  metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
  endpoints: [{ addresses: ['192.0.2.11'] }],
  ports: [{ port: 8443 }],
};
const range = { spec: { cidrs: ['10.200.0.0/16', 'fd00:200::/108'] } };
const of = (...objects: object[]) =>
  Object.assign(
    objects.map((each) => ({ shared: () => each })),
    { list: () => of(...objects) },
  );
const cache = { kind: (prefix: string) => (prefix === 'endpointslices' ? of(slice) : of(range)) };
const destinations = new Destinations({
  cache: cache as never as WatchCache,
  advertiseAddress: '192.0.2.10',
  ports: [6443],
  serviceRange: '172.30.0.0/16',
  ownAddresses: () => ['198.51.100.1', 'fe80::9'],
});
const NOWHERE = [
  '0.0.0.0',
  '::',
  '169.254.169.254',
  '::ffff:a9fe:a9fe',
  'fe80::1',
  '224.0.0.1',
  'ff02::1',
  'localhost',
];
const SERVICES = ['172.30.0.1', '::ffff:ac1e:1', '64:ff9b::ac1e:1', '10.200.3.4', 'fd00:200::7'];
const LOOPBACK = ['127.0.0.1', '::1', '::ffff:127.0.0.1', '0x7f.1'];
const OWN = ['192.0.2.10', '::ffff:c000:20a', '192.0.2.11', '198.51.100.1'];
const ELSEWHERE = ['10.9.0.1', '2001:db8::1', '::ffff:10.9.0.1'];

function allows(rule: (address: string) => boolean, yes: readonly string[][], no: readonly string[][]): void {
  for (const address of yes.flat()) assert.ok(rule(address), address);
  for (const address of no.flat()) assert.ok(!rule(address), address);
}

test('client requests: rejects this host, the control plane and services', () => {
  allows(destinations.proxied(), [ELSEWHERE], [NOWHERE, SERVICES, LOOPBACK, OWN]);
});

test('kubelets: permits this host, except ports of the control plane', () => {
  allows(destinations.kubelet(10250, false), [ELSEWHERE, OWN], [NOWHERE, SERVICES, LOOPBACK]);
  allows(destinations.kubelet(10250, true), [ELSEWHERE, OWN, LOOPBACK], [NOWHERE, SERVICES]);
  for (const port of [6443, 8443, 2379, 2380, 7946, 10257, 10259])
    for (const loopback of [true, false])
      allows(destinations.kubelet(port, loopback), [ELSEWHERE], [NOWHERE, SERVICES, LOOPBACK, OWN]);
});

test('aggregated servers: permits this host, except ports of the control plane and the kubelet', () => {
  allows(destinations.extension(9443), [ELSEWHERE, OWN, LOOPBACK], [NOWHERE, SERVICES]);
  for (const port of [6443, 8443, 2379, 10250])
    allows(destinations.extension(port), [ELSEWHERE], [NOWHERE, SERVICES, LOOPBACK, OWN]);
});

test('URLs of an administrator: permits all addresses of hosts', () => {
  allows(mayBeNamed, [ELSEWHERE, OWN, LOOPBACK, SERVICES], [NOWHERE]);
});
