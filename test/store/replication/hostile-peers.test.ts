/** Messages on the peer port above TLS: of other clusters, of removed members, damaged and in any order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createRaft, emptyStorage, type Message, type Raft, RaftError } from '../../../src/store/core/raft/index.ts';
import { encodeMessages } from '../../../src/store/replication/peers/message-codec.ts';
import {
  encodeForward,
  encodeHashRequest,
  encodeHello,
  encodeNumbered,
  encodePiece,
  encodeReplace,
  Frame,
  PeerPath,
} from '../../../src/store/replication/peers/peer-protocol.ts';
import { type PeerHandler, Peers } from '../../../src/store/replication/peers/peers.ts';
import type { RpcMessage, StreamCall, UnaryCall } from '../../../src/wire/grpc/port.ts';
import { generator } from '../../support/random.ts';
import { defaults } from '../core/raft/driver.ts';

const SEED = Number(process.env['SEED'] ?? 20_261_123);
const ROUNDS = 4_000;
const CLUSTER = 77n;

interface Lab {
  readonly raft: Raft;
  readonly peers: Peers;
  readonly stepped: Message[];
  readonly requests: string[];
}

function lab(): Lab {
  const raft = createRaft({ ...defaults, id: 'a' }, emptyStorage(['a', 'b', 'c']));
  const stepped: Message[] = [];
  const requests: string[] = [];
  const table = { clusterId: CLUSTER, members: [], voters: [], written: true };
  const note = async <T>(name: string, value: T): Promise<T> => {
    requests.push(name);
    return value;
  };
  const handler: PeerHandler = {
    message: (message) => {
      stepped.push(message);
      try {
        raft.step(message);
      } catch (error) {
        // The replica logs and drops these errors.
        if (!(error instanceof RaftError)) throw error;
      }
    },
    leaseUpdates: () => {},
    forwarded: () => note('forwarded', { redirect: true, code: 0, text: '', body: new Uint8Array(), index: 0 }),
    snapshotPiece: () => note('piece', 0),
    members: () => table,
    replace: () => note('replace', table),
    join: () => note('join', table),
    hash: () => note('hash', { revision: 0, compacted: 0, hash: 0 }),
    wasRemoved: (id) => id === 'gone',
    removed: () => {},
    unreachable: () => {},
    disconnected: () => {},
  };
  const dial = () => ({
    connected: false,
    unary: () => Promise.reject(new Error('not asked')),
    stream: () => ({ send: () => {}, cancel: () => {} }),
    close: () => {},
  });
  const peers = new Peers({ id: 'a', clusterId: CLUSTER, clock: systemClock, log: silentLog, life: 0, handler, dial });
  return { raft, peers, stepped, requests };
}

/** Sends `frames` on one stream. Returns the code and text with which it was closed, or undefined if it is open. */
function stream(peers: Peers, frames: readonly Uint8Array[]): { code: number; text: string } | undefined {
  let ended: { code: number; text: string } | undefined;
  const call: StreamCall = {
    send: () => true,
    pause: () => {},
    resume: () => {},
    end: (code = 0, text = '') => {
      ended ??= { code, text };
    },
    metadata: () => undefined,
    peerCommonName: () => '',
  };
  const handler = peers.service.stream(PeerPath.messages)?.(call);
  assert.ok(handler !== undefined);
  for (const frame of frames) if (ended === undefined) handler.message(frame);
  handler.ended();
  handler.closed();
  return ended;
}

function unary(peers: Peers, path: string, message: Uint8Array): Promise<{ body?: RpcMessage; text?: string }> {
  return new Promise((resolve) => {
    const call: UnaryCall = {
      reply: (body) => resolve({ body }),
      fail: (_code, text) => resolve({ text }),
      metadata: () => undefined,
      peerCommonName: () => '',
      whenCancelled: () => {},
    };
    const handler = peers.service.unary(path);
    if (handler === undefined) resolve({ text: 'no such method' });
    else handler(message, call);
  });
}

const hello = (from = 'b', clusterId = CLUSTER, to = 'a'): Buffer => encodeHello({ clusterId, from, to });
const vote: Message = {
  type: 'vote',
  from: 'b',
  to: 'a',
  term: 900,
  lastIndex: 50,
  lastTerm: 20,
  leaderDead: true,
  transfer: true,
} as const;
const snapshot = { index: 9, term: 1, conf: { voters: ['b'], outgoing: [], learners: [], learnersNext: [] } };
const MESSAGES: readonly Message[] = [
  vote,
  { type: 'preVote', from: 'b', to: 'a', term: 3, lastIndex: 5, lastTerm: 2, leaderDead: false },
  {
    type: 'append',
    from: 'b',
    to: 'a',
    term: 2,
    prevIndex: 1,
    prevTerm: 1,
    commit: 1,
    entries: [{ index: 2, term: 2, kind: 'noop' }],
  },
  { type: 'appendResp', from: 'b', to: 'a', term: 2, index: 3, rejected: true, hintIndex: 2, hintTerm: 1 },
  { type: 'heartbeat', from: 'b', to: 'a', term: 2, commit: 1, round: 3 },
  { type: 'snapshot', from: 'b', to: 'a', term: 2, snapshot },
  { type: 'timeoutNow', from: 'b', to: 'a', term: 2 },
  { type: 'propose', from: 'b', to: 'a', data: [Buffer.from('x')] },
  { type: 'readIndex', from: 'b', to: 'a', context: 'r' },
];

