/** Pods cannot forge frames or source addresses, and network settings removed by another program are restored. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, describe, test } from 'node:test';
import { tunnelMac } from '../../../src/network/pods/core/plan.ts';
import { eventually, type Host, Lab, type LabPod, run } from './lab.ts';

const skip = process.getuid?.() === 0 ? false : 'needs root for network namespaces';
const podCidrs = (number: number): string[] => [`10.128.${number * 2}.0/23`, `fd01:0:0:${number}::/64`];
const PORT = 5_555;
const NEVER_MS = 1_500;

/** Prints each datagram that arrives, with its source. */
const LISTENER = `
for (const type of ['udp4', 'udp6']) {
  const socket = require('dgram').createSocket({ type, ipv6Only: type === 'udp6' });
  socket.on('message', (d, from) => console.log(d + ' from ' + from.address));
  socket.bind(${PORT}, () => console.log('bound'));
}`;
/** argv: source or '-', destination, port, payload in hexadecimal. */
const SENDER = `
const [from, to, port, hex] = process.argv.slice(1);
const socket = require('dgram').createSocket(to.includes(':') ? 'udp6' : 'udp4');
socket.bind(0, from === '-' ? undefined : from, () =>
  socket.send(Buffer.from(hex, 'hex'), Number(port), to, () => socket.close()));`;

const hex = (text: string): string => Buffer.from(text).toString('hex');
const addressBytes = (address: string): number[] => address.split('.').map(Number);

function sum(bytes: Buffer): number {
  let total = 0;
  for (let index = 0; index < bytes.length; index += 2) total += bytes.readUInt16BE(index);
  while (total > 0xffff) total = (total & 0xffff) + (total >>> 16);
  return ~total & 0xffff;
}

/** A VXLAN packet with a UDP datagram from `source` inside. Sources: RFC 7348 §5, RFC 791, RFC 768. */
function frame(mac: string, source: string, destination: string, payload: string): string {
  const data = Buffer.from(payload);
  const udp = Buffer.alloc(8);
  udp.writeUInt16BE(4_444, 0);
  udp.writeUInt16BE(PORT, 2);
  udp.writeUInt16BE(8 + data.length, 4);
  const ip = Buffer.from([
    0x45,
    0,
    0,
    0,
    0,
    1,
    0,
    0,
    64,
    17,
    0,
    0,
    ...addressBytes(source),
    ...addressBytes(destination),
  ]);
  ip.writeUInt16BE(ip.length + udp.length + data.length, 2);
  ip.writeUInt16BE(sum(ip), 10);
  const vxlan = Buffer.alloc(8);
  vxlan[0] = 8;
  vxlan.writeUIntBE(26_725, 4, 3);
  const ethernet = Buffer.concat([
    Buffer.from(mac.replaceAll(':', ''), 'hex'),
    Buffer.from([0x0a, 0, 0, 0, 0, 9, 0x08, 0x00]),
  ]);
  return Buffer.concat([vxlan, ethernet, ip, udp, data]).toString('hex');
}

