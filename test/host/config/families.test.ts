import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { BootstrapFile } from '../../../src/host/config/bootstrap.ts';
import { familiesOf, type GivenFamilies, podNetworkOf } from '../../../src/host/config/families.ts';
import { chooseNodeIps, defaultRouteLink6 } from '../../../src/host/config/node-addresses.ts';

const file = (text: string): BootstrapFile => parse(text) as BootstrapFile;
const families = (text: string): unknown[] => {
  const { ipFamilies, clusterCidrs, serviceCidrs } = familiesOf(parse(text) as GivenFamilies, 'b.yaml');
  return [ipFamilies.join(), clusterCidrs.join(), serviceCidrs.join()];
};

test('takes IP families from ipFamilies or from the ranges, and default ranges for missing families', () => {
  assert.deepEqual(families('{}'), ['IPv4', '10.128.0.0/14', '172.30.0.0/16']);
  assert.deepEqual(families('ipFamilies: [IPv6, IPv4]'), [
    'IPv6,IPv4',
    'fd01::/48,10.128.0.0/14',
    'fd02::/112,172.30.0.0/16',
  ]);
  assert.deepEqual(families('clusterCIDR: "10.1.0.0/16,fd07::/48"'), [
    'IPv4,IPv6',
    '10.1.0.0/16,fd07::/48',
    '172.30.0.0/16,fd02::/112',
  ]);
  const refused = (text: string, message: RegExp): void =>
    assert.throws(() => families(text), { code: 'bad-config', message });
  refused(
    '{ipFamilies: [IPv4], serviceCIDR: "fd02::/112"}',
    /^b\.yaml: network\.serviceCIDR: fd02::\/112 has an address family that the cluster does not use/,
  );
  refused('ipFamilies: [IPv4, IPv4]', /^b\.yaml: ipFamilies: /);
});

test('rejects podNetwork.encrypt, and gives each instance its own tunnel names and route protocol', () => {
  assert.throws(() => podNetworkOf(file('podNetwork: {encrypt: true}'), 'hyper0', undefined, 'b.yaml'), {
    code: 'bad-config',
    message: /^b\.yaml: podNetwork\.encrypt: /,
  });
  const main = podNetworkOf(undefined, 'hyper0', undefined, 'b.yaml');
  assert.deepEqual([main.backend, main.routeProtocol, main.tunnelNames[4]], ['auto', 178, 'hyper0-vx4']);
  const other = podNetworkOf(undefined, 'he-a1b2c3', 'a1b2c3', 'b.yaml');
  assert.ok(other.routeProtocol >= 193 && other.routeProtocol <= 252);
  for (const name of Object.values(other.tunnelNames)) assert.ok(name.length <= 15, name);
});

test('selects one node address per family by the default route, keeps a present address, and ignores the pod network', () => {
  const host = {
    defaultRouteLink: 'eth1',
    defaultRouteLink6: 'eth0',
    byLink: [
      { link: 'eth0', address: '192.0.2.1' },
      { link: 'eth1', address: '198.51.100.1' },
      { link: 'hyper0', address: '10.128.0.1' },
      { link: 'any', address: '172.30.0.10' },
      { link: 'eth1', address: '2001:db8:1::1' },
      { link: 'eth0', address: '2001:db8::1' },
    ],
  };
  const choose = (more: object, found = host) =>
    chooseNodeIps(found, {
      ipFamilies: ['IPv4', 'IPv6'],
      given: undefined,
      podLinks: new Set(['hyper0']),
      serviceCidrs: ['172.30.0.0/16'],
      ...more,
    });
  assert.deepEqual(choose({}), ['198.51.100.1', '2001:db8::1']);
  assert.deepEqual(choose({ previous: ['192.0.2.1', '2001:db8::9'] }), ['192.0.2.1', '2001:db8::1']);
  assert.deepEqual(choose({ given: '203.0.113.9' }), ['203.0.113.9', '2001:db8::1']);
  assert.deepEqual(choose({ given: 'fd00::5', ipFamilies: ['IPv4'] }), ['fd00::5']);
  assert.deepEqual(choose({ ipFamilies: ['IPv4'] }, { ...host, byLink: host.byLink.slice(4) }), ['2001:db8::1']);
  assert.deepEqual(choose({}, { ...host, byLink: host.byLink.slice(2, 4) }), []);
});

test('selects the IPv6 default route with the lowest metric and ignores routes of lo', () => {
  const zeros = '0'.repeat(32);
  const line = (bits: string, metric: string, link: string): string =>
    `${zeros} ${bits} ${zeros} 00 ${zeros} ${metric} 00000001 00000000 00200200 ${link}`;
  const table = [
    line('00', 'ffffffff', 'lo'),
    line('00', '00000400', 'eth0'),
    line('00', '00000064', 'wlan0'),
    line('40', '00000001', 'eth9'),
  ];
  assert.equal(defaultRouteLink6(table.join('\n')), 'wlan0');
  assert.equal(defaultRouteLink6(''), undefined);
});
