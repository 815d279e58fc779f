/**
 * Contracts of the store with its disk and its peers: a durable log of revisions (`store/disk`) and channels to the
 * other members (`store/client`). The store keeps the MVCC state in memory and evaluates requests; the log makes the
 * results durable.
 */

/** The kind of a raft log entry, as it is stored. */
export const EntryKind = { noop: 0, revision: 1, revoke: 2, conf: 3, command: 4 } as const;
export type EntryKind = (typeof EntryKind)[keyof typeof EntryKind];

/** A raft log entry. Entries that create a revision hold the data of the store and are kept until compaction. */
export interface StoredEntry {
  readonly index: number;
  readonly term: number;
  readonly kind: EntryKind;
  /** Revision that the entry creates, or 0. */
  readonly revision: number;
  /** Lease that a `revoke` revokes, otherwise 0n. */
  readonly lease: bigint;
  /**
   * For an entry that creates a revision, the encoded events of the transaction (`etcdserverpb.WatchResponse.events`
   * fields, in order). Otherwise a command or a configuration change.
   */
  readonly body: Uint8Array;
}

export interface LeaseRecord {
  readonly id: bigint;
  readonly ttlSeconds: number;
  /** Remaining time at the last checkpoint. Undefined means the full TTL. */
  readonly remainingSeconds?: number;
}

/**
 * Events of a revision that compaction discards: only the events of `keys` (latin1), or the whole row if `keys` is
 * undefined.
 */
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

