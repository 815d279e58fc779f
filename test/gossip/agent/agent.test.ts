import assert from 'node:assert/strict';
import { stat, writeFile } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { callAgent, createGossipHints, serveAgent } from '../../../src/gossip/agent/index.ts';
import { newKeyringText } from '../../../src/gossip/memberlist/index.ts';
import type { AgentMember, AgentService } from '../../../src/gossip/membership/agent-port.ts';
import type { GossipHints, GossipMember } from '../../../src/store/gossip-port.ts';
import { directory, startAgent, type TestAgent } from '../membership/agents.ts';
import { clock, eventually } from '../membership/ring.ts';

const ask = <T>(agent: TestAgent, method: string, params: unknown = {}): Promise<T> =>
  callAgent<T>(agent.socket, method, params, 10_000);
const address = (agent: TestAgent): string => `${agent.address.ip}:${agent.address.port}`;
const memberOf = async (agent: TestAgent, name: string): Promise<AgentMember | undefined> =>
  (await ask<AgentMember[]>(agent, 'members')).find((member) => member.name === name);

/** A raw client, for requests that a real client does not send. */
async function raw(socket: string): Promise<{ socket: Socket; lines: string[]; closed: Promise<void> }> {
  const connection = createConnection(socket);
  await new Promise((resolve) => connection.once('connect', resolve));
  const lines: string[] = [];
  let rest = '';
  connection.on('data', (chunk) => {
    rest += chunk.toString();
    const parts = rest.split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts);
  });
  connection.on('error', () => {});
  return { socket: connection, lines, closed: new Promise((resolve) => connection.once('close', () => resolve())) };
}

/** Creates hints and records every reported list of members. */
function hintsOf(socket: string, output: (readonly GossipMember[])[]): GossipHints {
  const hints = createGossipHints({ socket, clock, log: silentLog, heardWithinMs: 300 });
  hints.subscribe((members) => output.push(members));
  return hints;
}
const idOf = (digit: string): string => digit.repeat(16);

test('a gossip agent restricts its socket to its user and lists members with their published facts', async () => {
  await using dir = await directory();
  await using a = await startAgent('a', { directory: dir.path });
  await using b = await startAgent('b', { directory: dir.path, peers: [address(a)] });
  assert.equal((await stat(a.socket)).mode & 0o777, 0o600);
  await eventually('b sees a', async () => (await memberOf(b, 'a'))?.state === 'alive');
  const seen = await memberOf(b, 'a');
  assert.deepEqual(
    [seen?.self, seen?.roles, seen?.addresses, seen?.version, seen?.tags['role']],
    [false, ['etcd'], { etcd: '127.0.0.1:2379' }, 'v1', 'etcd'],
  );
  assert.equal((await memberOf(b, 'b'))?.self, true);
});

test('a gossip agent rejects invalid input with the field and a fix, without affecting other clients', async () => {
  await using dir = await directory();
  await using a = await startAgent('a', { directory: dir.path });
  const client = await raw(a.socket);
  const wrong: readonly [string, RegExp][] = [
    ['{', /"code":"bad-request".*not JSON/],
    ['[]', /id: give a whole number/],
    ['null', /id: give a whole number/],
    ['{"id":1}', /"id":1.*method: give a string/],
    ['{"id":2,"method":"reboot"}', /"id":2.*unknown-method.*members, subscribe/],
    ['{"id":3,"method":"publish","params":{"memberId":"x"}}', /appliedIndex: give a number/],
    ['{"id":4,"method":"publish","params":{"memberId":"x","appliedIndex":1,"fsyncMs":1}}', /memberId: give 16/],
    ['{"id":5,"method":"publish","params":{"__proto__":1}}', /__proto__: unknown field; known fields are memberId/],
    ['{"id":6,"method":"join","params":{"peers":[]}}', /peers: give a list/],
    ['{"id":7,"method":"join","params":{"peers":[7]}}', /peers: give addresses/],
    ['{"id":8,"method":"keys","params":{"action":"steal"}}', /action: give one of list, install, use, remove/],
    ['{"id":9,"method":"keys","params":{"action":"install","key":"AAAA"}}', /key: give 16, 24 or 32 bytes/],
    ['{"id":10,"method":"keys","params":{"action":"list"}}', /no-keyring.*not encrypted/],
    ['{"id":11,"method":"members","params":7}', /"id":11,"result"/],
  ];
  for (const [index, [line, answer]] of wrong.entries()) {
    client.socket.write(`${line}\n`);
    await eventually(`an answer to ${line}`, () => client.lines.length > index);
    assert.match(client.lines[index] ?? '', answer);
  }
  client.socket.write('x'.repeat(200_000));
  await client.closed;
  assert.match(client.lines.at(-1) ?? '', /line-too-long/);
  assert.equal((await memberOf(a, 'a'))?.state, 'alive');
});

