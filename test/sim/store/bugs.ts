import { decodeWatchResponse } from '../../../src/api/etcd/watch.ts';
import { Cluster } from '../../../src/components/etcd/membership/cluster.ts';
import type { LogState, StoredEntry } from '../../../src/components/etcd/port.ts';
import type { Message } from '../../../src/core/raft/types.ts';
import type { CheckerName } from './checkers.ts';
import type { StoreImage } from './store-image.ts';
import type { Wanted } from './watcher.ts';
import type { World } from './world.ts';

/** What runs differ in most. */
export interface Setting {
  /** Members at the beginning. */
  readonly founders: number;
  /** Files are damaged and disks wiped; else members come and go. */
  readonly damaging: boolean;
  /** With `damaging`: there is a learner from the beginning. */
  readonly learner: boolean;
  /** Auth is turned on. */
  readonly auth: boolean;
  /** There is a quota that can be used up. */
  readonly quota: boolean;
  /** There is a lock, and an election. */
  readonly queues: boolean;
  /** Tokens are simple ones, of which every member is told. */
  readonly simple: boolean;
  /** Members are of an older build at the beginning, and updated one by one. */
  readonly rolling: boolean;
  /** In the end so many members are lost for good that there is no quorum. */
  readonly losesQuorum: boolean;
}

/** A defect planted around the program, so that the checkers can be seen to find one. */
export interface Bug {
  readonly name: string;
  readonly checker: CheckerName;
  /** In what runs it shows: they are like this, and otherwise by chance. */
  readonly setting?: Partial<Setting>;
  /** Writes are said to be on disk before they are. */
  readonly diskLies?: boolean;
  /** What a member finds on its disk when it starts. */
  readonly found?: (state: LogState, world: World) => LogState;
  /** A store that is put aside keeps who it is and where its log begins, the first time. */
  readonly keepsIdentity?: boolean;
  /** Revisions go on where a snapshot ends that a store has gone back to. */
  readonly noBump?: boolean;
  /** Changes a row that is loaded at a start. */
  readonly loaded?: (row: StoredEntry) => StoredEntry;
  /** Changes what arrives from another member; undefined loses it. */
  readonly message?: (message: Message, to: string, nowMs: number) => Message | undefined;
  /** Changes what clients ask. */
  readonly request?: (path: string, bytes: Buffer) => Buffer;
  /** Changes what a watch is sent: the `count`th answer with events. */
  readonly watched?: (answer: Buffer, count: number) => readonly Buffer[];
  /** Changes what a watch is asked to tell. */
  readonly watching?: (create: Wanted) => Wanted;
  /** For whom everybody is taken who shows a certificate. */
  readonly user?: string;
  /** Tokens are good for as long as they like. */
  readonly tokensLast?: boolean;
  /** How much longer simple tokens last than they should. */
  readonly tokenLife?: number;
  /** Members of older builds say that they know everything. */
  readonly claimsToKnow?: boolean;
  /** What a survivor has when it was made a cluster of its own. */
  readonly recovered?: (image: StoreImage) => void;
  /** Files are said to take no room. */
  readonly takesNoRoom?: boolean;
  /** How fast clocks run. */
  readonly clockRate?: number;
}

/** Asks what alarms there are and raises none. */
const SHOW_ALARMS = Buffer.alloc(0);
/** What field 1, the action, is for it. */
const DISARM = 2;

const RECOVERING_MS = 8_000;
/** Field 7 of a range, `serializable`: the last one counts. */
const SERIALIZABLE = Buffer.of(7 * 8, 1);

/** The last byte is one of a value. */
function damaged(body: Uint8Array): Buffer {
  const copy = Buffer.from(body);
  if (copy.length > 0) copy[copy.length - 1] = (copy.at(-1) as number) ^ 1;
  return copy;
}

/** In a queue of its own: field 1 is the queue's name, and the last one counts. */
function onItsOwn(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.of(10, 1, 65 + ((bytes.at(-1) as number) % 26))]);
}

/** When nobody else has a vote. */
function votesAlone(state: LogState, { checkers }: World): LogState {
  const document = state.documents.get('cluster');
  if (checkers.deadSince === undefined || document === undefined || state.identity === undefined) return state;
  const cluster = new Cluster();
  cluster.decode(document);
  const own = state.identity.memberId.toString(16);
  cluster.conf = { voters: [own], outgoing: [], learners: [], learnersNext: [] };
  return { ...state, documents: new Map([...state.documents, ['cluster', cluster.encode()]]) };
}