test('ignores peer messages of other clusters, of removed members, for another member, and without a hello', async () => {
  const { raft, peers, stepped, requests } = lab();
  const before = raft.status();
  const frames = MESSAGES.map((message) => encodeMessages([message]));
  assert.match(stream(peers, [hello('b', 78n), ...frames])?.text ?? '', /cluster ID mismatch/);
  assert.match(stream(peers, [hello('gone'), ...frames])?.text ?? '', /permanently removed/);
  assert.match(stream(peers, [hello('b', CLUSTER, 'c'), ...frames])?.text ?? '', /this is member a, not c/);
  assert.ok(stream(peers, frames) !== undefined);
  assert.ok(stream(peers, [new Uint8Array(), ...frames]) !== undefined);
  const rows = [{ index: 2, term: 1, kind: 1 as never, revision: 2, lease: 0n, body: new Uint8Array(1) }];
  for (const from of [hello('b', 78n), hello('gone'), hello('b', CLUSTER, 'c')]) {
    const [clusterId, sender, to] = from.equals(hello('b', 78n))
      ? [78n, 'b', 'a']
      : from.equals(hello('gone'))
        ? [CLUSTER, 'gone', 'a']
        : [CLUSTER, 'b', 'c'];
    const piece = {
      hello: { clusterId, from: sender, to },
      id: 'x',
      after: 0,
      rows,
      head: undefined,
      message: encodeMessages([MESSAGES[5] as Message]),
    };
    assert.equal((await unary(peers, PeerPath.snapshot, encodePiece(piece))).body, undefined);
    assert.equal((await unary(peers, PeerPath.hash, encodeHashRequest(piece.hello, 1))).body, undefined);
  }
  assert.deepEqual([stepped, requests, raft.status()], [[], [], before]);
});

test('damaged peer frames cause no exception, and only valid messages reach the raft state machine', async () => {
  const random = generator(SEED);
  const below = (most: number): number => Math.floor(random() * most);
  const { raft, peers, stepped } = lab();
  const forward = encodeForward({
    path: 'command',
    message: Buffer.alloc(9, 8),
    metadata: new Map([['a', 'b']]),
    authRevision: 1,
  });
  const frames: readonly Uint8Array[] = [
    ...MESSAGES.map((message) => encodeMessages([message])),
    encodeMessages(MESSAGES),
    encodeNumbered(Frame.forward, 3, forward),
    encodeNumbered(Frame.forwarded, 3, forward),
    Buffer.from([18, 4, 8, 1, 16, 5]),
  ];
  const damaged = (frame: Uint8Array): Buffer => {
    const copy = Buffer.from(frame.subarray(0, random() < 0.2 ? below(frame.length) : frame.length));
    for (let count = below(5); count > 0 && copy.length > 0; count -= 1)
      copy[below(copy.length)] = [0, 0x80, 0xff, 0x7f, below(256)][below(5)] ?? 0;
    return random() < 0.1 ? Buffer.concat([copy, Buffer.alloc(below(40), 0xff)]) : copy;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const sent = Array.from({ length: 3 }, () => damaged(frames[below(frames.length)] ?? new Uint8Array()));
    const context = `seed ${SEED} round ${round}: ${sent.map((each) => each.toString('hex')).join(' ')}`;
    try {
      stream(peers, [random() < 0.2 ? damaged(hello()) : hello(), ...sent]);
      for (const path of Object.values(PeerPath)) {
        const body =
          path === PeerPath.join || path === PeerPath.replace
            ? encodeReplace({ name: 'n', peerUrls: ['u'] })
            : damaged(hello());
        await unary(peers, path, damaged(body));
      }
    } catch (error) {
      throw new Error(context, { cause: error });
    }
    while (raft.hasReady()) raft.advance(raft.ready());
    const { term, commit, lastIndex } = raft.status();
    for (const value of [term, commit, lastIndex])
      assert.ok(Number.isSafeInteger(value) && value >= 0 && value < 2 ** 52, context);
    assert.ok(commit <= lastIndex, context);
  }
  assert.ok(stepped.length > ROUNDS / 4, String(stepped.length));
});
