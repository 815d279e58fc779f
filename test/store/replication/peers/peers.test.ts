import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import type { Clock } from '../../../../src/base/time/clock.ts';
import type { Message } from '../../../../src/store/core/raft/index.ts';
import { decodeMessages } from '../../../../src/store/replication/peers/message-codec.ts';
import { type PeerHandler, Peers } from '../../../../src/store/replication/peers/peers.ts';

let sent: Uint8Array[] = [];
let timers: Array<{ readonly ms: number; readonly run: () => void }> = [];

/** Fires every timer that is set and drops the stream's hello from the sent frames. */
const fire = (): void => {
  for (const { run } of timers.splice(0)) run();
};
const received = (): string[] =>
  sent.splice(0).map((bytes) =>
    decodeMessages(bytes, 'a', 'b')
      .map((message) => ('commit' in message ? `${message.type} ${message.commit}` : message.type))
      .join(),
  );

function connected(): Peers {
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    setTimer: (ms, run) => {
      timers.push({ ms, run });
      return { cancel: () => {} };
    },
  };
  const peers = new Peers({
    id: 'a',
    clusterId: 1n,
    clock,
    log: silentLog,
    life: 0,
    handler: {} as PeerHandler,
    dial: () => ({
      connected: true,
      unary: () => Promise.reject(new Error('not asked')),
      stream: () => ({ send: (message) => sent.push(message), cancel: () => {} }),
      close: () => {},
    }),
  });
  peers.setMembers([{ id: 'b', name: 'b', peerUrls: ['http://b'], clientUrls: [] }]);
  sent = [];
  return peers;
}

const news = (commit: number): Message => ({
  type: 'append',
  from: 'a',
  to: 'b',
  term: 2,
  prevIndex: 9,
  prevTerm: 2,
  commit,
  entries: [],
  quiet: true,
});
const heartbeat: Message = { type: 'heartbeat', from: 'a', to: 'b', term: 2, commit: 3, round: 1 };
const entries: Message = {
  type: 'append',
  from: 'a',
  to: 'b',
  term: 2,
  prevIndex: 9,
  prevTerm: 2,
  commit: 9,
  entries: [{ index: 10, term: 2, kind: 'noop' }],
};

beforeEach(() => {
  sent = [];
  timers = [];
});

test('delays commit index updates by a few milliseconds and sends only the last one', () => {
  const peers = connected();
  peers.send([news(7)]);
  peers.send([news(8)]);
  assert.deepEqual(received(), []);
  assert.deepEqual(
    timers.map(({ ms }) => ms <= 5),
    [true],
  );
  fire();
  assert.deepEqual(received(), ['append 8']);
  peers.send([news(9)]);
  fire();
  assert.deepEqual(received(), ['append 9']);
});

test('sends no separate commit index update with entries, and sends a pending one before other messages', () => {
  const peers = connected();
  peers.send([news(8)]);
  peers.send([entries]);
  peers.send([news(9)]);
  peers.send([heartbeat]);
  fire();
  assert.deepEqual(received(), ['append 9', 'append 9,heartbeat 3']);
});
