import { decodeWatchResponse } from '../../../src/store/core/messages/watch.ts';
import type { Message } from '../../../src/store/core/raft/types.ts';
import type { LogState, StoredEntry } from '../../../src/store/disk/port.ts';
import { Cluster } from '../../../src/store/membership/cluster.ts';
import type { CheckerName } from './checkers.ts';
import type { StoreImage } from './store-image.ts';
import type { Wanted } from './watcher.ts';
import type { World } from './world.ts';

/** Main settings of a run. */
export interface Setting {
  /** Number of initial members. */
  readonly founders: number;
  /** Whether files are damaged and disks wiped. Otherwise members are added and removed. */
  readonly damaging: boolean;
  /** Whether the cluster has a learner from the start. Applies if `damaging` is set. */
  readonly learner: boolean;
  /** Whether authentication is enabled. */
  readonly auth: boolean;
  /** Whether the store has a quota that can be exceeded. */
  readonly quota: boolean;
  /** Whether clients use a lock and an election. */
  readonly queues: boolean;
  /** Whether tokens are simple tokens, which are replicated to every member. */
  readonly simple: boolean;
  /** Whether members start with an older build and are updated one by one. */
  readonly rolling: boolean;
  /** Whether so many members are lost permanently at the end that no quorum is left. */
  readonly losesQuorum: boolean;
}

/** A bug planted around the program, to verify that a checker detects it. */
export interface Bug {
  readonly name: string;
  readonly checker: CheckerName;
  /** Settings with which the bug becomes visible. The other settings are random. */
  readonly setting?: Partial<Setting>;
  /** Writes are reported as durable before they are. */
  readonly diskLies?: boolean;
  /** Modifies the disk state that a member reads when it starts. */
  readonly found?: (state: LogState, world: World) => LogState;
  /** A store that is set aside keeps its identity and the start of its log the first time. */
  readonly keepsIdentity?: boolean;
  /** After a restore, revisions continue directly after the snapshot, without a gap. */
  readonly noBump?: boolean;
  /** Modifies a row that is loaded when a member starts. */
  readonly loaded?: (row: StoredEntry) => StoredEntry;
  /** Modifies a message received from another member; undefined drops it. */
  readonly message?: (message: Message, to: string, nowMs: number) => Message | undefined;
  /** Modifies requests of clients. */
  readonly request?: (path: string, bytes: Buffer) => Buffer;
  /** Modifies the `count`th watch response with events. */
  readonly watched?: (answer: Buffer, count: number) => readonly Buffer[];
  /** Modifies the range and filters of a watch. */
  readonly watching?: (create: Wanted) => Wanted;
  /** Every client with a certificate is authenticated as this user. */
  readonly user?: string;
  /** Tokens never expire. */
  readonly tokensLast?: boolean;
  /** Factor by which simple tokens live too long. */
  readonly tokenLife?: number;
  /** Members of older builds report that they support every entry kind. */
  readonly claimsToKnow?: boolean;
  /** Modifies the store of a survivor after it became a single-member cluster. */
  readonly recovered?: (image: StoreImage) => void;
  /** Files are reported as empty. */
  readonly takesNoRoom?: boolean;
  /** Speed of the clocks. */
  readonly clockRate?: number;
}

/** Body of a request that lists alarms without raising any. */
const SHOW_ALARMS = Buffer.alloc(0);
/** Value of field 1, the action, that disarms an alarm. */
const DISARM = 2;

const RECOVERING_MS = 8_000;
/** Field 7 of a range, `serializable`. A repeated field overrides the earlier value. */
const SERIALIZABLE = Buffer.of(7 * 8, 1);

/** The last byte belongs to a value. */
function damaged(body: Uint8Array): Buffer {
  const copy = Buffer.from(body);
  if (copy.length > 0) copy[copy.length - 1] = (copy.at(-1) as number) ^ 1;
  return copy;
}

/**
 * Moves the request to its own queue: field 1 is the queue's name, and a repeated field overrides the earlier value.
 */
function onItsOwn(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.of(10, 1, 65 + ((bytes.at(-1) as number) % 26))]);
}

