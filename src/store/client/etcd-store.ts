/** The `Store` port over etcd's v3 API: `hyperedge etcd` or a real etcd. */

import { storeRevision } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import type { Clock } from '../../base/time/clock.ts';
import { Channel, type ChannelOptions, type Metadata } from '../../wire/grpc/channel.ts';
import { LOST } from '../../wire/grpc/client-calls.ts';
import { RpcError } from '../../wire/grpc/messages.ts';
import { RpcCode } from '../../wire/grpc/port.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import {
  decodeHeader,
  decodeRangeResponse,
  decodeTxnResponse,
  type WireKeyValue,
  writeDeleteRangeRequest,
  writeModRevisionCompare,
  writePutRequest,
  writeRangeRequest,
} from '../core/messages/kv.ts';
import {
  type Commit,
  type CommitResult,
  type KeyValue,
  type Put,
  type RangeOptions,
  type RangeResult,
  type Revision,
  type Store,
  StoreError,
  type StoreErrorCode,
  type StoreWatch,
  type WatchHandler,
} from '../port.ts';
import { WatchClient } from './watch-client.ts';

export interface EtcdStoreOptions extends ChannelOptions {
  readonly log: Log;
  readonly clock: Clock;
  /** Time limit of a request, including the connection; 30 s by default. */
  readonly requestTimeoutMs?: number;
}

const REQUEST_TIMEOUT_MS = 30_000;
/** Pause before an idempotent request is retried on another member. */
const REPEAT_MS = 20;
/** Source: etcd api/v3rpc/rpctypes/error.go, ErrGRPCStopped. */
const SERVER_STOPPED = 'server stopped';
const durability = (value: string): Metadata => ({ name: 'hyperedge-durability', value });
const RELAXED = durability('relaxed');
const RESERVE = durability('reserve');
const RELAXED_RESERVE = durability('relaxed,reserve');
const HEARTBEAT = durability('relaxed,heartbeat');
const HEARTBEAT_RESERVE = durability('relaxed,heartbeat,reserve');

/** Connects on first use and reconnects by itself. Values in responses may share memory with the receive buffers. */
export function createEtcdStore(options: EtcdStoreOptions): Store {
  return new EtcdStore(options);
}

function metadataOf({ durability: wanted, reserve = false }: Commit): Metadata | undefined {
  if (wanted === 'relaxed') return reserve ? RELAXED_RESERVE : RELAXED;
  if (wanted === 'heartbeat') return reserve ? HEARTBEAT_RESERVE : HEARTBEAT;
  return reserve ? RESERVE : undefined;
}

/** Shared by all requests: encoding is synchronous. */
const writer = new Writer(16 << 10);

/** Field of etcdserverpb.StatusResponse. */
const DB_SIZE = 3;

class EtcdStore implements Store {
  readonly #channel: Channel;
  readonly #watches: WatchClient;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #closed = false;

  constructor(options: EtcdStoreOptions) {
    this.#clock = options.clock;
    this.#channel = new Channel({ ...options, log: options.log });
    this.#timeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
    this.#watches = new WatchClient(this.#channel, options.clock, options.log);
  }

  async get(
    key: string,
    options?: { readonly revision?: Revision },
  ): Promise<{ readonly kv: KeyValue | undefined; readonly revision: Revision }> {
    const request = writeRangeRequest(writer.reset(), { key, revision: options?.revision ?? 0 }).finishBriefly();
    const { kvs, revision } = decodeRangeResponse(await this.#repeatable('/etcdserverpb.KV/Range', request));
    return { kv: kvs[0] === undefined ? undefined : keyValue(kvs[0]), revision: storeRevision(revision) };
  }

  async range(start: string, end: string, options: RangeOptions = {}): Promise<RangeResult> {
    const request = writeRangeRequest(writer.reset(), {
      key: start,
      end,
      limit: options.limit ?? 0,
      revision: options.revision ?? 0,
      countOnly: options.countOnly ?? false,
      keysOnly: options.keysOnly ?? false,
    }).finishBriefly();
    const answer = decodeRangeResponse(await this.#repeatable('/etcdserverpb.KV/Range', request));
    return {
      kvs: answer.kvs.map(keyValue),
      more: answer.more,
      count: answer.count,
      revision: storeRevision(answer.revision),
    };
  }

  commit(commit: Commit): Promise<CommitResult> {
    const { guards, puts = [], deletes = [] } = commit;
    const metadata = metadataOf(commit);
    const [only] = puts;
    if (guards.length === 0 && deletes.length === 0 && puts.length === 1 && only !== undefined) {
      const request = putRequest(writer.reset(), only).finishBriefly();
      return this.#channel
        .unary('/etcdserverpb.KV/Put', request, this.#timeoutMs, { metadata })
        .then(putResult, refuse);
    }
    const request = txnRequest(writer.reset(), commit).finishBriefly();
    return this.#channel.unary('/etcdserverpb.KV/Txn', request, this.#timeoutMs, { metadata }).then(txnResult, refuse);
  }

  watch(start: string, end: string, fromRevision: Revision, handler: WatchHandler): StoreWatch {
    return this.#watches.watch(start, end, fromRevision, handler);
  }

  async grantLease(ttlSeconds: number): Promise<string> {
    const answer = await this.#call(
      '/etcdserverpb.Lease/LeaseGrant',
      writer.reset().int(1, ttlSeconds).finishBriefly(),
    );
    const reader = new Reader(answer);
    let id = 0n;
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2) id = reader.big();
      else reader.skip();
    }
    return id.toString();
  }

