/**
 * `v3electionpb.Election`. Key operations run with the caller's identity. Source: etcd api/v3election/election.go,
 * clientv3/concurrency/election.go.
 */

import type { Log } from '../../base/log.ts';
import { RpcCode, type StreamCall, type StreamHandler } from '../../wire/grpc/port.ts';
import { Reader } from '../../wire/protobuf/protobuf.ts';
import type { WireKeyValue } from '../core/messages/kv.ts';
import type { Encoder } from './encode.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { LocalClient, StreamHandlers } from './local-client.ts';
import { failureOf, RpcFailed } from './rpc-errors.ts';
import {
  answerSession,
  cancellation,
  deleteIfHeld,
  putIfHeld,
  releaseAfterFailure,
  SessionQueue,
} from './session-queue.ts';

interface LeaderKey {
  readonly name: string;
  readonly key: string;
  readonly createRevision: number;
  readonly lease: bigint;
}

export function electionService(
  local: LocalClient,
  encoder: Encoder,
  log: Log,
): { readonly unary: UnaryHandlers; readonly streams: StreamHandlers } {
  const unary: UnaryHandlers = {
    '/v3electionpb.Election/Campaign': (message, call) =>
      answerSession(call, log, async () => {
        const { name, lease, value } = campaignRequest(message);
        const place = await campaign(local.as(call), name, lease, value, cancellation(call));
        const out = encoder.begin(place.revision);
        const mark = out.begin(2);
        out.latin1(1, name).latin1(2, place.key).int(3, place.createRevision).big(4, place.lease).end(mark);
        return out.finish();
      }),
    '/v3electionpb.Election/Proclaim': (message, call) =>
      answerSession(call, log, async () => {
        const { leader, value } = leaderRequest(message);
        const { succeeded, revision } = await putIfHeld(local.as(call), leader, value);
        if (!succeeded) throw new RpcFailed(RpcCode.unknown, 'election: not leader');
        return encoder.begin(revision).finish();
      }),
    '/v3electionpb.Election/Leader': (message, call) =>
      answerSession(call, log, async () => {
        const { kv, revision } = await new SessionQueue(local.as(call), nameOf(message)).first();
        if (kv === undefined) throw new RpcFailed(RpcCode.unknown, 'election: no leader');
        return leaderResponse(encoder, kv, revision);
      }),
    '/v3electionpb.Election/Resign': (message, call) =>
      answerSession(call, log, async () => {
        const { revision } = await deleteIfHeld(local.as(call), leaderRequest(message).leader);
        return encoder.begin(revision).finish();
      }),
  };
  return { unary, streams: { '/v3electionpb.Election/Observe': (call) => observe(call, local, encoder, log) } };
}

async function campaign(client: LocalClient, name: string, lease: bigint, value: Buffer, signal: AbortSignal) {
  const queue = new SessionQueue(client, name);
  const place = await queue.enter(lease, value);
  try {
    if (!place.value.equals(value)) await putIfHeld(client, place, value);
    await queue.turn(place, signal);
  } catch (error) {
    await releaseAfterFailure(client, place);
    throw error;
  }
  if (signal.aborted) await releaseAfterFailure(client, place);
  return place;
}

/** Streams every proclamation of the elected leader, starting with the current proclamation. */
function observe(call: StreamCall, local: LocalClient, encoder: Encoder, log: Log): StreamHandler {
  const controller = new AbortController();
  let started = false;
  const receiver = { blocked: false, drained: () => {} };
  const run = async (name: string): Promise<void> => {
    const queue = new SessionQueue(local.as(call), name);
    const { signal } = controller;
    const send = (kv: WireKeyValue, revision: number): void => {
      if (!call.send(leaderResponse(encoder, kv, revision))) receiver.blocked = true;
    };
    for (;;) {
      const first = await queue.first();
      signal.throwIfAborted();
      const leader =
        first.kv === undefined
          ? await queue.nextPut(first.revision + 1, signal)
          : { kv: first.kv, revision: first.revision };
      if (leader === undefined) continue;
      send(leader.kv, leader.revision);
      const from = first.kv === undefined ? leader.kv.modRevision + 1 : leader.revision + 1;
      await queue.follow(leader.kv.key, from, signal, send, receiver);
    }
  };
  return {
    message: (message) => {
      if (started) return;
      started = true;
      run(nameOf(message)).catch((error: unknown) => {
        if (controller.signal.aborted) return;
        // An error of the store ends the stream without a status, as in etcd.
        if (error instanceof RpcFailed) call.end();
        else {
          const { code, message: text } = failureOf(error, log);
          call.end(code, text);
        }
      });
    },
    ended: () => {},
    closed: () => controller.abort(new RpcFailed(RpcCode.cancelled, 'context canceled')),
    drained: () => {
      receiver.blocked = false;
      receiver.drained();
    },
  };
}

function leaderResponse(encoder: Encoder, kv: WireKeyValue, revision: number): Buffer {
  const out = encoder.begin(revision);
  const mark = out.begin(2);
  out.latin1(1, kv.key).int(2, kv.createRevision).int(3, kv.modRevision).int(4, kv.version);
  return out.bytes(5, kv.value).big(6, kv.lease).end(mark).finish();
}

function campaignRequest(message: Uint8Array): {
  readonly name: string;
  readonly lease: bigint;
  readonly value: Buffer;
} {
  const reader = new Reader(message);
  let name = '';
  let lease = 0n;
  let value: Buffer = Buffer.alloc(0);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.latin1();
    else if (field === 2) lease = reader.big();
    else if (field === 3) value = reader.bytes();
    else reader.skip();
  }
  return { name, lease, value };
}

/** Decodes ProclaimRequest and ResignRequest. */
function leaderRequest(message: Uint8Array): { readonly leader: LeaderKey; readonly value: Buffer } {
  const reader = new Reader(message);
  let leader: LeaderKey | undefined;
  let value: Buffer = Buffer.alloc(0);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) leader = leaderKey(reader.bytes());
    else if (field === 2) value = reader.bytes();
    else reader.skip();
  }
  if (leader === undefined) throw new RpcFailed(RpcCode.unknown, '"leader" field must be provided');
  return { leader, value };
}

function leaderKey(message: Uint8Array): LeaderKey {
  const reader = new Reader(message);
  let name = '';
  let key = '';
  let createRevision = 0;
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.latin1();
    else if (field === 2) key = reader.latin1();
    else if (field === 3) createRevision = reader.int();
    else if (field === 4) lease = reader.big();
    else reader.skip();
  }
  return { name, key, createRevision, lease };
}

function nameOf(message: Uint8Array): string {
  const reader = new Reader(message);
  let name = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.latin1();
    else reader.skip();
  }
  return name;
}