/** Makes the member the only voter after the actual only voter was lost. */
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
    name: 'members vote for every candidate',
    checker: 'election safety',
    message: (message) =>
      message.type === 'voteResp' || (message.type === 'preVoteResp' && !message.granted)
        ? { ...message, granted: true }
        : message,
  },
  {
    name: 'a leader sends different entries to one member',
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
    name: 'a disk reports writes as durable too early',
    checker: 'durability',
    // If the store has several members, the bug more often shows as a gap in a log.
    setting: { founders: 1, damaging: false },
    diskLies: true,
  },
  {
    name: 'reserved revisions are lost in a restart',
    checker: 'revisions',
    // Only a single member allocates revisions before they are written.
    setting: { founders: 1, damaging: false, learner: false },
    found: (state) => ({ ...state, reserved: 0 }),
  },
  {
    name: 'a value changes in a restart',
    checker: 'state machine safety',
    loaded: (row) => (row.revision % 7 === 0 ? { ...row, body: damaged(row.body) } : row),
  },
  {
    name: 'reads without confirmation by a quorum',
    checker: 'linearizability',
    request: (path, bytes) => (path.endsWith('/Range') ? Buffer.concat([bytes, SERIALIZABLE]) : bytes),
  },
  {
    name: 'guards are ignored',
    checker: 'linearizability',
    // Removes field 1 of the transaction, which has the comparisons.
    request: (path, bytes) => (path.endsWith('/Txn') ? bytes.subarray(2 + (bytes[1] as number)) : bytes),
  },
  {
    name: 'a watch omits events',
    checker: 'watch',
    watched: (answer, count) => (count % 20 === 0 ? [] : [answer]),
  },
  {
    name: 'a watch delivers events twice',
    checker: 'watch',
    watched: (answer, count) => (count % 20 === 0 ? [answer, answer] : [answer]),
  },
  {
    name: 'a watch omits fragments',
    checker: 'watch',
    watched: (answer) => (decodeWatchResponse(answer).fragment ? [] : [answer]),
  },
  {
    name: 'a watch delivers events outside of its range',
    checker: 'watch',
    watching: (create) => ({ ...create, noPut: false, noDelete: false, end: '\0' }),
  },
  { name: 'leases expire on fast clocks', checker: 'lease', clockRate: 1.2 },
  { name: 'leases persist on slow clocks', checker: 'lease', clockRate: 0.4 },
  {
    name: 'an acknowledged alarm is not raised',
    checker: 'alarm',
    request: (path, bytes) => (path.endsWith('/Alarm') ? SHOW_ALARMS : bytes),
  },
  {
    name: 'users are added under another name',
    checker: 'users',
    request: (path, bytes) => (path.endsWith('/UserAdd') ? Buffer.concat([bytes, Buffer.of(10, 1, 120)]) : bytes),
  },
  { name: 'every client is authenticated as root', checker: 'permissions', setting: { auth: true }, user: 'root' },
  {
    name: 'tokens stay valid after a change of auth',
    checker: 'permissions',
    setting: { auth: true, simple: false },
    tokensLast: true,
  },
  {
    name: 'simple tokens never expire',
    checker: 'tokens',
    setting: { auth: true, simple: true },
    tokenLife: 10,
  },
  {
    name: 'simple tokens expire too early',
    checker: 'tokens',
    setting: { auth: true, simple: true },
    tokenLife: 0.3,
  },
  {
    name: 'members of older builds receive unsupported entries',
    checker: 'builds',
    setting: { auth: true, simple: true, rolling: true },
    claimsToKnow: true,
  },
  {
    name: 'the quota is not enforced',
    checker: 'quota',
    setting: { quota: true, damaging: false },
    takesNoRoom: true,
  },
  {
    name: 'an alarm cannot be disarmed',
    checker: 'liveness',
    setting: { quota: true, damaging: false },
    request: (path, bytes) => (path.endsWith('/Alarm') && bytes[1] === DISARM ? SHOW_ALARMS : bytes),
  },
  {
    name: 'a lock is granted to every client',
    checker: 'lock',
    setting: { queues: true },
    request: (path, bytes) => (path.endsWith('/Lock') ? onItsOwn(bytes) : bytes),
  },
  {
    name: 'every candidate wins an election',
    checker: 'election',
    setting: { queues: true },
    request: (path, bytes) => (path.endsWith('/Campaign') ? onItsOwn(bytes) : bytes),
  },
  {
    name: 'an observer receives the holder of a lock',
    checker: 'observer',
    setting: { queues: true },
    request: (path, bytes) =>
      path.endsWith('/Observe') ? Buffer.concat([bytes, Buffer.of(10, 4), Buffer.from('lock')]) : bytes,
  },
  {
    name: 'a lock outlives the lease of its holder',
    checker: 'liveness',
    setting: { queues: true, damaging: false },
    // Sets field 2, the lease, to 0: the session gets its own lease, which expires in a minute.
    request: (path, bytes) => (path.endsWith('/Lock') ? Buffer.concat([bytes, Buffer.of(16, 0)]) : bytes),
  },
  {
    name: 'a survivor of a quorum loss drops committed entries',
    checker: 'recovery',
    setting: { founders: 3, damaging: false, losesQuorum: true },
    recovered: (image) => image.rows.splice(-4, 3),
  },
  {
    name: 'a damaged member continues with its old ID',
    checker: 'rebuild',
    setting: { founders: 3, damaging: true },
    keepsIdentity: true,
  },
  {
    name: 'a restored store allocates lost revisions again',
    checker: 'revisions',
    setting: { founders: 1, damaging: true, learner: false },
    noBump: true,
  },
  {
    name: 'a learner acts as a voter',
    checker: 'reinstated',
    setting: { founders: 1, damaging: true, learner: true, auth: false, queues: false, quota: false },
    found: votesAlone,
  },
  {
    name: 'all votes are lost',
    checker: 'liveness',
    message: (message, _to, nowMs) => (message.type === 'voteResp' && nowMs > 2_000 ? undefined : message),
  },
  {
    name: 'a member receives no entries any more',
    checker: 'liveness',
    message: (message, to, nowMs) => (to === 'n2' && nowMs > RECOVERING_MS ? undefined : message),
  },
];
