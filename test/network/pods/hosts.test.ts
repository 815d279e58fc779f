import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually, type Host, Lab, type LabPod, run } from './lab.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root for network namespaces';
const MTU2 = 1400;
const CLUSTER = ['10.128.0.0/14', 'fd01::/48'];
const podCidrs = (number: number): string[] => [`10.128.${number * 2}.0/23`, `fd01:0:0:${number}::/64`];

interface Route {
  readonly dst: string;
  readonly dev?: string;
  readonly gateway?: string;
  readonly type?: string;
}

async function ownRoutes(host: Host, family: '-4' | '-6' = '-4'): Promise<Route[]> {
  return JSON.parse((await host.ip('-j', '-d', family, 'route', 'show', 'proto', '178')) || '[]') as Route[];
}

describe('pod network of three hosts, of which one is behind a router', { skip, timeout: 180_000 }, () => {
  let lab: Lab;
  let hosts: readonly [Host, Host, Host];
  let pods: readonly [LabPod, LabPod, LabPod];

  before(async () => {
    lab = await Lab.create(MTU2);
    const options = (number: number) => ({
      backend: 'auto' as const,
      ipFamilies: ['IPv4', 'IPv6'] as const,
      clusterCidrs: CLUSTER,
      podCidrs: podCidrs(number),
    });
    hosts = [
      await lab.plug(1, 10, options(10)),
      await lab.plug(1, 11, options(11)),
      await lab.plug(2, 12, options(12)),
    ];
    await Promise.all(hosts.map((host) => host.start()));
    pods = [await lab.pod(hosts[0], 'p0'), await lab.pod(hosts[1], 'p1'), await lab.pod(hosts[2], 'p2')];
    await lab.publish();
  });

  after(async () => {
    await lab?.destroy();
  });

  const reaches = (from: LabPod, to: string, as: string): Promise<true> =>
    eventually(
      `${from.netns} → ${to}`,
      async () => ((await lab.reach(from.netns, to)) === as ? true : undefined),
      20_000,
    );

  test('pods on different hosts connect to each other without NAT, by IPv4 and IPv6', async () => {
    for (const from of pods)
      for (const to of pods)
        for (const family of [0, 1]) if (from !== to) await reaches(from, to.ips[family] ?? '', from.ips[family] ?? '');
    assert.deepEqual(
      hosts.flatMap(({ warnings }) => warnings),
      [],
    );
  });

  test('pod traffic uses a direct route between hosts of the same link, and VXLAN through a router', async () => {
    const shown = async (host: Host, family: '-4' | '-6'): Promise<string[]> =>
      (await ownRoutes(host, family))
        .map(({ dst, dev, gateway, type }) =>
          type === 'unreachable' ? `${dst} unreachable` : `${dst} ${dev} ${gateway}`,
        )
        .sort();
    assert.deepEqual(await shown(hosts[0], '-4'), [
      '10.128.0.0/14 unreachable',
      '10.128.22.0/23 eth0 192.0.2.11',
      '10.128.24.0/23 hyper0-vx4 10.128.24.0',
    ]);
    assert.deepEqual(await shown(hosts[0], '-6'), [
      'fd01:0:0:11::/64 eth0 2001:db8:1::11',
      'fd01:0:0:12::/64 hyper0-vx4 fd01:0:0:12::',
      'fd01::/48 unreachable',
    ]);
    assert.deepEqual(await shown(hosts[2], '-4'), [
      '10.128.0.0/14 unreachable',
      '10.128.20.0/23 hyper0-vx4 10.128.20.0',
      '10.128.22.0/23 hyper0-vx4 10.128.22.0',
    ]);
  });

  test('pods use the path MTU minus the VXLAN header, so that no packet is fragmented', async () => {
    for (const pod of pods)
      await eventually(`${pod.netns}: MTU`, async () =>
        (await lab.mtuOf(pod.netns)) === MTU2 - 50 ? true : undefined,
      );
    const fragments = async (netns: string): Promise<number> => {
      const lines = (await run('ip', 'netns', 'exec', netns, 'cat', '/proc/net/snmp')).split('\n');
      const [names = '', values = ''] = lines.filter((line) => line.startsWith('Ip:'));
      return Number(values.split(' ')[names.split(' ').indexOf('FragCreates')]);
    };
    const everywhere = [lab.router, ...hosts.map(({ netns }) => netns), ...pods.map(({ netns }) => netns)];
    const counted = async (): Promise<number[]> => Promise.all(everywhere.map(fragments));
    const earlier = await counted();
    for (const family of [0, 1]) {
      assert.equal(await lab.transfer(pods[0].netns, pods[2].ips[family] ?? '', 4_000_000), 4_000_000);
      assert.equal(await lab.transfer(pods[2].netns, pods[0].ips[family] ?? '', 4_000_000), 4_000_000);
    }
    assert.deepEqual(await counted(), earlier);
  });

  test('pods connect to hosts and external networks with the source address of their host', async () => {
    const outside = await lab.pod(hosts[1], 'extra');
    assert.ok(outside.ips[0]);
    // The server of a host is a process in the namespace of the host.
    await reaches(pods[0], pods[1].ips[0] ?? '', pods[0].ips[0] ?? '');
    const { spawn } = await import('node:child_process');
    const script = `require('net').createServer((s) => { s.on('error', () => {}); s.end(s.remoteAddress.replace('::ffff:', '')); }).listen(80, '::', () => console.log('up'))`;
    const server = spawn('ip', ['netns', 'exec', lab.router, process.execPath, '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await new Promise((resolve) => server.stdout.once('data', resolve));
      await reaches(pods[0], '198.51.100.1', '192.0.2.10');
      await reaches(pods[0], '2001:db8:2::1', '2001:db8:1::10');
    } finally {
      server.kill('SIGKILL');
    }
  });

  test('an address of the pod network without a pod is unreachable and not routed to the default gateway', async () => {
    assert.match(await lab.reach(pods[0].netns, '10.131.255.1'), /EHOSTUNREACH|ENETUNREACH/);
    assert.match(await lab.reach(pods[0].netns, 'fd01:0:0:ff::1'), /EHOSTUNREACH|ENETUNREACH|EACCES/);
  });

  test('pod routes follow a changed address of a host', async () => {
    const [one, , three] = hosts;
    const began = performance.now();
    await three.ip('addr', 'del', '198.51.100.12/24', 'dev', 'eth0');
    await three.ip('addr', 'add', '198.51.100.77/24', 'dev', 'eth0');
    await three.ip('route', 'replace', 'default', 'via', '198.51.100.1').catch(() => {});
    await eventually('the new address in the Node', async () =>
      three.addresses.includes('198.51.100.77') ? true : undefined,
    );
    await reaches(pods[0], pods[2].ips[0] ?? '', pods[0].ips[0] ?? '');
    console.log(`reached again ${Math.round(performance.now() - began)} ms after the address changed`);
    await reaches(pods[2], pods[1].ips[0] ?? '', pods[2].ips[0] ?? '');
    assert.match(await run('ip', 'netns', 'exec', one.netns, 'bridge', 'fdb', 'show'), /dst 198\.51\.100\.77 /);
    assert.doesNotMatch(await run('ip', 'netns', 'exec', one.netns, 'bridge', 'fdb', 'show'), /198\.51\.100\.12 /);
  });

  test('removes the pod routes of nodes that were deleted before a crash, and keeps foreign routes', async () => {
    const [one, two, three] = hosts;
    await one.kill();
    await reaches(pods[0], pods[1].ips[0] ?? '', pods[0].ips[0] ?? '');
    await one.ip('route', 'add', '10.129.8.0/23', 'via', '192.0.2.11');
    await one.ip('route', 'add', '10.129.10.0/23', 'via', '192.0.2.11', 'proto', '178', 'metric', '178');
    await one.start();
    await lab.publish([one, two]);
    await eventually('stale routes removed', async () => {
      const left = (await ownRoutes(one)).map(({ dst }) => dst).sort();
      return left.join() === '10.128.0.0/14,10.128.22.0/23' ? true : undefined;
    });
    assert.match(await one.ip('route', 'show', '10.129.8.0/23'), /via 192\.0\.2\.11/);
    assert.doesNotMatch(await one.ip('link'), /vx4/);
    await reaches(pods[0], pods[1].ips[0] ?? '', pods[0].ips[0] ?? '');
    await lab.publish([one, two, three]);
    await reaches(pods[0], pods[2].ips[0] ?? '', pods[0].ips[0] ?? '');
  });

  test('a stopping host removes its pod routes and links', async () => {
    const [one] = hosts;
    await one.ask({ verb: 'stop' });
    assert.deepEqual([...(await ownRoutes(one)), ...(await ownRoutes(one, '-6'))], []);
    assert.doesNotMatch(await one.ip('link'), /hyper0|: ve/);
  });
});
