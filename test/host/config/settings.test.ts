import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bootstrapField } from '../../../src/host/config/bootstrap.ts';
import { defaultRouteLink, type HostAddresses } from '../../../src/host/config/node-addresses.ts';
import { settingsOf } from '../../../src/host/config/settings.ts';
import { firstSubnet, nthAddress } from '../../../src/host/network/addresses.ts';
import { parseConfig } from '../../../src/wire/strict-yaml.ts';

const host: HostAddresses = {
  defaultRouteLink: 'eth1',
  byLink: [
    { link: 'eth0', address: '10.0.0.7' },
    { link: 'eth1', address: '192.0.2.9' },
    { link: 'hyper0', address: '10.128.0.1' },
  ],
};
const of = (root: string, yaml?: string, addresses = host) =>
  settingsOf({
    root,
    bootstrapFile: 'bootstrap.yaml',
    file:
      yaml === undefined
        ? undefined
        : parseConfig(`apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${yaml}`, 'b', bootstrapField),
    host: addresses,
  });

test('selects the node IP in order: configured, of the default route, of another link, of the pod bridge', () => {
  assert.equal(of('/', 'node: {ip: 203.0.113.5}').nodeIp, '203.0.113.5');
  assert.equal(of('/').nodeIp, '192.0.2.9');
  assert.equal(of('/', undefined, { ...host, defaultRouteLink: undefined }).nodeIp, '10.0.0.7');
  // The bridge's address must not count as an address of the host, or it would be selected after every restart.
  const bare = of('/', undefined, { defaultRouteLink: undefined, byLink: [{ link: 'hyper0', address: '10.128.0.1' }] });
  assert.equal(bare.nodeIp, '10.128.0.1');
  assert.equal(bare.nodeIpIsBridge, true);
  assert.equal(bare.network.firstPodCidr, '10.128.0.0/23');
  // The same holds for the address of a service that the host answers itself.
  const dns = of('/', undefined, {
    defaultRouteLink: undefined,
    byLink: [{ link: 'hyper0-dns', address: '172.30.0.10' }],
  });
  assert.equal(dns.nodeIpIsBridge, true);
  assert.deepEqual(dns.addresses, ['10.128.0.1']);
});

test('rejects address ranges that overlap, and ports that two components of the host have', () => {
  const message = (yaml: string): string => {
    try {
      of('/', yaml);
      return '';
    } catch (error) {
      return String(error);
    }
  };
  assert.match(
    message('network: {clusterCIDR: 172.0.0.0/8}'),
    /bootstrap.yaml: network.clusterCIDR: 172.0.0.0\/8 overlaps network.serviceCIDR 172.30.0.0\/16; give separate/,
  );
  assert.match(message('network: {clusterCIDR: 10.0.0.0/16, serviceCIDR: 10.0.128.0/20}'), /overlaps/);
  assert.equal(message('network: {clusterCIDR: 10.0.0.0/16, serviceCIDR: 10.1.0.0/16}'), '');
  assert.match(
    message('ports: {api: 10250}'),
    /bootstrap.yaml: ports.api: 10250 is also the port of ports.kubelet; give different ports/,
  );
  assert.match(message('ports: {etcdPeer: 2379}'), /ports.etcdPeer: 2379 is also the port of ports.etcd/);
  assert.equal(message('roles: [node]\nports: {api: 10250}'), '');
});

test('derives different names for instances with different roots', () => {
  const [plain, one, two] = [of('/'), of('/srv/one'), of('/srv/two')];
  assert.equal(plain.network.bridge, 'hyper0');
  assert.equal(plain.network.nftTable, 'hyperedge');
  assert.notEqual(one.network.bridge, two.network.bridge);
  assert.notEqual(one.network.nftTable, two.network.nftTable);
  assert.ok(one.network.bridge.length <= 15);
  assert.equal(one.paths.controlSocket, '/srv/one/run/hyperedge/control.sock');
  assert.equal(plain.paths.masterConfig, '/etc/origin/master/master-config.yaml');
});

test('enables gossip by default, on serf’s port and with the node’s address', () => {
  const { gossip } = of('/srv/one');
  assert.deepEqual(gossip, {
    enabled: true,
    configured: false,
    bindAddress: '0.0.0.0',
    port: 7946,
    advertiseAddress: '192.0.2.9',
    join: [],
    keyringFile: '/srv/one/etc/origin/node/gossip-keyring.json',
  });
  const given = of('/', 'gossip: {bindAddress: 10.0.0.7, join: ["host-2:7947", "[fd00::1]:7946", host-3]}').gossip;
  assert.deepEqual([given.configured, given.advertiseAddress, given.join.length], [true, '10.0.0.7', 3]);
  assert.equal(of('/', 'node: {ip: "fd00::7"}').gossip.bindAddress, '::');
});

test('calculates addresses within network ranges', () => {
  assert.equal(nthAddress('172.30.0.0/16', 1), '172.30.0.1');
  assert.equal(nthAddress('172.30.5.9/16', 257), '172.30.1.1');
  assert.equal(nthAddress('fd00:1::/112', 1), 'fd00:1::1');
  assert.equal(firstSubnet('10.128.0.0/14', 9), '10.128.0.0/23');
  assert.throws(() => nthAddress('10.0.0.0/32', 1));
  assert.throws(() => firstSubnet('10.0.0.0/24', 9), { code: 'bad-config' });
});

test('selects the default route with the lowest metric', () => {
  const table = `Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask
wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000
eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000
eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF
`;
  assert.equal(defaultRouteLink(table), 'eth0');
  assert.equal(defaultRouteLink('Iface\n'), undefined);
});