  async keepLease(lease: string): Promise<boolean> {
    // LeaseKeepAlive is a stream; here it carries one request and one response.
    const answer = await this.#repeatable(
      '/etcdserverpb.Lease/LeaseKeepAlive',
      writer.reset().big(1, BigInt(lease)).finishBriefly(),
    );
    const reader = new Reader(answer);
    let ttlSeconds = 0;
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 3) ttlSeconds = reader.int();
      else reader.skip();
    }
    return ttlSeconds > 0;
  }

  async compact(revision: Revision): Promise<void> {
    await this.#call('/etcdserverpb.KV/Compact', writer.reset().int(1, revision).finishBriefly());
  }

  async ping(timeoutMs: number): Promise<void> {
    const request = writeRangeRequest(writer.reset(), { key: 'health', countOnly: true }).finishBriefly();
    try {
      await this.#repeatable('/etcdserverpb.KV/Range', request, timeoutMs);
    } catch (error) {
      throw new StoreError('unavailable', `store does not answer: ${(error as Error).message}`, { cause: error });
    }
  }

  async size(timeoutMs: number): Promise<number> {
    const status = await this.#repeatable('/etcdserverpb.Maintenance/Status', Buffer.alloc(0), timeoutMs);
    const reader = new Reader(status);
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === DB_SIZE) return reader.int();
      reader.skip();
    }
    return 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watches.close();
    this.#channel.close();
  }

  async #call(path: string, request: Buffer): Promise<Buffer> {
    try {
      return await this.#channel.unary(path, request, this.#timeoutMs);
    } catch (error) {
      throw storeError(error);
    }
  }

  /** Sends an idempotent request and retries it if its member stops or the connection is lost. */
  async #repeatable(path: string, request: Buffer, timeoutMs = this.#timeoutMs): Promise<Buffer> {
    const deadline = this.#clock.monotonicMs() + timeoutMs;
    for (let left = timeoutMs; ; left = deadline - this.#clock.monotonicMs()) {
      try {
        return await this.#channel.unary(path, request, left);
      } catch (error) {
        if (this.#closed || !memberLeft(error) || deadline - this.#clock.monotonicMs() <= REPEAT_MS)
          throw storeError(error);
      }
      await new Promise<void>((resolve) => {
        this.#clock.setTimer(REPEAT_MS, resolve);
      });
    }
  }
}

function putRequest(out: Writer, put: Put): Writer {
  return writePutRequest(out, {
    key: put.key,
    value: put.value,
    ...(put.lease === undefined ? {} : { lease: BigInt(put.lease) }),
  });
}

/** Encodes guards as comparisons of mod revisions. If a guard fails, the response contains the current guarded keys. */
function txnRequest(out: Writer, { guards, puts = [], deletes = [] }: Commit): Writer {
  for (const guard of guards) writeModRevisionCompare(out, guard.key, guard.modRevision);
  for (const put of puts) {
    const op = out.begin(2);
    const mark = out.begin(2);
    putRequest(out, put).end(mark).end(op);
  }
  for (const key of deletes) {
    const op = out.begin(2);
    const mark = out.begin(3);
    writeDeleteRangeRequest(out, { key }).end(mark).end(op);
  }
  for (const guard of guards) {
    const op = out.begin(3);
    const mark = out.begin(1);
    writeRangeRequest(out, { key: guard.key }).end(mark).end(op);
  }
  return out;
}

function putResult(answer: Buffer): CommitResult {
  return { committed: true, revision: storeRevision(headerRevision(answer)) };
}

function txnResult(answer: Buffer): CommitResult {
  const { succeeded, revision, ranges } = decodeTxnResponse(answer);
  if (succeeded) return { committed: true, revision: storeRevision(revision) };
  const current = ranges.map((range) => (range.kvs[0] === undefined ? undefined : keyValue(range.kvs[0])));
  return { committed: false, revision: storeRevision(revision), current };
}

function refuse(error: unknown): never {
  throw storeError(error);
}

function keyValue(kv: WireKeyValue): KeyValue {
  return {
    key: kv.key,
    value: kv.value,
    createRevision: storeRevision(kv.createRevision),
    modRevision: storeRevision(kv.modRevision),
  };
}

function headerRevision(answer: Buffer): number {
  const reader = new Reader(answer);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) return decodeHeader(reader.bytes());
    reader.skip();
  }
  return 0;
}

/** Errors that etcd distinguishes only by message text. Source: etcd api/v3rpc/rpctypes/error.go. */
const BY_TEXT: ReadonlyArray<readonly [text: string, code: StoreErrorCode]> = [
  ['has been compacted', 'compacted'],
  ['is a future revision', 'future-revision'],
  ['database space exceeded', 'no-space'],
  ['request is too large', 'too-large'],
  ['message larger than max', 'too-large'],
  ['too many requests', 'too-many-requests'],
  ['lease not found', 'lease-not-found'],
];

/** Whether the error means that this member is stopping, so another member may answer. */
function memberLeft(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.code !== RpcCode.unavailable) return false;
  return error.message.startsWith(LOST) || error.message.includes(SERVER_STOPPED);
}

function storeError(error: unknown): StoreError {
  if (!(error instanceof RpcError)) throw error;
  const known = BY_TEXT.find(([text]) => error.message.includes(text));
  const code: StoreErrorCode =
    known?.[1] ??
    (error.code === RpcCode.unavailable
      ? 'unavailable'
      : error.code === RpcCode.deadlineExceeded
        ? 'timeout'
        : 'internal');
  return new StoreError(code, error.message, { cause: error });
}