test('disconnects a client that does not read, without delaying other clients', async () => {
  await using dir = await directory();
  const socket = join(dir.path, 'agent.sock');
  let tell = (_: string): void => {};
  let closed = 0;
  const service: AgentService = {
    open: () => ({
      request: async (_method, _params, emit) => {
        tell = (payload) => emit({ kind: 'user-event', name: 'x', payload });
        return {};
      },
      closed: () => {
        closed++;
      },
    }),
  };
  const server = await serveAgent({ socket, service, log: silentLog });
  try {
    const slow = await raw(socket);
    slow.socket.write('{"id":1,"method":"subscribe"}\n');
    await eventually('subscribed', () => slow.lines.length > 0);
    slow.socket.pause();
    let reported = 0;
    while (closed === 0 && reported < 400) {
      tell('x'.repeat(64 * 1024));
      reported++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    // The kernel's socket buffers hold a few hundred kilobytes more.
    assert.ok(reported < 300, `${reported} × 64 KiB were kept for a reader that reads nothing`);
    assert.equal(closed, 1);
    assert.deepEqual(await callAgent(socket, 'anything', {}, 5000), {});
    slow.socket.destroy();
  } finally {
    await server.stop();
  }
});

test('a gossip agent limits concurrent connections and requests', async () => {
  await using dir = await directory();
  const socket = join(dir.path, 'agent.sock');
  const service: AgentService = { open: () => ({ request: () => new Promise(() => {}), closed: () => {} }) };
  const server = await serveAgent({ socket, service, log: silentLog });
  try {
    const client = await raw(socket);
    for (let id = 1; id <= 20; id++) client.socket.write(`{"id":${id},"method":"members"}\n`);
    await eventually('four surplus connections', () => client.lines.length === 4);
    assert.ok(client.lines.every((line) => line.includes('too-many')));
    const others = await Promise.all(Array.from({ length: 40 }, () => raw(socket)));
    await eventually('some connections are rejected', () => others.filter((each) => each.socket.closed).length === 9);
    for (const each of [client, ...others]) each.socket.destroy();
  } finally {
    await server.stop();
  }
});

test('publishes leader changes at once, progress later, and the regular and unexpected end of a store', async () => {
  await using dir = await directory();
  await using a = await startAgent('a', { directory: dir.path });
  await using b = await startAgent('b', { directory: dir.path, peers: [address(a)] });
  await eventually('b sees a', async () => (await memberOf(b, 'a'))?.state === 'alive');
  const heardByB: (readonly GossipMember[])[] = [];
  const ofA = createGossipHints({ socket: a.socket, clock, log: silentLog, heardWithinMs: 300 });
  const ofB = hintsOf(b.socket, heardByB);
  const latest = (): GossipMember | undefined => heardByB.at(-1)?.find((member) => member.memberId === idOf('a'));
  const publish = (leader: string | undefined, appliedIndex: number, leaderHeardAgoMs = 0): void =>
    ofA.publish({ memberId: idOf('a'), leader, leaderHeardAgoMs, appliedIndex, fsyncMs: 1.5 });
  const within = async (what: string, limitMs: number, test: () => boolean): Promise<void> => {
    const begin = performance.now();
    await eventually(what, test);
    assert.ok(performance.now() - begin < limitMs, `${what}: ${performance.now() - begin} ms`);
  };
  publish(idOf('c'), 10);
  await eventually('b receives the event', () => latest()?.leaderSeen?.leader === idOf('c'));
  assert.deepEqual([latest()?.alive, latest()?.confirmedDead, latest()?.appliedIndex], [true, false, 10]);
  // Metadata is published every 5 s here; leader changes must not wait for that.
  publish(idOf('d'), 11);
  await within('another leader', 1500, () => latest()?.leaderSeen?.leader === idOf('d'));
  await within('silence of the leader, without anybody saying so', 1500, () => latest()?.leaderSeen === undefined);
  assert.equal(latest()?.alive, true);
  publish(idOf('d'), 12, 100);
  await within('the leader again', 1500, () => latest()?.leaderSeen?.leader === idOf('d'));
  await ofA.close();
  await within('a farewell', 1500, () => latest()?.alive === false);
  assert.equal(latest()?.confirmedDead, false);

  // The process is killed this time: its connection closes without a message.
  const killed = await raw(a.socket);
  killed.socket.write(
    `{"id":1,"method":"publish","params":{"memberId":"${idOf('a')}","appliedIndex":13,"fsyncMs":2}}\n`,
  );
  await within('up again', 1500, () => latest()?.alive === true);
  killed.socket.destroy();
  await within('death', 1500, () => latest()?.confirmedDead === true);
  assert.equal(latest()?.alive, false);
  await ofB.close();
});

test('a gossip agent combines frequent updates into few messages', async () => {
  await using dir = await directory();
  const socket = join(dir.path, 'agent.sock');
  const notified: unknown[] = [];
  const service: AgentService = {
    open: () => ({
      request: async (method, params) => {
        if (method === 'publish') notified.push(params);
        return {};
      },
      closed: () => {},
    }),
  };
  const server = await serveAgent({ socket, service, log: silentLog });
  const hints = createGossipHints({ socket, clock, log: silentLog });
  try {
    for (let i = 0; i < 3000; i++) {
      hints.publish({ memberId: idOf('a'), leader: idOf('b'), leaderHeardAgoMs: 0, appliedIndex: i, fsyncMs: 1 });
      if (i % 30 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await eventually('the last event arrives', () => JSON.stringify(notified.at(-1) ?? '').includes('2999'));
    assert.ok(notified.length <= 6, `${notified.length} notifications`);
    // A leader counts as reachable from itself, so repeated unchanged facts withdraw no hint.
    const leads = { memberId: idOf('a'), leader: idOf('a'), leaderHeardAgoMs: 0, appliedIndex: 3000, fsyncMs: 1 };
    hints.publish(leads);
    await eventually('the member is the leader', () => JSON.stringify(notified.at(-1) ?? '').includes('"leader"'));
    const before = notified.length;
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 700));
      hints.publish(leads);
    }
    assert.equal(notified.length, before);
  } finally {
    await hints.close();
    await server.stop();
  }
});

