/** Attacks on an encrypted ring from the network, with and without captured traffic. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { writeFile } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { AgentConnection } from '../../../src/gossip/agent/client.ts';
import { callAgent } from '../../../src/gossip/agent/index.ts';
import type { GossipMessage, PeerAddress } from '../../../src/gossip/core/port.ts';
import { encodeMessage, Keyring, newKeyringText, serfCodec } from '../../../src/gossip/memberlist/index.ts';
import { messageType, typed } from '../../../src/gossip/memberlist/messages.ts';
import { sealPacket } from '../../../src/gossip/memberlist/packet.ts';
import { encodePushPull, sealStream } from '../../../src/gossip/memberlist/stream.ts';
import type { AgentMember } from '../../../src/gossip/membership/agent-port.ts';
import { generator } from '../../support/random.ts';
import { compressLzw } from '../memberlist/lzw-writer.ts';
import { directory, startAgent, type TestAgent } from './agents.ts';
import { eventually } from './ring.ts';

const membersOf = (agent: TestAgent): Promise<AgentMember[]> => callAgent(agent.socket, 'members', {}, 5000);
const stateOf = async (agent: TestAgent, name: string): Promise<string | undefined> =>
  (await membersOf(agent)).find((member) => member.name === name)?.state;

async function keysIn(path: string): Promise<{ readonly keys: string; readonly keyring: Keyring }> {
  const keys = join(path, 'keys.json');
  const text = newKeyringText();
  await writeFile(keys, text, { mode: 0o600 });
  return { keys, keyring: new Keyring([Buffer.from(JSON.parse(text)[0], 'base64')]) };
}

/** Socket that sends arbitrary bytes and records the responses. */
function hostilePeer(): { send(to: PeerAddress, bytes: Uint8Array): void; readonly heard: Buffer[] } & Disposable {
  const socket = createSocket('udp4');
  const heard: Buffer[] = [];
  socket.on('message', (bytes) => heard.push(bytes));
  return {
    heard,
    send: (to, bytes) => socket.send(bytes, to.port, to.ip),
    [Symbol.dispose]: () => void socket.close(),
  };
}

test('ignores a replayed message of an earlier death, and refutes a message about the current incarnation', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  const peers = [`127.0.0.1:${a.address.port}`];
  const first = await startAgent('b', { directory: dir.path, keys, peers });
  await eventually('a sees b', async () => (await stateOf(a, 'b')) === 'alive');
  await first.kill();
  await eventually('b is dead', async () => (await stateOf(a, 'b')) === 'dead');
  await using b = await startAgent('b', { directory: dir.path, keys, peers, port: first.address.port });
  await eventually('b is back', async () => (await stateOf(a, 'b')) === 'alive');

  using attacker = hostilePeer();
  const sealed = (message: GossipMessage): Uint8Array =>
    sealPacket([encodeMessage(message)], 0, { keyring, label: new Uint8Array() });
  const captured = sealed({ kind: 'dead', incarnation: 1, node: 'b', from: 'a' });
  for (let i = 0; i < 100; i++) for (const target of [a, b]) attacker.send(target.address, captured);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(await stateOf(a, 'b'), 'alive');

  // An attacker with the key sends a false death, which b refutes.
  attacker.send(a.address, sealed({ kind: 'dead', incarnation: 50, node: 'b', from: 'a' }));
  await eventually('b refutes the suspicion', async () => (await stateOf(a, 'b')) === 'alive');
  assert.equal(await stateOf(b, 'a'), 'alive');
  assert.equal(attacker.heard.length, 0);
});

