import type { Log } from '../../base/log.ts';
import { RpcCode } from '../../wire/grpc/port.ts';
import { Reader, Writer } from '../../wire/protobuf/protobuf.ts';
import type { Encoder } from './encode.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { LocalClient } from './local-client.ts';
import { RpcFailed } from './rpc-errors.ts';
import { answerSession, cancellation, releaseAfterFailure, SessionQueue } from './session-queue.ts';

/**
 * `v3lockpb.Lock`. `Lock` responds when the caller's lease is first in the queue. A cancelled call leaves the queue.
 * All key operations run with the caller's identity and permissions. Source: etcd api/v3lock/lock.go,
 * clientv3/concurrency/mutex.go.
 */
export function lockService(local: LocalClient, encoder: Encoder, log: Log): UnaryHandlers {
  return {
    '/v3lockpb.Lock/Lock': (message, call) =>
      answerSession(call, log, async () => {
        const client = local.as(call);
        const signal = cancellation(call);
        const { name, lease } = nameAndLease(message);
        const queue = new SessionQueue(client, name);
        const place = await queue.enter(lease, Buffer.alloc(0));
        try {
          await queue.turn(place, signal);
        } catch (error) {
          await releaseAfterFailure(client, place);
          throw error;
        }
        // The lease and its key may have expired while the call waited.
        const held = await client.range({ key: place.key });
        if (held.kvs.length === 0) throw new RpcFailed(RpcCode.unknown, 'mutex: session is expired');
        if (signal.aborted) await releaseAfterFailure(client, place);
        return encoder.begin(held.revision).latin1(2, place.key).finish();
      }),
    '/v3lockpb.Lock/Unlock': (message, call) =>
      answerSession(call, log, async () => {
        // An UnlockRequest has the same bytes as a DeleteRangeRequest for its key.
        const reader = new Reader(await local.as(call).call('/etcdserverpb.KV/DeleteRange', message));
        reader.field();
        return new Writer(64).message(1, reader.bytes()).finish();
      }),
  };
}

function nameAndLease(message: Uint8Array): { readonly name: string; readonly lease: bigint } {
  const reader = new Reader(message);
  let name = '';
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.latin1();
    else if (field === 2) lease = reader.big();
    else reader.skip();
  }
  return { name, lease };
}