describe('two hosts behind a router', { skip, timeout: 180_000 }, () => {
  let lab: Lab;
  let one: Host;
  let two: Host;
  let own: LabPod;
  let target: LabPod;
  let neighbor: LabPod;
  let heard = '';
  let listener: ReturnType<typeof spawn> | undefined;

  before(async () => {
    lab = await Lab.create(1400);
    const options = (number: number) => ({
      backend: 'auto' as const,
      ipFamilies: ['IPv4', 'IPv6'] as const,
      clusterCidrs: ['10.128.0.0/14', 'fd01::/48'],
      podCidrs: podCidrs(number),
    });
    one = await lab.plug(1, 10, options(10));
    two = await lab.plug(2, 12, options(12));
    await Promise.all([one.start(), two.start()]);
    own = await lab.pod(one, 'p0');
    target = await lab.pod(two, 'p2');
    neighbor = await lab.pod(two, 'p3');
    await lab.publish();
    await eventually('the pods reach each other', async () =>
      (await lab.reach(own.netns, target.ips[0] ?? '')) === own.ips[0] ? true : undefined,
    );
    listener = spawn('ip', ['netns', 'exec', target.netns, process.execPath, '-e', LISTENER], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    listener.stdout?.setEncoding('utf8').on('data', (text: string) => {
      heard += text;
    });
    await eventually('the listener', async () => (heard.split('bound').length > 2 ? true : undefined));
  });

  after(async () => {
    listener?.kill('SIGKILL');
    await lab?.destroy();
  });

  const send = (netns: string, from: string, to: string, port: number, payload: string): Promise<string> =>
    run('ip', 'netns', 'exec', netns, process.execPath, '-e', SENDER, from, to, String(port), payload);
  const arrives = (what: string): Promise<true> =>
    eventually(what, async () => (heard.includes(what) ? true : undefined), 5_000);
  const neverArrives = async (what: string): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, NEVER_MS));
    assert.ok(!heard.includes(what), `${what} arrived: ${heard}`);
  };

  test('hosts accept VXLAN frames only from hosts of the cluster, not from pods or other machines', async () => {
    const mac = tunnelMac(two.podCidrs[0] ?? '') ?? '';
    const [to = ''] = target.ips;
    const forged = (payload: string): string => frame(mac, '10.128.20.99', to, payload);
    await send(one.netns, '-', '198.51.100.12', 4789, forged('frame-of-a-host'));
    await arrives('frame-of-a-host');
    await send(own.netns, '-', '198.51.100.12', 4789, forged('frame-of-a-far-pod'));
    await send(neighbor.netns, '-', '198.51.100.12', 4789, forged('frame-of-a-near-pod'));
    await send(neighbor.netns, '-', '10.128.24.1', 4789, forged('frame-to-the-gateway'));
    await send(lab.router, '-', '198.51.100.12', 4789, forged('frame-of-a-machine'));
    await neverArrives('frame-of-a-far-pod');
    for (const each of ['frame-of-a-near-pod', 'frame-to-the-gateway', 'frame-of-a-machine'])
      assert.ok(!heard.includes(each), heard);
  });

  test('hosts forward only packets whose source is an address of the sending pod, for IPv4 and IPv6', async () => {
    for (const [index, forged] of ['10.128.24.99', 'fd01:0:0:12::99'].entries()) {
      const to = target.ips[index] ?? '';
      await run('ip', '-n', neighbor.netns, 'addr', 'add', `${forged}/${index === 0 ? 32 : 128}`, 'dev', 'eth0');
      await send(neighbor.netns, neighbor.ips[index] ?? '', to, PORT, hex(`own-source-${index}`));
      await arrives(`own-source-${index}`);
      await send(neighbor.netns, forged, to, PORT, hex(`forged-source-${index}`));
      await neverArrives(`forged-source-${index}`);
    }
  });

  test('pods cannot connect to the machine config server, not even by link-local addresses', async () => {
    const ports = [22_623, 22_999];
    const server = spawn(
      'ip',
      [
        'netns',
        'exec',
        two.netns,
        process.execPath,
        '-e',
        `for (const port of [${ports}]) require('net').createServer((s) => s.end()).listen(port, '::');`,
      ],
      { stdio: 'ignore' },
    );
    const connect = (to: string, port: number): Promise<string> =>
      run(
        ...['ip', 'netns', 'exec', neighbor.netns, process.execPath, '-e'],
        `const end = (text) => { console.log(text); process.exit(); };
         require('net').connect(${port}, '${to}').on('connect', () => end('open')).on('error', (e) => end(e.code));
         setTimeout(() => end('no answer'), 2000);`,
      );
    try {
      for (const to of ['10.128.24.1', 'fd01:0:0:12::1', 'fe80::1%eth0']) {
        await eventually(`${to} answers`, async () =>
          (await connect(to, 22_999)).trim() === 'open' ? true : undefined,
        );
        assert.notEqual((await connect(to, 22_623)).trim(), 'open', to);
      }
    } finally {
      server.kill('SIGKILL');
    }
  });

  test('hosts ignore router advertisements sent by a pod', async () => {
    const [, link = ''] = /(ve[0-9a-f]{11})@/.exec(await two.ip('link')) ?? [];
    const setting = `/proc/sys/net/ipv6/conf/${link}/accept_ra`;
    assert.equal((await run('ip', 'netns', 'exec', two.netns, 'cat', setting)).trim(), '0');
  });

  test('reports foreign chains that drop forwarded packets, and pod traffic passes the chains of Docker and ufw', async () => {
    const inside = (...args: string[]): Promise<string> => run('ip', 'netns', 'exec', two.netns, ...args);
    const nft = (...commands: string[]): Promise<string> => inside('nft', commands.join('; '));
    const fault = async (): Promise<string | undefined> =>
      (await two.ask({ verb: 'forwarding' })) as string | undefined;
    const works = async (): Promise<boolean> =>
      (await lab.reach(neighbor.netns, target.ips[0] ?? '')) === neighbor.ips[0];
    assert.equal(await fault(), undefined);
    const base = '{ type filter hook forward priority filter; policy drop; }';
    await nft('add table ip foreign', `add chain ip foreign forward ${base}`);
    assert.match(
      (await fault()) ?? '',
      /dropped by table ip foreign, chain forward, policy drop; accept 10\.128\.24\.0/,
    );
    assert.equal(await works(), false);
    await nft('add rule ip foreign forward ip saddr 10.0.0.0/8 counter drop');
    assert.match((await fault()) ?? '', /table ip foreign, chain forward, rule "ip saddr 10\.0\.0\.0\/8 counter drop"/);
    await nft('delete table ip foreign');
    assert.equal(await fault(), undefined);
    assert.equal(await works(), true);
    for (const chain of ['DOCKER-USER', 'ufw-before-forward']) {
      await nft(
        'add table ip filter',
        `add chain ip filter FORWARD ${base}`,
        `add chain ip filter ${chain}`,
        `add rule ip filter FORWARD jump ${chain}`,
      );
      assert.equal(await fault(), undefined, chain);
      assert.equal(await works(), true, chain);
      await fault();
      assert.equal((await inside('nft', 'list', 'chain', 'ip', 'filter', chain)).match(/counter .*accept/g)?.length, 2);
      await nft('delete table ip filter');
    }
    await nft('add table ip6 foreign', `add chain ip6 foreign forward ${base}`);
    assert.match((await fault()) ?? '', /table ip6 foreign, chain forward, policy drop; accept fd01:0:0:12::\/64/);
    await nft('delete table ip6 foreign');
    assert.equal(await fault(), undefined);
  });

  test('hosts restore links, addresses, routes and tables that another program removed', async () => {
    const inside = (...args: string[]): Promise<string> => run('ip', 'netns', 'exec', two.netns, ...args);
    const linkOf = async (ip: string): Promise<string> =>
      /dev (\S+)/.exec(await two.ip('route', 'show', ip))?.[1] ?? '';
    const ip = target.ips[0] ?? '';
    const link = await linkOf(ip);
    const works = async (): Promise<true | undefined> => {
      for (const [from, to] of [
        [own, target],
        [neighbor, target],
      ] as const)
        for (const index of [0, 1])
          if ((await lab.reach(from.netns, to.ips[index] ?? '')) !== from.ips[index]) return undefined;
      return (await inside('nft', 'list', 'tables')).match(/hyperedge-(pods|overlay)$/gm)?.length === 3
        ? true
        : undefined;
    };
    const damages: readonly (readonly [string, () => Promise<unknown>])[] = [
      ['pod route', () => two.ip('route', 'del', ip)],
      ['pod routes of IPv6', () => two.ip('-6', 'route', 'flush', 'dev', link)],
      ['route to the other host', () => two.ip('route', 'flush', 'proto', '178')],
      ['gateway address', () => two.ip('addr', 'flush', 'dev', 'hyper0')],
      ['bridge', () => two.ip('link', 'del', 'hyper0')],
      ['pod link down', () => two.ip('link', 'set', link, 'down')],
      ['tunnel', () => two.ip('link', 'del', 'hyper0-vx4')],
      ['packet filter', () => inside('nft', 'flush', 'ruleset')],
      ['one chain', () => inside('nft', 'flush', 'chain', 'ip', 'hyperedge-pods', 'source_guard')],
      ['hosts of the tunnel', () => inside('nft', 'flush', 'set', 'inet', 'hyperedge-overlay', 'hosts4')],
      ['forwarding', () => inside('sysctl', '-qw', 'net.ipv4.ip_forward=0')],
    ];
    for (const [what, damage] of damages) {
      await damage();
      await eventually(`${what} restored`, works, 15_000);
    }
    assert.match(await inside('nft', 'list', 'chain', 'ip', 'hyperedge-pods', 'source_guard'), /fib saddr/);
    const server = await run('ip', '-n', target.netns, 'addr', 'show', 'dev', 'eth0');
    assert.match(server, new RegExp(ip));
    await two.ip('link', 'del', link);
    await eventually('pod link restored', works, 15_000);
    assert.equal(await linkOf(ip), link);
  });
});
