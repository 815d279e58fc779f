import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Awareness } from '../../../src/gossip/core/awareness.ts';
import { BroadcastQueue, transmitLimit } from '../../../src/gossip/core/broadcast-queue.ts';
import { SerfIntents } from '../../../src/gossip/core/index.ts';
import { Suspicion, suspicionTimes } from '../../../src/gossip/core/suspicion.ts';
import { seeded } from '../../sim/gossip/simulation.ts';

test('shortens the suspicion timeout with every independent confirmation, down to the minimum', () => {
  const times = { expected: 3, minMs: 2000, maxMs: 30_000 };
  const suspicion = new Suspicion(times, 'a', 0);
  const expected = [30_000, 16_000, 7810, 2000];
  assert.equal(suspicion.deadlineMs(), expected[0]);
  assert.equal(suspicion.confirm('a'), false, 'the first accuser is no second voice');
  for (const [index, voice] of ['b', 'c', 'd'].entries()) {
    assert.equal(suspicion.confirm(voice), true);
    assert.equal(suspicion.confirm(voice), false);
    assert.equal(suspicion.deadlineMs(), expected[index + 1]);
  }
  assert.equal(suspicion.confirm('e'), false);
  suspicion.postpone(500);
  assert.equal(suspicion.deadlineMs(), 2500);
});

test('uses the minimum suspicion timeout in rings that are too small for confirmations', () => {
  const settings = { suspicionMult: 4, suspicionMaxMult: 6, probeIntervalMs: 1000 };
  assert.deepEqual(suspicionTimes(3, settings), { expected: 0, minMs: 4000, maxMs: 24_000 });
  assert.deepEqual(suspicionTimes(100, settings), { expected: 2, minMs: 8000, maxMs: 48_000 });
  assert.equal(new Suspicion(suspicionTimes(3, settings), 'a', 0).deadlineMs(), 4000);
});

test('the local health of a gossip member stays within its bounds', () => {
  const awareness = new Awareness(8);
  awareness.apply(-3);
  assert.equal(awareness.scale(100), 100);
  awareness.apply(50);
  assert.equal(awareness.score, 7);
  assert.equal(awareness.scale(100), 800);
});

test('replaces queued broadcasts by subject, sends the least transmitted first, and bounds transmissions and length', () => {
  const random = seeded(4);
  const finished: [number, boolean][] = [];
  const limits = { maxCount: 12, maxBytes: 400 };
  const queue = new BroadcastQueue(limits);
  const sentTimes = new Map<number, number>();
  const live = new Map<string, number>();
  for (let id = 0; id < 3000; id++) {
    const bytes = new Uint8Array(4 + Math.floor(random() * 60));
    new DataView(bytes.buffer).setUint32(0, id);
    const subject = random() < 0.3 ? undefined : `s${Math.floor(random() * 20)}`;
    queue.push({ subject, bytes, done: (sent) => finished.push([id, sent]) });
    if (subject !== undefined) live.set(subject, id);
    assert.ok(queue.length <= limits.maxCount && queue.bytes <= limits.maxBytes);
    const budget = Math.floor(random() * 150);
    const used = queue.take(2, budget, 3, 255);
    assert.ok(used.reduce((sum, each) => sum + each.length + 2, 0) <= budget);
    for (const each of used) {
      const which = new DataView(each.buffer).getUint32(0);
      sentTimes.set(which, (sentTimes.get(which) ?? 0) + 1);
    }
  }
  assert.equal(new Set(finished.map(([id]) => id)).size, finished.length, 'done is called once');
  for (const [id, sent] of finished) assert.equal(sentTimes.get(id) === 3, sent, `broadcast ${id}`);
  for (const times of sentTimes.values()) assert.ok(times <= 3);
});

test('scales retransmissions with the logarithm of the ring size', () => {
  assert.deepEqual(
    [1, 2, 9, 10, 99, 100].map((members) => transmitLimit(4, members)),
    [4, 4, 4, 8, 8, 12],
  );
});