/** Changes that the applied entries up to log index `index` made to the state other than keys. */
export interface AppliedChanges {
  readonly index: number;
  readonly compacted: number;
  readonly leasesGranted: readonly LeaseRecord[];
  readonly leasesRevoked: readonly bigint[];
  /** Small named documents: the configuration, users, alarms. */
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

/** Atomic batch: it becomes durable as a whole or not at all. */
export interface LogBatch {
  /** Consecutive entries. Stored entries at or after the index of the first entry are removed. */
  readonly entries: readonly StoredEntry[];
  readonly discards: readonly Discard[];
  readonly hardState?: StoredHardState;
  readonly applied?: AppliedChanges;
  /**
   * New base of the log: entries up to this position that create no revision are removed. The base must not exceed the
   * applied index on disk.
   */
  readonly base?: LogPosition;
  /** Highest revision that clients may see before it is on disk. Undefined leaves the limit unchanged. */
  readonly reserved?: number;
}

/** Cluster and member that a store belongs to. Written once. */
export interface StoreIdentity {
  readonly clusterId: bigint;
  readonly memberId: bigint;
}

export interface LogState {
  /** Undefined for a new store. */
  readonly identity: StoreIdentity | undefined;
  readonly hardState: StoredHardState;
  readonly base: LogPosition;
  readonly applied: number;
  readonly compacted: number;
  readonly reserved: number;
  readonly leases: readonly LeaseRecord[];
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

export type PeerUrls = ReadonlyArray<readonly string[]>;

export interface LogSize {
  readonly bytes: number;
  readonly inUseBytes: number;
}

/** Parts of a snapshot for another member except the rows. */
export interface SnapshotHead {
  readonly position: LogPosition;
  /** The snapshot contains the rows up to this revision. */
  readonly revision: number;
  readonly compacted: number;
  readonly clusterId: bigint;
  readonly leases: readonly LeaseRecord[];
  readonly documents: ReadonlyMap<string, Uint8Array>;
}

/**
 * The durable log and the store in it: a journal of batches, and tables built from it.
 *
 * Order: calls take effect in the order in which they are made; reads see every commit made before them.
 *
 * Durability: a batch is on disk as a whole when `commit` resolves and survives a power cut from then on. Until then it
 * may be lost, but only as a whole and together with all batches after it. Raft acknowledges entries and votes after
 * `commit` only, and shows a revision before it only up to `LogBatch.reserved`.
 *
 * Replay: `open` returns the applied index on disk; the entries above it are applied again. `AppliedChanges` may be
 * written later than the entries they come from, never earlier.
 *
 * Errors: CodedError 'no-space' (nothing of the batch was stored; the same batch may succeed later), 'closed', and
 * 'corrupt' where stored data fail their checksums. Any other I/O failure is reported through `onFatal`, since a failed
 * flush cannot be retried: the log is unusable and the process has to exit.
 */
export interface StoreLog {
  /**
   * Locks the data directory. Throws CodedError 'in-use' with the PID of the process that holds it, 'unsupported' when
   * this SQLite is unsafe, 'schema-too-new' when a newer build has changed the tables, 'corrupt' when the file is
   * damaged.
   */
  open(onFatal: (error: Error) => void): Promise<LogState>;
  /** Writes a new store's identity and first state durably. */
  initialise(identity: StoreIdentity, first: LogBatch): Promise<void>;
  /**
   * Passes every stored row that creates a revision, up to log index `upTo`, to `rows` in order. Throws CodedError
   * 'corrupt'.
   */
  load(upTo: number, rows: (rows: readonly StoredEntry[]) => void): Promise<void>;
  /** Resolves when the batch is on disk. `full`: the disk is almost full and the reserved space is in use. */
  commit(batch: LogBatch): Promise<{ readonly full: boolean }>;
  /** Estimated number of bytes that can still be written after `commit` reported `full`. */
  reserveBytes(): number;
  /** Reserves space again after `commit` reported `full`. Returns false while the disk has too little free space. */
  recoverSpace(): Promise<boolean>;
  /**
   * Log entries from index `from` on: at least one, then more up to about `maxBytes`. Empty if the entry at `from` is
   * not stored.
   */
  entries(from: number, maxBytes: number): Promise<readonly StoredEntry[]>;
  /** Events of rows, in the requested order. Undefined for discarded rows. */
  read(revisions: readonly number[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** Next rows with revisions above `after` and up to `upTo`, about a megabyte per call. Empty at the end. */
  rows(after: number, upTo: number): Promise<readonly StoredEntry[]>;
  /** CRC-32 over the rows up to `revision`. */
  hash(revision: number): Promise<number>;
  /**
   * Verifies the checksums of about a megabyte of rows above `after`. Resolves with the last revision read, or 0 at the
   * end. Rejects with 'corrupt'.
   */
  scrub(after: number): Promise<number>;
  size(): Promise<LogSize>;
  /** Applies the changes of the stored format that require this level of the cluster's log, see log-level.ts. */
  changeSchema(level: number): Promise<void>;
  /** Returns free pages to the file system, in small steps. */
  defragment(): Promise<void>;
  /**
   * Copies the store into one file and returns the file in pieces. The copy contains the log up to index `upTo`, or up
   * to the applied index on disk if that is higher, and no uncommitted data. `size` is the size of the file in bytes.
   * The number of copies on disk is limited: a call may wait for other readers, and calls share copies. The caller must
   * read or return `pieces`.
   */
  snapshot(upTo: number): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Uint8Array> }>;
  /**
   * Starts or resumes receiving another member's snapshot beside the store. Returns the last revision already received,
   * which is 0 unless `id` is the snapshot of an earlier attempt.
   */
  receive(id: string): Promise<number>;
  received(id: string, rows: readonly StoredEntry[]): Promise<void>;
  /** Replaces the store with the received snapshot and keeps this member's identity. */
  install(id: string, head: SnapshotHead, hardState: StoredHardState): Promise<LogState>;
  /** Closes the log, which may be opened again afterwards. */
  close(): Promise<void>;
  /** Renames the closed store to a name with a timestamp; it is never deleted automatically. Resolves with the name. */
  quarantine(): Promise<string>;
  /**
   * Saves the peer URLs of the other members in a file beside the store, which can be read even if the store is
   * damaged. Also works on a closed store.
   */
  savePeers(peerUrls: PeerUrls): Promise<void>;
  /**
   * The peer URLs saved last. Undefined when none were saved. Throws CodedError 'unreadable' if the file cannot be
   * read, because without it this member could count as the only one and begin a second history.
   */
  savedPeers(): Promise<PeerUrls | undefined>;
}

/** A stream of messages to a peer. */
export interface PeerStream {
  send(message: Uint8Array): void;
  cancel(): void;
}

/** A connection to one peer that reconnects automatically. Errors have the gRPC status as `code`. */
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

/**
 * Opens a channel to the member at `urls`. `refused` is called when the connection is refused, which means that no
 * process listens there.
 */
export type DialPeer = (urls: readonly string[], refused: () => void) => PeerChannel;
