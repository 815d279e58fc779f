/**
 * What the etcd component needs from outside: a log of revisions (`io/sqlite`) and a gRPC/HTTP listener (`io/grpc`). The
 * component keeps the MVCC state in memory and decides; the log only makes it last.
 */

/** One revision: the encoded events of the transaction that made it (`etcdserverpb.WatchResponse.events` fields, in order). */
export interface LogRow {
  readonly revision: number;
  readonly events: Uint8Array;
}

export interface LeaseRecord {
  readonly id: bigint;
  readonly ttlSeconds: number;
}

/** Events that history no longer needs: a whole row (`keys` undefined), or these keys (latin1) out of a row of several. */
export interface Discard {
  readonly revision: number;
  readonly keys?: readonly string[];
}

/** Everything in a batch becomes durable together, or nothing does. */
export interface LogBatch {
  readonly rows: readonly LogRow[];
  readonly leasesGranted: readonly LeaseRecord[];
  readonly leasesRevoked: readonly bigint[];
  readonly discards: readonly Discard[];
  /** The compaction revision, when it has moved. */
  readonly compacted?: number;
  /** No revision above this was ever shown to anybody before it was on disk; undefined: unchanged. */
  readonly reserved?: number;
}

export interface LogState {
  readonly clusterId: bigint;
  readonly memberId: bigint;
  readonly compacted: number;
  readonly reserved: number;
  readonly leases: readonly LeaseRecord[];
}

export interface LogSize {
  readonly bytes: number;
  readonly inUseBytes: number;
}

/**
 * The durable log. Errors: CodedError 'no-space' (nothing of the batch was stored; later batches may succeed) and 'closed'.
 * Any other I/O failure is reported through `onFatal` and the log is unusable: the process has to end.
 */
export interface RevisionLog {
  /**
   * Takes the data directory and hands every stored row to `load` in order. Throws CodedError 'in-use' naming the pid of another
   * process that has it, 'unsupported' when the SQLite at hand is not safe, 'corrupt' when the file is damaged.
   */
  open(load: (rows: readonly LogRow[]) => void, onFatal: (error: Error) => void): Promise<LogState>;
  /** Resolves when the batch is on disk. Batches take effect in the order of the calls. */
  commit(batch: LogBatch): Promise<void>;
  /** The events of rows, in the order asked; undefined for rows that are gone. */
  read(revisions: readonly number[]): Promise<readonly (Uint8Array | undefined)[]>;
  /** CRC-32 over the rows up to `revision`. */
  hash(revision: number): Promise<number>;
  size(): Promise<LogSize>;
  /** Gives free pages back to the file system and empties the write-ahead log, in small steps. */
  defragment(): Promise<void>;
  /** A consistent copy of the database file, in pieces. `size` is that of the whole copy. */
  snapshot(): Promise<{ readonly size: number; readonly pieces: AsyncIterable<Uint8Array> }>;
  close(): Promise<void>;
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

/** One unary call. Exactly one of `reply` and `fail` is called, once; both are no-ops when the caller is gone. */
export interface UnaryCall extends CallIdentity {
  reply(message: Uint8Array): void;
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
}

export interface RpcService {
  /** Whether any method of `name`, a full service name, is known. */
  hasService(name: string): boolean;
  unary(path: string): ((message: Uint8Array, call: UnaryCall) => void) | undefined;
  stream(path: string): ((call: StreamCall) => StreamHandler) | undefined;
  /** Plain requests on the same port (`/health`, `/metrics` …). */
  http(method: string, path: string): Promise<HttpAnswer>;
}

export interface RpcListener {
  /** Starts to listen. Throws CodedError 'address-in-use' naming the address. */
  listen(service: RpcService): Promise<{ readonly host: string; readonly port: number }>;
  /** Stops accepting, tells peers to go away, and closes what is left after `graceMs`. */
  close(graceMs: number): Promise<void>;
}