export const bugs: readonly Bug[] = [
  {
    name: 'members vote for everybody who asks',
    checker: 'election safety',
    message: (message) =>
      message.type === 'voteResp' || (message.type === 'preVoteResp' && !message.granted)
        ? { ...message, granted: true }
        : message,
  },
  {
    name: 'a leader tells one member something else',
    checker: 'log matching',
    message: (message, to) => {
      if (message.type !== 'append' || to !== 'n2') return message;
      const entries = message.entries.map((entry) =>
        entry.kind === 'data' ? { ...entry, data: damaged(entry.data) } : entry,
      );
      return { ...message, entries };
    },
  },
  {
    name: 'a disk that says "written" too early',
    checker: 'durability',
    // With others it ends more often in a log that has a hole.
    setting: { founders: 1, damaging: false },
    diskLies: true,
  },
  {
    name: 'revisions that were set aside are forgotten in a restart',
    checker: 'revisions',
    // Only a member alone gives revisions out before they are written.
    setting: { founders: 1, damaging: false, learner: false },
    found: (state) => ({ ...state, reserved: 0 }),
  },
  {
    name: 'a value that is another after a restart',
    checker: 'state machine safety',
    loaded: (row) => (row.revision % 7 === 0 ? { ...row, body: damaged(row.body) } : row),
  },
  {
    name: 'reads without asking a quorum',
    checker: 'linearizability',
    request: (path, bytes) => (path.endsWith('/Range') ? Buffer.concat([bytes, SERIALIZABLE]) : bytes),
  },
  {
    name: 'guards that are not looked at',
    checker: 'linearizability',
    // Without field 1, the comparisons.
    request: (path, bytes) => (path.endsWith('/Txn') ? bytes.subarray(2 + (bytes[1] as number)) : bytes),
  },
  {
    name: 'a watch leaves events out',
    checker: 'watch',
    watched: (answer, count) => (count % 20 === 0 ? [] : [answer]),
  },
  {
    name: 'a watch says things twice',
    checker: 'watch',
    watched: (answer, count) => (count % 20 === 0 ? [answer, answer] : [answer]),
  },
  {
    name: 'a watch that leaves fragments out',
    checker: 'watch',
    watched: (answer) => (decodeWatchResponse(answer).fragment ? [] : [answer]),
  },
  {
    name: 'a watch that tells of more than was asked for',
    checker: 'watch',
    watching: (create) => ({ ...create, noPut: false, noDelete: false, end: '\0' }),
  },
  { name: 'leases on clocks that run fast', checker: 'lease', clockRate: 1.2 },
  { name: 'leases on clocks that run slow', checker: 'lease', clockRate: 0.4 },
  {
    name: 'an alarm that is said to be raised and is not',
    checker: 'alarm',
    request: (path, bytes) => (path.endsWith('/Alarm') ? SHOW_ALARMS : bytes),
  },
  {
    name: 'users that are added under another name',
    checker: 'users',
    request: (path, bytes) => (path.endsWith('/UserAdd') ? Buffer.concat([bytes, Buffer.of(10, 1, 120)]) : bytes),
  },
  { name: 'everybody is taken for root', checker: 'permissions', setting: { auth: true }, user: 'root' },
  {
    name: 'tokens that outlive a change of auth',
    checker: 'permissions',
    setting: { auth: true, simple: false },
    tokensLast: true,
  },
  {
    name: 'simple tokens that do not end',
    checker: 'tokens',
    setting: { auth: true, simple: true },
    tokenLife: 10,
  },
  {
    name: 'simple tokens that end too early',
    checker: 'tokens',
    setting: { auth: true, simple: true },
    tokenLife: 0.3,
  },
  {
    name: 'members of older builds that are told what they do not know',
    checker: 'builds',
    setting: { auth: true, simple: true, rolling: true },
    claimsToKnow: true,
  },
  {
    name: 'a quota that nobody looks at',
    checker: 'quota',
    setting: { quota: true, damaging: false },
    takesNoRoom: true,
  },
  {
    name: 'an alarm that cannot be disarmed',
    checker: 'liveness',
    setting: { quota: true, damaging: false },
    request: (path, bytes) => (path.endsWith('/Alarm') && bytes[1] === DISARM ? SHOW_ALARMS : bytes),
  },
  {
    name: 'a lock for everybody who asks',
    checker: 'lock',
    setting: { queues: true },
    request: (path, bytes) => (path.endsWith('/Lock') ? onItsOwn(bytes) : bytes),
  },
  {
    name: 'an election that everybody wins',
    checker: 'election',
    setting: { queues: true },
    request: (path, bytes) => (path.endsWith('/Campaign') ? onItsOwn(bytes) : bytes),
  },
  {
    name: 'an observer that is told of who holds a lock',
    checker: 'observer',
    setting: { queues: true },
    request: (path, bytes) =>
      path.endsWith('/Observe') ? Buffer.concat([bytes, Buffer.of(10, 4), Buffer.from('lock')]) : bytes,
  },
  {
    name: 'a lock that outlives the lease of whoever holds it',
    checker: 'liveness',
    setting: { queues: true, damaging: false },
    // Field 2, the lease, is 0: it gets one of its own, which ends in a minute.
    request: (path, bytes) => (path.endsWith('/Lock') ? Buffer.concat([bytes, Buffer.of(16, 0)]) : bytes),
  },
  {
    name: 'a survivor that goes on with less than it has',
    checker: 'recovery',
    setting: { founders: 3, damaging: false, losesQuorum: true },
    recovered: (image) => image.rows.splice(-4, 3),
  },
  {
    name: 'a damaged member that goes on under its old id',
    checker: 'rebuild',
    setting: { founders: 3, damaging: true },
    keepsIdentity: true,
  },
  {
    name: 'a store that gives revisions out again that are lost',
    checker: 'revisions',
    setting: { founders: 1, damaging: true, learner: false },
    noBump: true,
  },
  {
    name: 'a learner that takes itself for a voter',
    checker: 'reinstated',
    setting: { founders: 1, damaging: true, learner: true, auth: false, queues: false, quota: false },
    found: votesAlone,
  },
  {
    name: 'votes that get lost for ever',
    checker: 'liveness',
    message: (message, _to, nowMs) => (message.type === 'voteResp' && nowMs > 2_000 ? undefined : message),
  },
  {
    name: 'a member that is told of nothing any more',
    checker: 'liveness',
    message: (message, to, nowMs) => (to === 'n2' && nowMs > RECOVERING_MS ? undefined : message),
  },
];
