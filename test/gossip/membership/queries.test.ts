/** Ring queries: which members respond, how often, and which do not. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { test } from 'node:test';
import { SerfIntents } from '../../../src/gossip/core/index.ts';
import type { SerfQuery } from '../../../src/gossip/core/port.ts';
import { encodeMessage, serfCodec } from '../../../src/gossip/memberlist/index.ts';
import { ClockOffsets } from '../../../src/gossip/membership/clock-offset.ts';
import { createQueries } from '../../../src/gossip/membership/queries.ts';
import { directory, startAgent } from './agents.ts';
import { clock, eventually, random } from './ring.ts';

const question: SerfQuery = {
  kind: 'query',
  ltime: 5,
  id: 77,
  from: { ip: '10.0.0.9', port: 7946 },
  nodes: undefined,
  otherFilters: false,
  ack: true,
  noBroadcast: false,
  timeoutMs: 1000,
  name: '_serf_ping',
  payload: new Uint8Array(),
};

test('encoding preserves filters and flags of a query', () => {
  for (const each of [
    question,
    { ...question, nodes: ['a', 'ü'], ack: false, noBroadcast: true },
    { ...question, from: undefined },
  ])
    assert.deepEqual(serfCodec.decode(serfCodec.encode(each)), each);
  const answer = {
    kind: 'query-response',
    ltime: 5,
    id: 77,
    node: 'a',
    ack: false,
    payload: Buffer.from('x'),
  } as const;
  const decoded = serfCodec.decode(serfCodec.encode(answer));
  assert.ok(decoded?.kind === 'query-response' && decoded.node === 'a' && decoded.payload[0] === 0x78);
  assert.equal(serfCodec.decode(serfCodec.encode(question).subarray(0, 20)), undefined);
});

test('ignores a replayed query, even after many newer queries', () => {
  const intents = new SerfIntents('me', 10);
  assert.equal(intents.receive(question).query?.id, 77);
  assert.deepEqual(intents.receive(question), { rebroadcast: false });
  for (let ltime = 6; ltime < 2000; ltime++) intents.receive({ ...question, ltime });
  assert.deepEqual(intents.receive(question), { rebroadcast: false });
  const event = { kind: 'user-event', ltime: 1, name: 'deploy', payload: new Uint8Array(), coalesce: false } as const;
  assert.equal(intents.receive(event).event?.name, 'deploy');
  for (let ltime = 2; ltime < 2000; ltime++) intents.receive({ ...event, ltime });
  assert.deepEqual(intents.receive(event), { rebroadcast: false });
});

test('answers a query only on the queried members, and counts each response once', async () => {
  const reported: string[] = [];
  const spread: Uint8Array[] = [];
  const queries = createQueries({
    clock,
    random,
    serf: serfCodec,
    self: 'me',
    address: () => ({ ip: '10.0.0.1', port: 1 }),
    answer: async (name) => (name === 'known' ? Buffer.from('answer') : undefined),
    stamp: (each) => ({ ...each, ltime: 9 }),
    spread: (payload) => spread.push(payload),
    send: (to, payload) => {
      const message = serfCodec.decode(payload);
      if (message?.kind === 'query-response') reported.push(`${to.ip} ${message.ack ? 'ack' : 'answer'}`);
    },
  });
  for (const each of [
    question,
    { ...question, name: 'known', ack: false },
    { ...question, nodes: ['other'] },
    { ...question, otherFilters: true },
    { ...question, from: undefined },
  ])
    queries.onQuery(each);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(reported, ['10.0.0.9 ack', '10.0.0.9 answer']);

  const asking = queries.query('x', new Uint8Array(), ['a', 'b'], 300);
  const sent = serfCodec.decode(spread[0] ?? new Uint8Array());
  assert.ok(sent?.kind === 'query');
  const from = (node: string, id: number, text: string): void =>
    queries.answered({ kind: 'query-response', ltime: 9, id, node, ack: false, payload: Buffer.from(text) });
  from('a', sent.id + 1, 'forged id');
  from('unknown', sent.id, 'unsolicited');
  from('a', sent.id, 'first');
  from('a', sent.id, 'second');
  const answers = await asking;
  assert.deepEqual(
    [...answers].map(([node, bytes]) => `${node} ${Buffer.from(bytes).toString()}`),
    ['a first'],
  );
  assert.equal((await queries.query('x', new Uint8Array(), [], 10_000)).size, 0);
});

test('sends no response to an address outside the ring', async () => {
  await using dir = await directory();
  await using a = await startAgent('a', { directory: dir.path });
  const victim = createSocket('udp4');
  const heard: Buffer[] = [];
  victim.on('message', (bytes) => heard.push(bytes));
  await new Promise<void>((resolve) => victim.bind(0, '127.0.0.1', resolve));
  await using b = await startAgent('b', { directory: dir.path, peers: [`127.0.0.1:${a.address.port}`] });
  const ask = (port: number, id: number): Promise<void> =>
    new Promise((resolve) => {
      const payload = serfCodec.encode({ ...question, ltime: 1 + id, id, from: { ip: '127.0.0.1', port } });
      victim.send(encodeMessage({ kind: 'user', payload }), a.address.port, '127.0.0.1', () => resolve());
    });
  try {
    for (let id = 1; id <= 20; id++) await ask(victim.address().port, id);
    await eventually('the ring continues', () => b.address.port > 0);
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(heard.length, 0);
  } finally {
    victim.close();
  }
});

test('estimates the clock offset from the fastest messages and the median of all members', () => {
  const clocks = new ClockOffsets();
  assert.equal(clocks.own(), undefined);
  // The clocks of both other members are 5 s ahead. Messages of these members take 10 to 400 ms.
  for (const delay of [400, 10, 200]) for (const name of ['b', 'c']) clocks.observe(name, 1_005_000, 1_000_000 + delay);
  assert.equal(clocks.own(), -4990);
  clocks.forget('c');
  assert.equal(clocks.own(), -2495);
  // A corrected clock is adopted after a while.
  for (let i = 0; i < 8; i++) clocks.observe('b', 2_000_000, 2_000_004);
  assert.equal(clocks.own(), 2);
});
