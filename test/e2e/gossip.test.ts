/**
 * A ring of three hosts and a stock serf agent, each in a network namespace on one switch. Members are killed and
 * disconnected, and keys are rotated while events are sent.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { callAgent, createGossipHints } from '../../src/gossip/agent/index.ts';
import { newKeyringText } from '../../src/gossip/memberlist/index.ts';
import type { AgentEvent, AgentMember } from '../../src/gossip/membership/agent-port.ts';
import { systemClock } from '../../src/host/process/process.ts';
import type { GossipMember } from '../../src/store/gossip-port.ts';
import { eventually, projectRoot, type Ran, run, sleep } from './harness.ts';

const missing =
  (await run('serf', ['version'])).code === 0 ? false : 'there is no serf on this host (Debian package serf)';
const HOSTS = ['a', 'b', 'c'] as const;
const addressOf = (name: string): string => `10.77.0.${'abcs'.indexOf(name) + 1}`;

let directory = '';
const holders = new Map<string, ChildProcess>();
const members = new Map<string, ChildProcess>();
const logs = new Map<string, string>();
const rootOf = (name: string): string => join(directory, name);
const inside = (name: string, file: string, ...args: string[]): Promise<Ran> =>
  run('nsenter', ['-t', String(holders.get(name)?.pid), '-n', file, ...args]);

async function must(name: string, file: string, ...args: string[]): Promise<string> {
  const ran = await inside(name, file, ...args);
  if (ran.code !== 0) throw new Error(`${file} ${args.join(' ')}: ${ran.stderr}${ran.stdout}`);
  return ran.stdout;
}

async function namespace(name: string): Promise<void> {
  const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
  holders.set(name, holder);
  const ours = await readlink('/proc/self/ns/net');
  await eventually('network namespace', 10_000, async () =>
    (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
  );
  await must(name, 'ip', 'link', 'set', 'lo', 'up');
}

async function attach(name: string): Promise<void> {
  await namespace(name);
  const pid = String(holders.get(name)?.pid);
  await must('switch', 'ip', 'link', 'add', `p-${name}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pid);
  await must('switch', 'ip', 'link', 'set', `p-${name}`, 'master', 'br0', 'up');
  await must(name, 'ip', 'addr', 'add', `${addressOf(name)}/24`, 'dev', 'eth0');
  await must(name, 'ip', 'link', 'set', 'eth0', 'up');
}

/** Disconnects a host from the switch. */
const cut = (name: string): Promise<string> => must('switch', 'ip', 'link', 'set', `p-${name}`, 'nomaster');
const heal = (name: string): Promise<string> => must('switch', 'ip', 'link', 'set', `p-${name}`, 'master', 'br0');

function launch(name: string, file: string, args: readonly string[]): void {
  const child = spawn('nsenter', ['-t', String(holders.get(name)?.pid), '-n', file, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  members.set(name, child);
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text: Buffer) => logs.set(name, `${logs.get(name) ?? ''}${text.toString()}`.slice(-20_000)));
}

const startHost = (name: string): void =>
  launch(name, process.execPath, [join(projectRoot, 'test/e2e/gossip-host.child.ts'), rootOf(name)]);
const startSerf = (): void => {
  const bind = `-bind=${addressOf('s')}`;
  launch('s', 'serf', [
    'agent',
    '-node=s',
    bind,
    `-keyring-file=${join(directory, 's.json')}`,
    `-join=${addressOf('a')}`,
  ]);
};

const socketOf = (name: string): string => join(rootOf(name), 'run/hyperedge/agent.sock');
const hyperedge = (name: string, ...args: string[]): Promise<Ran> =>
  run(process.execPath, [join(projectRoot, 'src/main.ts'), 'gossip', ...args, '--root', rootOf(name)]);

/** Members as `name` sees them: `a alive, b alive, …`. */
async function view(name: string): Promise<string> {
  if (name === 's') {
    const lines = (await inside('s', 'serf', 'members')).stdout.trim().split('\n');
    return lines
      .map((line) => `${line.split(/\s+/)[0]} ${line.split(/\s+/)[2]}`)
      .sort()
      .join(', ');
  }
  const all = await callAgent<AgentMember[]>(socketOf(name), 'members', {}, 5000);
  return all
    .map((member) => `${member.name} ${member.state}`)
    .sort()
    .join(', ');
}
const ALL = 'a alive, b alive, c alive, s alive';

async function settled(what: string, limitMs: number, names: readonly string[] = [...HOSTS, 's']): Promise<number> {
  const begin = performance.now();
  for (const name of names)
    await eventually(`${name}: ${what}`, limitMs, async () => {
      const seen = await view(name);
      if (seen !== ALL) throw new Error(`${seen}\n${(logs.get(name) ?? '').slice(-1500)}`);
      return true;
    });
  return performance.now() - begin;
}

