/**
 * Queue of locks and elections: each participant owns a key under `name/` that ends in its lease ID, and the key with
 * the lowest create revision holds the lock. The keys equal those of etcd's clients, so the services and etcd's clients
 * share a queue. Source: etcd clientv3/concurrency key.go, mutex.go, election.go.
 */

import type { Log } from '../../base/log.ts';
import { RpcCode, type UnaryCall } from '../../wire/grpc/port.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import {
  SortOrder,
  SortTarget,
  type WireKeyValue,
  writeCreateRevisionCompare,
  writeDeleteRangeRequest,
  writeOperation,
  writePutRequest,
  writeRangeRequest,
} from '../core/messages/kv.ts';
import type { WatchResponse } from '../core/messages/watch.ts';
import type { LocalClient, LocalReceiver } from './local-client.ts';
import { answerUnary, RpcFailed } from './rpc-errors.ts';

/** Session TTL of etcd's client if the caller passes no lease. */
const SESSION_TTL_SECONDS = 60;

export interface Place {
  readonly key: string;
  readonly lease: bigint;
  readonly createRevision: number;
  /** Value of the key, which differs from the requested value if the key already existed. */
  readonly value: Buffer;
  /** Revision at which the key was created or found. */
  readonly revision: number;
}

export class SessionQueue {
  readonly #client: LocalClient;
  readonly prefix: string;
  readonly #end: string;

  constructor(client: LocalClient, name: string) {
    this.#client = client;
    this.prefix = `${name}/`;
    this.#end = `${name}0`;
  }

  /** Enqueues a key, or finds the existing key of the lease. With lease 0, a lease is granted that is never renewed. */
  async enter(lease: bigint, value: Uint8Array): Promise<Place> {
    const own = lease === 0n ? await this.#grant() : lease;
    const key = `${this.prefix}${own.toString(16)}`;
    const { succeeded, revision, ranges } = await this.#client.txn((out) => {
      writeCreateRevisionCompare(out, key, 0);
      writeOperation(out, 2, 'put', (op) => writePutRequest(op, { key, value, lease: own }));
      writeOperation(out, 3, 'range', (op) => writeRangeRequest(op, { key }));
    });
    const found = ranges[0]?.kvs[0];
    if (succeeded) return { key, lease: own, createRevision: revision, value: Buffer.from(value), revision };
    return {
      key,
      lease: own,
      createRevision: found?.createRevision ?? 0,
      value: found?.value ?? Buffer.alloc(0),
      revision,
    };
  }

  /** Resolves when the key is first in the queue. Throws the signal's reason. */
  async turn(place: Place, signal: AbortSignal): Promise<void> {
    for (;;) {
      const before = await this.#client.range({
        key: this.prefix,
        end: this.#end,
        sortOrder: SortOrder.descend,
        sortTarget: SortTarget.create,
        maxCreateRevision: place.createRevision - 1,
        limit: 1,
      });
      signal.throwIfAborted();
      const [last] = before.kvs;
      if (last === undefined) return;
      await this.#client.watch(
        { key: last.key, startRevision: before.revision + 1, noPut: true },
        signal,
        ({ events }) => events.some((event) => event.type === 1),
      );
    }
  }

  /** Key that is first in the queue. */
  async first(): Promise<{ readonly kv: WireKeyValue | undefined; readonly revision: number }> {
    const { kvs, revision } = await this.#client.range({
      key: this.prefix,
      end: this.#end,
      sortOrder: SortOrder.ascend,
      sortTarget: SortTarget.create,
      limit: 1,
    });
    return { kv: kvs[0], revision };
  }

  /** Next put under the prefix from `revision` on. Undefined when the caller has to list again. */
  async nextPut(
    revision: number,
    signal: AbortSignal,
  ): Promise<{ readonly kv: WireKeyValue; readonly revision: number } | undefined> {
    let found: { readonly kv: WireKeyValue; readonly revision: number } | undefined;
    await this.#client.watch(
      { key: this.prefix, end: this.#end, startRevision: revision, noDelete: true },
      signal,
      (r) => {
        const [event] = r.events;
        if (event !== undefined) found = { kv: event.kv, revision: r.revision };
        return event !== undefined;
      },
    );
    return found;
  }

  /**
   * Calls `put` for every change of `key` from `revision` on, except while `receiver` is blocked. Resolves when the key
   * is deleted.
   */
  async follow(
    key: string,
    revision: number,
    signal: AbortSignal,
    put: (kv: WireKeyValue, revision: number) => void,
    receiver: LocalReceiver,
  ): Promise<void> {
    const accept = ({ events, revision: reached }: WatchResponse): boolean => {
      for (const event of events) {
        if (event.type === 1) return true;
        put(event.kv, reached);
      }
      return false;
    };
    await this.#client.watch({ key, startRevision: revision }, signal, accept, receiver);
  }

  async #grant(): Promise<bigint> {
    const request = new Writer(16).int(1, SESSION_TTL_SECONDS).finish();
    const reader = new Reader(await this.#client.call('/etcdserverpb.Lease/LeaseGrant', request));
    for (let field = reader.field(); field !== 0; field = reader.field()) {
      if (field === 2) return reader.big();
      reader.skip();
    }
    throw new Error('a lease was granted without an id');
  }
}

/** Updates the key if its create revision is unchanged. */
export async function putIfHeld(
  client: LocalClient,
  held: { readonly key: string; readonly lease: bigint; readonly createRevision: number },
  value: Uint8Array,
): Promise<{ readonly succeeded: boolean; readonly revision: number }> {
  return client.txn((out) => {
    writeCreateRevisionCompare(out, held.key, held.createRevision);
    writeOperation(out, 2, 'put', (op) => writePutRequest(op, { key: held.key, value, lease: held.lease }));
  });
}

/** Deletes the key if its create revision is unchanged. */
export async function deleteIfHeld(
  client: LocalClient,
  held: { readonly key: string; readonly createRevision: number },
): Promise<{ readonly revision: number }> {
  return client.txn((out) => {
    writeCreateRevisionCompare(out, held.key, held.createRevision);
    writeOperation(out, 2, 'delete', (op) => writeDeleteRangeRequest(op, { key: held.key }));
  });
}

/** Like `deleteIfHeld`, after a failure. If the delete is rejected, the key is deleted with its lease. */
export async function releaseAfterFailure(client: LocalClient, place: Place): Promise<void> {
  try {
    await deleteIfHeld(client, place);
  } catch (error) {
    if (!(error instanceof RpcFailed)) throw error;
  }
}

/**
 * Like `answer`. etcd implements these services with its own client, whose errors have a text but no status. As in
 * etcd, errors of the store therefore reach the caller with the status Unknown.
 */
export function answerSession(call: UnaryCall, log: Log, work: () => Promise<Uint8Array>): void {
  answerUnary(call, log, () =>
    work().catch((error: unknown) => {
      throw error instanceof RpcFailed && error.code !== RpcCode.cancelled
        ? new RpcFailed(RpcCode.unknown, error.message)
        : error;
    }),
  );
}

/** Aborts when the client cancels. */
export function cancellation(call: Pick<UnaryCall, 'whenCancelled'>): AbortSignal {
  const controller = new AbortController();
  call.whenCancelled(() => controller.abort(new RpcFailed(RpcCode.cancelled, 'context canceled')));
  return controller.signal;
}