test('applies the newest join or leave intent, forwards each intent once, and refutes a forged leave of the local member', () => {
  const intents = new SerfIntents('me', 100);
  const ours = intents.join();
  assert.deepEqual(intents.receive({ kind: 'leave', ltime: 10, node: 'b', prune: false }), {
    rebroadcast: true,
    intent: { node: 'b', leaving: true },
  });
  assert.equal(intents.receive({ kind: 'leave', ltime: 10, node: 'b', prune: false }).rebroadcast, false);
  assert.equal(intents.receive({ kind: 'join', ltime: 9, node: 'b' }).rebroadcast, false);
  assert.deepEqual(intents.state().leftMembers, ['b']);
  const reply = intents.receive({ kind: 'leave', ltime: 20, node: 'me', prune: false }).reply;
  assert.ok(reply !== undefined && reply.ltime > 20 && reply.ltime > ours.ltime);
  assert.ok(intents.leave().ltime > reply.ltime);
  const event = { kind: 'user-event', ltime: 3, name: 'e', payload: new Uint8Array(2), coalesce: false } as const;
  assert.deepEqual([intents.receive(event).rebroadcast, intents.receive(event).rebroadcast], [true, false]);
});

test('a table exchange repeats recent events once, except events from before the join', () => {
  const [sender, receiver, joiner] = ['a', 'b', 'c'].map((name) => new SerfIntents(name, 100));
  assert.ok(sender !== undefined && receiver !== undefined && joiner !== undefined);
  const namesOf = (intents: SerfIntents, joining: boolean): string[] =>
    intents.merge(sender.state(), joining).flatMap(({ event }) => (event === undefined ? [] : [event.name]));
  sender.userEvent('first', new Uint8Array(2), false);
  assert.deepEqual([namesOf(receiver, false), namesOf(receiver, false)], [['first'], []]);
  assert.deepEqual(namesOf(joiner, true), []);
  sender.userEvent('second', new Uint8Array(2), false);
  assert.deepEqual([namesOf(receiver, false), namesOf(joiner, false)], [['second'], ['second']]);
  const replayed = {
    kind: 'user-event',
    ltime: 1,
    name: 'first',
    payload: new Uint8Array(2),
    coalesce: false,
  } as const;
  assert.equal(joiner.receive(replayed).event, undefined, 'an event from before the join by datagram');
});

test('bounds the events that table exchanges repeat, in number and bytes', () => {
  const intents = new SerfIntents('me', 10);
  for (let i = 0; i < 200; i++) intents.userEvent(`small-${i}`, new Uint8Array(), false);
  assert.deepEqual([intents.state().events.length, intents.state().events.at(-1)?.name], [64, 'small-199']);
  for (let i = 0; i < 20; i++) intents.userEvent(`large-${i}`, new Uint8Array(8 * 1024), false);
  assert.equal(intents.state().events.length, 8);
});

test('reports an event once, even if many queries and events of the same Lamport time follow', () => {
  const [sender, receiver] = ['a', 'b'].map((name) => new SerfIntents(name, 100));
  assert.ok(sender !== undefined && receiver !== undefined);
  const exchanged = (): number =>
    receiver.merge(sender.state(), false).filter(({ event }) => event !== undefined).length;
  sender.userEvent('deploy', new Uint8Array(2), false);
  assert.equal(exchanged(), 1);
  const query = { kind: 'query', from: undefined, nodes: undefined, otherFilters: false, ack: false } as const;
  for (let id = 0; id < 600; id++)
    receiver.receive({
      ...query,
      ltime: 1,
      id,
      noBroadcast: true,
      timeoutMs: 1,
      name: 'q',
      payload: new Uint8Array(),
    });
  assert.equal(exchanged(), 0, 'after many queries');
  const event = { kind: 'user-event', ltime: 2, payload: new Uint8Array(), coalesce: false } as const;
  for (let i = 0; i < 600; i++) receiver.receive({ ...event, name: `e${i}` });
  assert.equal(exchanged(), 0, 'after many events');
  assert.equal(receiver.receive({ ...event, name: 'e0' }).rebroadcast, false, 'the first of many events');
});

test('a gossip member rejects a Lamport time in the far future', () => {
  const intents = new SerfIntents('me', 100);
  assert.equal(intents.receive({ kind: 'join', ltime: Number.MAX_SAFE_INTEGER, node: 'b' }).rebroadcast, false);
  assert.ok(intents.join().ltime < 10);
});

test('bounds the state kept about unknown members', () => {
  const intents = new SerfIntents('me', 10);
  for (let i = 0; i < 100; i++) intents.receive({ kind: 'join', ltime: i + 2, node: `x${i}` });
  assert.equal(intents.state().statusTimes.size, 10);
});