/** Collects all events that `name` receives from now on. */
function listen(name: string): { readonly events: AgentEvent[]; close(): void } {
  const events: AgentEvent[] = [];
  const connection = createConnection(socketOf(name));
  let rest = '';
  connection.on('error', () => {});
  connection.on('data', (chunk) => {
    const lines = `${rest}${chunk.toString()}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const { event } = JSON.parse(line);
      if (event !== undefined) events.push(event);
    }
  });
  connection.write('{"id":1,"method":"subscribe"}\n');
  return { events, close: () => connection.destroy() };
}
const failures = (events: readonly AgentEvent[]): string[] =>
  events.flatMap((event) => (event.kind === 'failed' ? [event.member.name] : []));

async function end(name: string, signal: NodeJS.Signals): Promise<void> {
  const child = members.get(name);
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill(signal);
  await ended;
}

before(async () => {
  if (missing !== false) return;
  directory = await mkdtemp(join(tmpdir(), 'he-ring-'));
  await namespace('switch');
  await must('switch', 'ip', 'link', 'add', 'br0', 'type', 'bridge');
  await must('switch', 'ip', 'link', 'set', 'br0', 'up');
  for (const name of [...HOSTS, 's']) await attach(name);
  await writeFile(join(directory, 's.json'), newKeyringText(), { mode: 0o600 });
  for (const name of HOSTS) {
    await mkdir(join(rootOf(name), 'etc/origin/node'), { recursive: true });
    await copyFile(join(directory, 's.json'), join(rootOf(name), 'etc/origin/node/gossip-keyring.json'));
    await writeFile(
      join(rootOf(name), 'etc/origin/bootstrap.yaml'),
      `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nnode: {name: ${name}}\ngossip:\n  join: [10.77.0.1, "10.77.0.2:7946", 10.77.0.3]\n`,
    );
  }
});

after(async () => {
  for (const name of members.keys()) await end(name, 'SIGKILL');
  for (const holder of holders.values()) holder.kill('SIGKILL');
  if (directory !== '') await rm(directory, { recursive: true, force: true });
});

test('joins hosts that start at different times, and a stock serf agent', {
  skip: missing,
  timeout: 60_000,
}, async (t) => {
  startHost('c');
  await sleep(1500);
  startHost('b');
  startHost('a');
  await eventually('a serves', 20_000, async () => ((await view('a')) === '' ? undefined : true));
  startSerf();
  t.diagnostic(`all see all after ${Math.round(await settled('all see all', 20_000))} ms`);
  const { stdout } = await hyperedge('b', 'members', '-o', 'wide');
  assert.match(stdout, /^NAME +ADDRESS +STATE +SINCE +ROLES +VERSION +STORE/);
  assert.match(stdout, /^a +10\.77\.0\.1:7946 +alive +\d+s +master\+etcd\+node/m);
  assert.match(stdout, /^b\* /m);
  assert.match((await inside('s', 'serf', 'members')).stdout, /addr\.peer=10\.77\.0\.1:2380/);
});

test('does not declare a member dead that is suspended for a second', { skip: missing, timeout: 60_000 }, async () => {
  const heard = listen('b');
  for (let i = 0; i < 3; i++) {
    members.get('a')?.kill('SIGSTOP');
    await sleep(1000);
    members.get('a')?.kill('SIGCONT');
    await sleep(700);
  }
  await settled('all see all', 10_000);
  assert.deepEqual(failures(heard.events), []);
  heard.close();
});

test('declares a killed member dead within seconds, and the member rejoins', {
  skip: missing,
  timeout: 120_000,
}, async (t) => {
  for (let i = 0; i < 3; i++) {
    const [b, c] = [listen('b'), listen('c')];
    await end('a', 'SIGKILL');
    const begin = performance.now();
    const took = await Promise.all(
      [b, c].map(({ events }) =>
        eventually('a is dead', 10_000, () => (failures(events).includes('a') ? performance.now() - begin : undefined)),
      ),
    );
    t.diagnostic(`confirmed dead after ${took.map((ms) => Math.round(ms)).join(' and ')} ms`);
    assert.ok(Math.max(...took) < 6000);
    assert.deepEqual([...new Set([...failures(b.events), ...failures(c.events)])], ['a']);
    for (const each of [b, c]) each.close();
    startHost('a');
    await settled('all see all', 20_000, HOSTS);
  }
  await settled('all see all', 20_000);
});

test('reports a killed store immediately while its host is alive', {
  skip: missing,
  timeout: 60_000,
}, async (t) => {
  const output: (readonly GossipMember[])[] = [];
  const hints = createGossipHints({ socket: socketOf('b'), clock: systemClock, log: silentLog });
  hints.subscribe((all) => output.push(all));
  const store = (): GossipMember | undefined => output.at(-1)?.find(({ memberId }) => memberId === '00000000000000aa');
  const took: number[] = [];
  for (let i = 0; i < 5; i++) {
    const etcd = createConnection(socketOf('a'));
    etcd.on('error', () => {});
    etcd.write(
      `{"id":1,"method":"publish","params":{"memberId":"00000000000000aa","leader":"00000000000000bb","appliedIndex":${i},"fsyncMs":3}}\n`,
    );
    await eventually('b has the facts of the store', 5000, () =>
      store()?.leaderSeen?.leader === '00000000000000bb' ? true : undefined,
    );
    await sleep(300);
    const begin = performance.now();
    etcd.destroy();
    while (store()?.confirmedDead !== true && performance.now() - begin < 5000) await sleep(1);
    took.push(Math.round(performance.now() - begin));
    assert.equal(store()?.leaderSeen, undefined);
  }
  await hints.close();
  t.diagnostic(`known after ${took.join(', ')} ms`);
  assert.ok(Math.max(...took) < 1000);
});

test('each side of a network partition declares the other members dead, and the ring merges after reconnection', {
  skip: missing,
  timeout: 120_000,
}, async (t) => {
  await cut('a');
  await eventually('b declares a dead', 20_000, async () => (/a dead/.test(await view('b')) ? true : undefined));
  await eventually('a declares all members dead', 40_000, async () =>
    (await view('a')).match(/dead/g)?.length === 3 ? true : undefined,
  );
  await heal('a');
  t.diagnostic(`one ring again after ${Math.round(await settled('one ring', 60_000))} ms`);
});

test('rotates gossip keys on all members, including the stock serf agent, while events are sent', {
  skip: missing,
  timeout: 120_000,
}, async () => {
  const heard = HOSTS.map((name) => listen(name));
  let sent = 0;
  let going = true;
  const traffic = (async () => {
    for (; going; sent++) {
      await must('s', 'serf', 'event', '-coalesce=false', `e${sent}`, 'payload');
      await sleep(50);
    }
  })();
  const [next = ''] = JSON.parse(newKeyringText());
  const listed = JSON.parse((await hyperedge('a', 'keys', 'list', '-o', 'json')).stdout);
  assert.equal(listed.members, 4);
  const tooSoon = await hyperedge('a', 'keys', 'use', next);
  assert.equal(tooSoon.code, 1);
  assert.match(tooSoon.stderr, /install the key first/);
  for (const [action, key] of [
    ['install', next],
    ['use', next],
    ['remove', listed.primary],
  ] as const) {
    const ran = await hyperedge('b', 'keys', action, key);
    assert.equal(ran.stderr, '');
    assert.equal(ran.stdout, 'done on 4 of 4 members\n');
  }
  await sleep(500);
  going = false;
  await traffic;
  assert.ok(sent > 10);
  for (const { events, close } of heard) {
    // A table exchange repeats an event whose datagrams were all lost.
    await eventually('every event', 45_000, () => {
      const names = new Set(events.flatMap((event) => (event.kind === 'user-event' ? [event.name] : [])));
      return names.size === sent ? true : undefined;
    });
    assert.deepEqual(failures(events), []);
    close();
  }
  assert.equal((await hyperedge('c', 'keys', 'list')).stdout.split('\n')[1]?.replaceAll(/ +/g, ' '), `${next} 4/4 4`);
  await settled('all see all', 10_000);
});

test('a gossip member leaves and joins by command and announces a regular stop', {
  skip: missing,
  timeout: 60_000,
}, async () => {
  const heard = listen('b');
  assert.equal((await hyperedge('c', 'leave')).stdout, 'this host has left the ring\n');
  await eventually('c has left', 10_000, async () => (/c left/.test(await view('b')) ? true : undefined));
  const outside = await hyperedge('c', 'members');
  assert.equal(outside.code, 1);
  assert.match(outside.stderr, /left the ring; run hyperedge gossip join/);
  assert.equal((await hyperedge('c', 'join', addressOf('a'))).stdout, 'joined 1 of 1\n');
  await settled('all see all', 10_000);
  const begin = performance.now();
  await end('c', 'SIGTERM');
  assert.ok(performance.now() - begin < 3000);
  await eventually('c has left', 10_000, async () => (/c left/.test(await view('b')) ? true : undefined));
  assert.match(await view('s'), /c left/);
  assert.deepEqual(failures(heard.events), []);
  heard.close();
});