test('does not respond to messages without the key, and limits decompression', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  const bomb = typed(messageType.compress, { Algo: 0, Buf: compressLzw(new Uint8Array(600_000)) });
  assert.ok(bomb.length < 2000);
  using attacker = hostilePeer();
  const wrong = new Keyring([randomBytes(32)]);
  const label = new Uint8Array();
  const ping = encodeMessage({ kind: 'ping', seq: 1, node: 'a' });
  let latestMs = 0;
  let lastMs = performance.now();
  const watch = setInterval(() => {
    latestMs = Math.max(latestMs, performance.now() - lastMs - 10);
    lastMs = performance.now();
  }, 10);
  for (let i = 0; i < 200; i++) {
    attacker.send(a.address, sealPacket([ping], 0, { keyring: undefined, label }));
    attacker.send(a.address, sealPacket([ping], 0, { keyring: wrong, label }));
    attacker.send(a.address, sealPacket([bomb], 0, { keyring, label }));
    if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  for (const ring of [keyring, wrong]) {
    const stream = createConnection({ host: a.address.ip, port: a.address.port });
    let answered = 0;
    stream.on('data', (chunk) => {
      answered += chunk.length;
    });
    stream.on('error', () => {});
    stream.write(sealStream(bomb, { keyring: ring, label }));
    await new Promise((resolve) => stream.once('close', resolve));
    assert.equal(answered, 0);
  }
  clearInterval(watch);
  assert.equal(attacker.heard.length, 0);
  assert.deepEqual(
    (await membersOf(a)).map(({ name }) => name),
    ['a'],
  );
  assert.ok(latestMs < 250, `the event loop stood still for ${latestMs} ms`);
});

test('keeps reporting the store as up when an exchange contains megabytes of events', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  let isClosed = false;
  const heard: unknown[] = [];
  const store = await AgentConnection.open(a.socket, {
    events: (events) => heard.push(...events),
    closed: () => {
      isClosed = true;
    },
  });
  await store.request('subscribe');
  await store.request('publish', { memberId: '0123456789abcdef', appliedIndex: 1, fsyncMs: 1 });
  const events = Array.from({ length: 400 }, (_, i) => ({
    ltime: i + 1,
    name: `e${i}`,
    payload: new Uint8Array(9 * 1024),
  }));
  const state = { ltime: 1, statusTimes: new Map(), leftMembers: [], eventTime: 401, events, queryTime: 1 };
  const table = encodePushPull({ rows: [], userState: serfCodec.encodeState(state), join: false });
  const stream = createConnection({ host: a.address.ip, port: a.address.port });
  stream.on('error', () => {});
  stream.resume();
  stream.write(sealStream(table, { keyring, label: new Uint8Array() }));
  await new Promise((resolve) => stream.once('close', resolve));
  await eventually('an event is reported', async () => heard.some((each) => JSON.stringify(each).includes('"e399"')));
  assert.equal(isClosed, false);
  assert.equal((await membersOf(a))[0]?.store?.state, 'up');
  assert.ok(heard.length < 80, `${heard.length} events`);
  store.close();
});

test('serves its clients while another member fills the member table with invented members', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  const heard: unknown[] = [];
  let isClosed = false;
  const client = await AgentConnection.open(a.socket, {
    events: (events) => heard.push(...events),
    closed: () => {
      isClosed = true;
    },
  });
  await client.request('subscribe');
  await client.request('publish', { memberId: '0123456789abcdef', appliedIndex: 1, fsyncMs: 1 });
  const versions = [1, 5, 2, 2, 5, 4] as const;
  const rows = Array.from({ length: 4095 }, (_, i) => ({
    name: `invented-${i}`,
    address: { ip: '127.0.0.1', port: 20_000 + i },
    meta: serfCodec.encodeTags(new Map([['role', 'x'.repeat(400)]])),
    incarnation: 1,
    state: 'alive' as const,
    versions,
  }));
  const table = encodePushPull({ rows, userState: new Uint8Array(), join: false });
  const stream = createConnection({ host: a.address.ip, port: a.address.port });
  stream.on('error', () => {});
  stream.resume();
  stream.write(sealStream(table, { keyring, label: new Uint8Array() }));
  await new Promise((resolve) => stream.once('close', resolve));
  await eventually('the members are reported', async () => heard.length > 4_000);
  const members = await membersOf(a);
  assert.equal(isClosed, false);
  assert.equal(members.length, 4096);
  assert.equal(members.find(({ name }) => name === 'a')?.store?.state, 'up');
  client.close();
});

