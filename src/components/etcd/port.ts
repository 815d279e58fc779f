/**
 * What the etcd component needs from outside: a log of revisions (`io/sqlite`) and a gRPC/HTTP listener (`io/grpc`). The
 * component keeps the MVCC state in memory and decides; the log only makes it last.
 */

/** What an entry of the raft log is, as it is stored. */
export const EntryKind = { noop: 0, revision: 1, revoke: 2, conf: 3, command: 4 } as const;
export type EntryKind = (typeof EntryKind)[keyof typeof EntryKind];

/** One entry of the raft log. Those that make a revision are the store itself and stay until compaction of revisions discards them. */
export interface StoredEntry {
  readonly index: number;
  readonly term: number;
  readonly kind: EntryKind;
  /** The revision that it makes; 0: none. */
  readonly revision: number;
  /** The lease that a `revoke` ends; 0n otherwise. */
  readonly lease: bigint;
  /**
   * Where it makes a revision, the encoded events of the transaction (`etcdserverpb.WatchResponse.events` fields, in order); else a command or a
   * change of the configuration.
   */
  readonly body: Uint8Array;
}

export interface LeaseRecord {
  readonly id: bigint;
  readonly ttlSeconds: number;
  /** What was left at the last check-point; undefined: all of it. */
  readonly remainingSeconds?: number;
}

/** Events that history no longer needs: a whole row (`keys` undefined), or these keys (latin1) out of a row of several. */
export interface Discard {
  readonly revision: number;
  readonly keys?: readonly string[];
}

export interface LogPosition {
  readonly index: number;
  readonly term: number;
}

export interface StoredHardState {
  readonly term: number;
  readonly vote: string | undefined;
  readonly commit: number;
}

