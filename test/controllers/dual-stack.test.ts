/** Dual-stack cluster: pod ranges of nodes, cluster IPs and endpoint slices. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Service, ServiceSpec } from '../../src/api/generated/core/v1.ts';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { startServer, type TestServer } from '../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

const SERVICES = '172.30.0.0/16,fd02::/112';
let api: TestServer;
let plane: ControlPlane;
before(async () => {
  api = await startServer({ config: { serviceCidr: SERVICES } });
  plane = await startControlPlane({
    api,
    kubelets: false,
    controllers: { clusterCidr: '10.128.0.0/14,fd01::/48', serviceCidr: SERVICES },
  });
});
after(async () => {
  await plane?.stop();
  await api?.stop();
});

const services = () => plane.of(resources.services);
const create = (name: string, spec: ServiceSpec): Promise<Service> =>
  services().create({
    metadata: { name, namespace: 'default' },
    spec: { ports: [{ port: 80 }], selector: { app: 'web' }, ...spec },
  });
const families = ({ spec }: Service): unknown[] => [
  spec?.ipFamilyPolicy,
  spec?.ipFamilies,
  spec?.clusterIPs?.map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4')),
];
const refusal = async (attempt: Promise<unknown>): Promise<string> => {
  try {
    await attempt;
  } catch (error) {
    assert.ok(isApiError(error, 'Invalid'), String(error));
    return error.message;
  }
  assert.fail('accepted');
};

test('assigns a node a pod range of each family, the range of the primary family first', async () => {
  await plane.addNode('one');
  await plane.addNode('two');
  const ranges = await Promise.all(
    ['one', 'two'].map((name) =>
      eventually(async () => {
        const { spec } = await plane.of(resources.nodes).get(name);
        return spec?.podCIDRs === undefined ? undefined : [spec.podCIDR, ...spec.podCIDRs];
      }, `ranges of ${name}`),
    ),
  );
  assert.deepEqual(ranges.map(String).sort(), [
    '10.128.0.0/23,10.128.0.0/23,fd01::/64',
    '10.128.2.0/23,10.128.2.0/23,fd01:0:0:1::/64',
  ]);
});

test('an update replaces the IPv4 and the IPv6 InternalIP of a node together', async () => {
  const write = (...addresses: string[]) =>
    plane.of(resources.nodes).patch(
      'one',
      undefined,
      'strategic',
      {
        status: {
          addresses: [...addresses.map((address) => ({ type: 'InternalIP', address })), { $patch: 'replace' }],
        },
      },
      { subresource: 'status' },
    );
  await write('192.0.2.1', '2001:db8::1');
  const { status } = await write('192.0.2.7', '2001:db8::1');
  assert.deepEqual(
    status?.addresses?.map(({ address }) => address),
    ['192.0.2.7', '2001:db8::1'],
  );
});

test('assigns cluster IPs by policy and families', async () => {
  assert.deepEqual(families(await create('plain', {})), ['SingleStack', ['IPv4'], ['IPv4']]);
  assert.deepEqual(families(await create('six', { ipFamilies: ['IPv6'] })), ['SingleStack', ['IPv6'], ['IPv6']]);
  const both = ['IPv4', 'IPv6'];
  assert.deepEqual(families(await create('prefer', { ipFamilyPolicy: 'PreferDualStack' })), [
    'PreferDualStack',
    both,
    both,
  ]);
  const reversed = await create('require', { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6', 'IPv4'] });
  assert.deepEqual(families(reversed), ['RequireDualStack', ['IPv6', 'IPv4'], ['IPv6', 'IPv4']]);
  assert.equal(reversed.spec?.clusterIP, reversed.spec?.clusterIPs?.[0]);
  const headless = await create('headless', { clusterIP: 'None', ipFamilyPolicy: 'PreferDualStack' });
  assert.deepEqual([headless.spec?.clusterIPs, headless.spec?.ipFamilies], [['None'], both]);
});

test('allocates requested IPv4 and IPv6 addresses once, and releases the addresses by name', async () => {
  const wanted = { ipFamilyPolicy: 'RequireDualStack', clusterIPs: ['172.30.7.7', 'fd02::7'], clusterIP: '172.30.7.7' };
  assert.deepEqual((await create('wanted', wanted)).spec?.clusterIPs, ['172.30.7.7', 'fd02::7']);
  assert.match(await refusal(create('again', { clusterIP: 'fd02:0::7' })), /provided IP is already allocated/);
  assert.match(
    await refusal(create('outside', { clusterIP: 'fd03::1' })),
    /failed to allocate IP fd03::1: the provided network does not match the current range fd02::\/112/,
  );
  const object = await plane.of(resources.ipAddresses).get('fd02::7');
  assert.equal(object.metadata?.labels?.['ipaddress.kubernetes.io/ip-family'], 'IPv6');
  await services().delete('wanted', 'default');
  assert.deepEqual((await create('next', { clusterIP: 'fd02::7' })).spec?.ipFamilies, ['IPv6']);
});

test('upgrades a service to two families and downgrades the service again', async () => {
  const plain = await services().get('plain', 'default');
  const upgraded = await services().update({ ...plain, spec: { ...plain.spec, ipFamilyPolicy: 'RequireDualStack' } });
  assert.deepEqual(families(upgraded), ['RequireDualStack', ['IPv4', 'IPv6'], ['IPv4', 'IPv6']]);
  assert.equal(upgraded.spec?.clusterIP, plain.spec?.clusterIP);
  const second = upgraded.spec?.clusterIPs?.[1] ?? '';
  const released = await services().update({ ...upgraded, spec: { ...upgraded.spec, ipFamilyPolicy: 'SingleStack' } });
  assert.deepEqual(families(released), ['SingleStack', ['IPv4'], ['IPv4']]);
  assert.deepEqual((await create('heir', { clusterIP: second })).spec?.clusterIPs, [second]);
});

test('publishes the IPv4 and IPv6 ranges in the ServiceCIDR kubernetes', async () => {
  const range = await plane.of(resources.serviceCidrs).get('kubernetes');
  assert.deepEqual(range.spec?.cidrs, SERVICES.split(','));
});

test("creates IPv4 and IPv6 slices with the addresses of a service's pods", async () => {
  await plane.of(resources.pods).create({
    metadata: { name: 'web', namespace: 'default', labels: { app: 'web' } },
    spec: { nodeName: 'one', containers: [{ name: 'c', image: 'i' }] },
  });
  await plane
    .of(resources.pods)
    .patch(
      'web',
      'default',
      'strategic',
      { status: { podIP: '10.128.0.9', podIPs: [{ ip: '10.128.0.9' }, { ip: 'fd01::9' }] } },
      { subresource: 'status' },
    );
  const found = await eventually(async () => {
    const { items } = await plane.of(resources.endpointSlices).list({ namespace: 'default' });
    const own = items.filter(({ metadata }) => metadata?.labels?.['kubernetes.io/service-name'] === 'prefer');
    const listed = own.map(({ addressType, endpoints }) => `${addressType} ${endpoints?.[0]?.addresses.join() ?? ''}`);
    return listed.some((each) => each.endsWith('fd01::9')) ? listed.sort() : undefined;
  }, 'the slices');
  assert.deepEqual(found, ['IPv4 10.128.0.9', 'IPv6 fd01::9']);
});