test('exchanges its table with a new member after another member has announced thousands of long names', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  for (const bytes of [900, 100_000]) {
    const names = Array.from({ length: Math.floor(3_900_000 / bytes) }, (_, i) => `${i}-`.padEnd(bytes, 'x'));
    const state = {
      ltime: 2,
      statusTimes: new Map(names.map((name) => [name, 1])),
      leftMembers: names,
      eventTime: 1,
      events: [],
      queryTime: 1,
    };
    const table = encodePushPull({ rows: [], userState: serfCodec.encodeState(state), join: false });
    const stream = createConnection({ host: a.address.ip, port: a.address.port });
    stream.on('error', () => {});
    stream.resume();
    stream.write(sealStream(table, { keyring, label: new Uint8Array() }));
    await new Promise((resolve) => stream.once('close', resolve));
  }
  await using b = await startAgent('b', { directory: dir.path, keys, peers: [`127.0.0.1:${a.address.port}`] });
  await eventually('a and b see each other', async () => {
    const states = await Promise.all([stateOf(a, 'b'), stateOf(b, 'a')]);
    return states.every((state) => state === 'alive');
  });
});

test('survives damaged messages of a member with the key without filling the table', async () => {
  await using dir = await directory();
  const { keys, keyring } = await keysIn(dir.path);
  await using a = await startAgent('a', { directory: dir.path, keys });
  using attacker = hostilePeer();
  const next = generator(Number(process.env['SEED'] ?? 20_2616));
  const below = (most: number): number => Math.floor(next() * most);
  const label = new Uint8Array();
  const from = { name: 'x', address: { ip: '127.0.0.1', port: 9 } };
  const versions = [1, 5, 2, 2, 5, 4] as const;
  const address = { ip: '127.0.0.1', port: 9 };
  const row = { name: 'row', address, meta: new Uint8Array(40), incarnation: 1, state: 'alive', versions } as const;
  const messages: readonly Uint8Array[] = [
    encodeMessage({ kind: 'ping', seq: 1, node: 'a', from } as never),
    encodeMessage({ kind: 'indirect-ping', seq: 2, target: address, node: 'b', nack: true, from } as never),
    encodeMessage({ kind: 'ack', seq: 1 } as never),
    encodeMessage({ kind: 'nack', seq: 1 } as never),
    encodeMessage({ kind: 'alive', incarnation: 1, node: 'm', address, meta: new Uint8Array(60), versions } as never),
    encodeMessage({ kind: 'suspect', incarnation: 1, node: 'a', from: 'm' } as never),
    encodeMessage({ kind: 'dead', incarnation: 1, node: 'm', from: 'm' } as never),
    encodeMessage({ kind: 'user', payload: new Uint8Array(30) } as never),
  ];
  const table = encodePushPull({ rows: [row, { ...row, name: 'other' }], userState: new Uint8Array(20), join: true });
  const mutated = (bytes: Uint8Array): Uint8Array => {
    const out = Uint8Array.from(bytes);
    for (let n = below(5); n >= 0; n -= 1) out[below(out.length)] = below(256);
    return below(6) === 0 ? out.subarray(0, below(out.length) + 1) : out;
  };
  for (let i = 0; i < 3000; i++) {
    const parts = Array.from({ length: 1 + below(3) }, () => mutated(messages[below(messages.length)] as Uint8Array));
    attacker.send(a.address, sealPacket(parts, 0, { keyring, label }));
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  }
  for (let i = 0; i < 120; i++) {
    const stream = createConnection({ host: a.address.ip, port: a.address.port });
    stream.on('error', () => {});
    stream.resume();
    stream.write(sealStream(mutated(i % 4 === 0 ? (messages[0] as Uint8Array) : table), { keyring, label }));
    await Promise.race([
      new Promise((resolve) => stream.once('close', resolve)),
      new Promise((resolve) => setTimeout(resolve, 50)),
    ]);
    stream.destroy();
  }
  const members = await membersOf(a);
  assert.equal(members.find(({ name }) => name === 'a')?.state, 'alive');
  assert.ok(members.length < 1000, `${members.length} members`);
});
