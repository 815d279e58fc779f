import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { UnaryCall } from '../../wire/grpc/port.ts';
import { Reader } from '../../wire/protobuf/protobuf.ts';
import {
  decodeDeleteRangeRequest,
  decodePutRequest,
  decodeRangeRequest,
  decodeTxnRequest,
  type RequestOp,
} from '../core/messages/kv.ts';
import { checkDelete, checkPut, checkRange, checkTxn } from '../core/mvcc/txn-check.ts';
import type { Engine } from '../replication/engine.ts';
import type { WriteOptions } from '../replication/maintenance/space.ts';
import type { Encoder } from './encode.ts';
import { answerUnary, REQUEST_TOO_LARGE } from './rpc-errors.ts';

export type UnaryHandlers = Readonly<Record<string, (message: Uint8Array, call: UnaryCall) => void>>;

/** etcd's `--max-request-bytes`. */
export const MAX_REQUEST_BYTES = 1.5 * 1024 * 1024;
/**
 * Name of the request metadata with a comma-separated list of flags. `relaxed`: the write may be flushed after the
 * response. `heartbeat`: the flush may be delayed by minutes; clients send `relaxed` as well, for members that do not
 * support `heartbeat`. `reserve`: the write may use the reserve of a full disk. etcd ignores this metadata.
 */
export const DURABILITY = 'hyperedge-durability';

/** etcd's `--max-request-bytes` and `--max-txn-ops`. Default: etcd's. */
export interface RequestLimits {
  readonly requestBytes?: number;
  readonly transactionOperations?: number;
}

/** `etcdserverpb.KV`. */
export function kvService(engine: Engine, encoder: Encoder, log: Log, limits: RequestLimits = {}): UnaryHandlers {
  const { requestBytes = MAX_REQUEST_BYTES, transactionOperations } = limits;
  const how = (call: UnaryCall): WriteOptions => {
    const requested = call.metadata(DURABILITY)?.split(',') ?? [];
    return {
      relaxed: requested.includes('relaxed'),
      heartbeat: requested.includes('heartbeat'),
      reserve: requested.includes('reserve'),
    };
  };

  const single = (operation: RequestOp, call: UnaryCall) =>
    engine.txn({ compares: [], success: [operation], failure: [] }, how(call));

  const writes =
    (work: (message: Uint8Array, call: UnaryCall) => Promise<Uint8Array>) =>
    (message: Uint8Array, call: UnaryCall): void => {
      if (message.length > requestBytes) call.fail(REQUEST_TOO_LARGE.code, REQUEST_TOO_LARGE.message);
      else answerUnary(call, log, () => work(message, call));
    };

  return {
    '/etcdserverpb.KV/Range': (message, call) =>
      answerUnary(call, log, async () => {
        const request = decodeRangeRequest(message);
        checkRange(request);
        const { answer: range, revision } = await engine.range(request);
        return encoder.range(range, revision);
      }),
    '/etcdserverpb.KV/Put': writes(async (message, call) => {
      const put = decodePutRequest(message);
      checkPut(put);
      const decision = await single({ kind: 'put', put }, call);
      const [result] = decision.answer.answers;
      return encoder.put(result?.kind === 'put' ? result.previous : undefined, decision.revision);
    }),
    '/etcdserverpb.KV/DeleteRange': writes(async (message, call) => {
      const request = decodeDeleteRangeRequest(message);
      checkDelete(request);
      const decision = await single({ kind: 'delete', delete: request }, call);
      const [result] = decision.answer.answers;
      if (result?.kind !== 'delete') throw new Error('the response to a delete is not a delete response');
      return encoder.deleted(result.deleted, result.previous, decision.revision);
    }),
    '/etcdserverpb.KV/Txn': (message, call) =>
      answerUnary(call, log, async () => {
        const request = decodeTxnRequest(message);
        checkTxn(request, transactionOperations);
        // Read-only transactions do not go through the log, so the limit does not apply.
        if (message.length > requestBytes && !engine.machine.isReadOnly(request)) {
          throw new CodedError('request-too-large', 'the transaction exceeds the size limit of requests');
        }
        return encoder.txn(await engine.txn(request, how(call)));
      }),
    '/etcdserverpb.KV/Compact': (message, call) =>
      answerUnary(call, log, async () => {
        const reader = new Reader(message);
        let revision = 0;
        let physical = false;
        for (let field = reader.field(); field !== 0; field = reader.field()) {
          if (field === 1) revision = reader.int();
          else if (field === 2) physical = reader.bool();
          else reader.skip();
        }
        await engine.compact(revision, { physical });
        return encoder.begin(engine.machine.visible).finish();
      }),
  };
}