test('gossip hints are empty while the agent is down, and return after its restart', async () => {
  await using dir = await directory();
  const printed: (readonly GossipMember[])[] = [];
  const last = (): readonly GossipMember[] | undefined => printed.at(-1);
  const path = join(dir.path, 'a.sock');
  const hints = hintsOf(path, printed);
  hints.publish({ memberId: idOf('a'), leader: undefined, leaderHeardAgoMs: 0, appliedIndex: 1, fsyncMs: 1 });
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(printed.length, 0);
  for (let life = 0; life < 2; life++) {
    const a = await startAgent('a', { directory: dir.path });
    await eventually(
      'the store of the host is in the ring',
      async () => (await memberOf(a, 'a'))?.store?.state === 'up',
    );
    await a.kill();
    await eventually('no hints after the agent stops', () => last()?.length === 0);
  }
  await hints.close();
});

test('a gossip agent joins and leaves on request', async () => {
  await using dir = await directory();
  const keys = join(dir.path, 'keys.json');
  await writeFile(keys, newKeyringText(), { mode: 0o600 });
  await using a = await startAgent('a', { directory: dir.path, keys });
  await using b = await startAgent('b', { directory: dir.path, keys });
  assert.deepEqual(await ask(b, 'join', { peers: [address(a)] }), { joined: 1 });
  await eventually('a sees b', async () => (await memberOf(a, 'b'))?.state === 'alive');
  await assert.rejects(ask(b, 'join', { peers: ['127.0.0.1:1'] }), { code: 'join-failed' });
  await ask(b, 'leave');
  await eventually('a records that the member left', async () => (await memberOf(a, 'b'))?.state === 'left');
  await assert.rejects(ask(b, 'members'), { code: 'not-a-member' });
  await Promise.all([1, 2].map(() => ask(b, 'join', { peers: [address(a)] })));
  await eventually('a records that the member returned', async () => (await memberOf(a, 'b'))?.state === 'alive');
});