/** What applied entries have made of the state beside the keys, as of `index`. */
export interface AppliedChanges {
  readonly index: number;
  readonly compacted: number;
  readonly leasesGranted: readonly LeaseRecord[];
  readonly leasesRevoked: readonly bigint[];
  /** Small named documents: the configuration, users, alarms. */
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

/** Everything in a batch becomes durable together, or nothing does. */
export interface LogBatch {
  /** Consecutive. Whatever is stored at or behind the first one's index goes. */
  readonly entries: readonly StoredEntry[];
  readonly discards: readonly Discard[];
  readonly hardState?: StoredHardState;
  readonly applied?: AppliedChanges;
  /** The log begins behind this now: entries up to here that make no revision are removed. Not above what is applied in the same or an earlier batch. */
  readonly base?: LogPosition;
  /** No revision above this was ever shown to anybody before it was on disk; undefined: unchanged. */
  readonly reserved?: number;
}

/** Who a store belongs to; written once. */
export interface StoreIdentity {
  readonly clusterId: bigint;
  readonly memberId: bigint;
}

export interface LogState {
  /** Undefined: the store is new. */
  readonly identity: StoreIdentity | undefined;
  readonly hardState: StoredHardState;
  readonly base: LogPosition;
  readonly applied: number;
  readonly compacted: number;
  readonly reserved: number;
  readonly leases: readonly LeaseRecord[];
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

/** Those of each member. */
export type PeerUrls = ReadonlyArray<readonly string[]>;

export interface LogSize {
  readonly bytes: number;
  readonly inUseBytes: number;
}

/** What a snapshot for another member consists of beside the rows. */
export interface SnapshotHead {
  readonly position: LogPosition;
  /** Rows up to this revision belong to it. */
  readonly revision: number;
  readonly compacted: number;
  readonly clusterId: bigint;
  readonly leases: readonly LeaseRecord[];
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

/**
 * The durable log and the store in it. Errors: CodedError 'no-space' (nothing of the batch was stored; the same batch may succeed later) and
 * 'closed'. Any other I/O failure is reported through `onFatal` and the log is unusable: the process has to end. Calls take effect in their order.
 */
export interface StoreLog {
  /**
   * Takes the data directory. Throws CodedError 'in-use' naming the pid of another process that has it, 'unsupported' when the SQLite at hand is
   * not safe, 'corrupt' when the file is damaged.
   */
  open(onFatal: (error: Error) => void): Promise<LogState>;
  /** A new store's identity and first state, durably. */
  initialise(identity: StoreIdentity, first: LogBatch): Promise<void>;
  /** Hands every stored row that makes a revision, up to log index `upTo`, to `rows` in order. Throws CodedError 'corrupt'. */
  load(upTo: number, rows: (rows: readonly StoredEntry[]) => void): Promise<void>;
  /** Resolves when the batch is on disk. `full`: there is hardly any more room; what was set aside for that case is being used. */
  commit(batch: LogBatch): Promise<{ readonly full: boolean }>;
  /** What can be written after `full`, in bytes; 0: nothing. */
  reserveBytes(): number;
  /** Sets room aside again after `full`. False while there is none. */
  recoverSpace(): Promise<boolean>;
  /** Entries of the log from index `from` on, at least one if there is one, up to about `maxBytes`; none if they are not stored. */
  entries(from: number, maxBytes: number): Promise<readonly StoredEntry[]>;
  /** The events of rows, in the order asked; undefined for rows that are gone. */
  read(revisions: readonly number[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Rows with revisions above `after` and up to `upTo`, about a megabyte; none at the end. */
  rows(after: number, upTo: number): Promise<readonly StoredEntry[]>;
  /** CRC-32 over the rows up to `revision`. */
  hash(revision: number): Promise<number>;
  /** Reads about a megabyte of rows above `after` for nothing but their checksums. Resolves with the last one read, 0 at the end. Rejects with 'corrupt'. */
  scrub(after: number): Promise<number>;
  size(): Promise<LogSize>;
  /** Gives free pages back to the file system, in small steps. */
  defragment(): Promise<void>;
  /**
   * A copy of the store as one file, in pieces: all that is committed up to index `upTo`, at least what is applied on disk, and nothing that
   * may never be. `size` is that of the whole copy.
   */
  snapshot(upTo: number): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Uint8Array> }>;
  /**
   * Begins to take in, or goes on taking in, another member's snapshot beside the store. Returns the last revision that is already there: not 0
   * only when `id` is the one that was begun before.
   */
  receive(id: string): Promise<number>;
  received(id: string, rows: readonly StoredEntry[]): Promise<void>;
  /** Replaces the store by the snapshot that was taken in, keeping who this member is. */
  install(id: string, head: SnapshotHead, hardState: StoredHardState): Promise<LogState>;
  /** May be opened again afterwards. */
  close(): Promise<void>;
  /** Puts the closed store aside, under a name that says since when, and never to be deleted by us. Resolves with the name. */
  quarantine(): Promise<string>;
  /** Keeps, beside the store, where the other members are: who cannot read the store has to know whether there are any. Works on a closed store too. */
  noteOthers(peerUrls: PeerUrls): Promise<void>;
  /** What was noted last; undefined when nothing ever was, or it cannot be read. */
  notedOthers(): Promise<PeerUrls | undefined>;
}

/** gRPC status codes that are used here. Source: gRPC status codes document. */
export const RpcCode = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export type RpcCode = (typeof RpcCode)[keyof typeof RpcCode];

/** What a call says about who makes it. */
export interface CallIdentity {
  /** A request metadata value; names are lower case. */
  metadata(name: string): string | undefined;
  /** The common name of the verified client certificate; '' when there is none. */
  peerCommonName(): string;
}

/** A message, whole or in pieces. Whoever hands it over does not change its memory any more. */
export type RpcMessage = Uint8Array | readonly Uint8Array[];

export function messageLength(message: RpcMessage): number {
  if (message instanceof Uint8Array) return message.length;
  let length = 0;
  for (const piece of message) length += piece.length;
  return length;
}

/** The message in one piece; a view where it is one already. */
export function wholeMessage(message: RpcMessage): Buffer {
  if (!(message instanceof Uint8Array)) return Buffer.concat(message);
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

/** One unary call. Exactly one of `reply` and `fail` is called, once; both are no-ops when the caller is gone. */
export interface UnaryCall extends CallIdentity {
  /** Where it is given, it is called instead of `fail` when only the leader can answer: it sees to it that the leader does. */
  redirect?(): void;
  reply(message: RpcMessage): void;
  fail(code: RpcCode, message: string): void;
  /** `listener` is called once when the caller gives up before it was answered; at once when it already has. */
  whenCancelled(listener: () => void): void;
}

export interface StreamCall extends CallIdentity {
  /** Queues a message made of `parts`. Returns false when the peer is slow: wait for `drained` before sending more. */
  send(...parts: readonly Uint8Array[]): boolean;
  /** Ends the stream, with success by default. */
  end(code?: RpcCode, message?: string): void;
}

export interface StreamHandler {
  message(message: Uint8Array): void;
  /** The peer has sent its last message. */
  ended(): void;
  /** The stream is gone, whatever the reason. Called once. */
  closed(): void;
  /** What was queued has been taken by the peer after `send` returned false. */
  drained(): void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Goes on after the head, for as long as it likes. */
  readonly follow?: (out: HttpStream) => void;
}

/** An answer that is written bit by bit. */
export interface HttpStream {
  /** False: the peer is slow, wait for `drained`. */
  write(text: string): boolean;
  end(): void;
  /** `listener` is called when the peer is gone, or the answer has ended. */
  closed(listener: () => void): void;
  drained(listener: () => void): void;
}

/** A plain HTTP request on the same port. */
export interface HttpRequest extends CallIdentity {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole body; throws CodedError 'too-large'. */
  body(): Promise<Uint8Array>;
  /** `listener` is called when the client is gone, or has its answer. */
  closed(listener: () => void): void;
}

export interface RpcService {
  /** Whether any method of `name`, a full service name, is known. */
  hasService(name: string): boolean;
  unary(path: string): ((message: Uint8Array, call: UnaryCall) => void) | undefined;
  stream(path: string): ((call: StreamCall) => StreamHandler) | undefined;
  /** Plain requests on the same port (`/health`, `/metrics` …). */
  http(request: HttpRequest): Promise<HttpAnswer>;
}

export interface RpcListener {
  /** Starts to listen. Throws CodedError 'address-in-use' naming the address. */
  listen(service: RpcService): Promise<{ readonly host: string; readonly port: number }>;
  /** Stops accepting, tells peers to go away, and closes what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** A stream of messages to a peer. */
export interface PeerStream {
  send(message: Uint8Array): void;
  cancel(): void;
}

/** A connection to one peer that comes back by itself. Errors have etcd's status as `code`. */
export interface PeerChannel {
  /** Whether there is a connection at the moment. */
  readonly connected: boolean;
  unary(path: string, message: Uint8Array, timeoutMs: number): Promise<Uint8Array>;
  stream(
    path: string,
    events: { message(message: Uint8Array): void; ended(error: Error | undefined): void },
  ): PeerStream;
  close(): void;
}

/** Opens a channel to whoever listens on `urls`. `refused` is told when nobody does: the process is not there. */
export type DialPeer = (urls: readonly string[], refused: () => void) => PeerChannel;
