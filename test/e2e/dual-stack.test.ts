/** A dual-stack cluster with real kubectl and real pods. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Node, Pod, Service } from '../../src/api/generated/core/v1.ts';
import { Appliance, eventually } from './harness.ts';
import { helloImage, importHelloImage } from './images.ts';

const BOOTSTRAP = `apiVersion: hyperedge.dev/v1
kind: Bootstrap
ipFamilies: [IPv4, IPv6]
network:
  clusterCIDR: 10.128.0.0/14,fd01::/48
  serviceCIDR: 172.30.0.0/16,fd02::/112
`;
const LINK = 'lan0';

describe('dual-stack cluster', { timeout: 180_000 }, () => {
  let appliance: Appliance;
  let scratch: string;

  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'he-dual-'));
    appliance = await Appliance.create();
    await mkdir(join(appliance.root, 'etc/origin'), { recursive: true });
    await writeFile(join(appliance.root, 'etc/origin/bootstrap.yaml'), BOOTSTRAP);
    await importHelloImage(appliance, scratch);
    for (const args of [
      ['link', 'add', LINK, 'type', 'bridge'],
      ['addr', 'add', '192.0.2.10/24', 'dev', LINK],
      ['addr', 'add', '2001:db8::10/64', 'dev', LINK, 'nodad'],
      ['link', 'set', LINK, 'up'],
    ])
      assert.equal((await appliance.inside('ip', args)).code, 0, args.join(' '));
    await appliance.start();
  });

  after(async () => {
    await appliance?.stop();
    await rm(scratch, { recursive: true, force: true });
  });

  const get = async <T>(...args: string[]): Promise<T> =>
    JSON.parse(await appliance.must(['get', ...args, '-o', 'json'])) as T;

  test('gives node, pods and services addresses of both families', async () => {
    const { items } = await get<{ items: Node[] }>('nodes');
    assert.deepEqual(items[0]?.spec?.podCIDRs, ['10.128.0.0/23', 'fd01::/64']);
    assert.deepEqual(
      items[0]?.status?.addresses?.filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
      ['192.0.2.10', '2001:db8::10'],
    );
    const run = ['run', 'web', `--image=${helloImage}`, '--port=80', '--', 'sleep', '1000'];
    await appliance.must(run);
    await appliance.must(['wait', '--for=condition=Ready', 'pod/web', '--timeout=60s']);
    const { status } = await get<Pod>('pod', 'web');
    const ips = (status?.podIPs ?? []).map(({ ip }) => ip ?? '');
    assert.match(ips.join(), /^10\.128\.0\.\d+,fd01::[0-9a-f]+$/);
    const { hostIPs } = status as { hostIPs?: { ip: string }[] };
    assert.deepEqual(hostIPs, [{ ip: '192.0.2.10' }, { ip: '2001:db8::10' }]);
    const shown = await appliance.must(['exec', 'web', '--', 'ip', 'addr', 'show', 'eth0']);
    for (const ip of ips) assert.match(shown, new RegExp(`inet6? ${ip}/(32|128) `));
    const policy = { ipFamilyPolicy: 'RequireDualStack' };
    await appliance.must(['expose', 'pod', 'web', '--port=80', '--overrides', JSON.stringify({ spec: policy })]);
    const { spec } = await get<Service>('service', 'web');
    assert.deepEqual([spec?.ipFamilies, spec?.clusterIPs?.length], [['IPv4', 'IPv6'], 2]);
    await eventually('slices of both families', 10_000, async () => {
      const slices = await appliance.must(['get', 'endpointslices', '-l', 'kubernetes.io/service-name=web']);
      return ips.every((ip) => slices.includes(ip)) ? true : undefined;
    });
  });

  test("updates the Node within seconds after the host's address changed", async () => {
    const began = performance.now();
    await appliance.inside('ip', ['addr', 'del', '2001:db8::10/64', 'dev', LINK]);
    await appliance.inside('ip', ['addr', 'add', '2001:db8::77/64', 'dev', LINK, 'nodad']);
    await eventually('the new InternalIP', 15_000, async () => {
      const { items } = await get<{ items: Node[] }>('nodes');
      const found = items[0]?.status?.addresses?.filter(({ type }) => type === 'InternalIP') ?? [];
      return found.map(({ address }) => address).join() === '192.0.2.10,2001:db8::77' ? true : undefined;
    });
    console.log(`in the Node ${Math.round(performance.now() - began)} ms after the change`);
    await eventually("the pod's hostIPs", 15_000, async () => {
      const { hostIPs } = (await get<Pod>('pod', 'web')).status as { hostIPs?: { ip: string }[] };
      return hostIPs?.[1]?.ip === '2001:db8::77' ? true : undefined;
    });
  });
});
