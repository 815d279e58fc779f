/**
 * In-process client of this server, which calls the network handlers with the same bytes. Locks, elections and the JSON
 * gateway use it and behave like remote clients, on a leader and on a follower.
 */

import { type CallIdentity, RpcCode, type StreamCall, type StreamHandler, wholeMessage } from '../../wire/grpc/port.ts';
import { Writer } from '../../wire/protobuf/protobuf.ts';
import {
  decodeRangeResponse,
  decodeTxnResponse,
  type RangeRequest,
  type WireRangeResponse,
  type WireTxnResponse,
  writeRangeRequest,
} from '../core/messages/kv.ts';
import {
  decodeWatchResponse,
  type WatchCreateRequest,
  type WatchResponse,
  writeWatchCreate,
} from '../core/messages/watch.ts';
import type { UnaryHandlers } from './kv-service.ts';
import { RpcFailed } from './rpc-errors.ts';

export type StreamHandlers = Readonly<Record<string, (call: StreamCall) => StreamHandler>>;

export interface LocalStream {
  send(message: Uint8Array): void;
  /** Ends the sender's side. */
  end(): void;
  /** Stops the delivery. */
  cancel(): void;
  /** Called when the receiver has capacity again after it returned false. */
  drained(): void;
}

export interface LocalStreamEvents {
  /** Returns false when the sender must wait for `drained`. */
  message(message: Buffer): boolean;
  ended(failure: RpcFailed | undefined): void;
}

/** Receiver of a watch that can stop the events for a while. The watch sets `drained`. */
export interface LocalReceiver {
  readonly blocked: boolean;
  /** Continues the watch. The receiver calls it when it is not blocked any more. */
  drained: () => void;
}

const ANONYMOUS: CallIdentity = { metadata: () => undefined, peerCommonName: () => '' };
const WATCH = '/etcdserverpb.Watch/Watch';

export class LocalClient {
  readonly #unary: UnaryHandlers;
  readonly #streams: StreamHandlers;
  readonly #caller: CallIdentity;

  /** `caller`: identity of calls for which no other identity is given. Default: anonymous. */
  constructor(unary: UnaryHandlers, streams: StreamHandlers, caller: CallIdentity = ANONYMOUS) {
    this.#unary = unary;
    this.#streams = streams;
    this.#caller = caller;
  }

  /** Creates a client with the identity of `call`, whose permissions are checked for each call. */
  as(call: CallIdentity): LocalClient {
    return new LocalClient(this.#unary, this.#streams, call);
  }

  /** Throws RpcFailed with the status that a remote client would receive. */
  call(path: string, message: Uint8Array, identity: CallIdentity = this.#caller): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const handler = this.#unary[path];
      if (handler === undefined) {
        reject(new RpcFailed(RpcCode.unimplemented, `unknown method ${path}`));
        return;
      }
      handler(message, {
        metadata: (name) => identity.metadata(name),
        peerCommonName: () => identity.peerCommonName(),
        reply: (answer) => resolve(wholeMessage(answer)),
        fail: (code, text) => reject(new RpcFailed(code, text)),
        whenCancelled: () => {},
      });
    });
  }

  stream(path: string, events: LocalStreamEvents, identity: CallIdentity = this.#caller): LocalStream {
    let over = false;
    const open = this.#streams[path];
    if (open === undefined) {
      events.ended(new RpcFailed(RpcCode.unimplemented, `unknown method ${path}`));
      return { send: () => {}, end: () => {}, cancel: () => {}, drained: () => {} };
    }
    const handler = open({
      metadata: (name) => identity.metadata(name),
      peerCommonName: () => identity.peerCommonName(),
      // Callers send a single message.
      pause: () => {},
      resume: () => {},
      send: (...parts) => over || events.message(Buffer.concat(parts)),
      end: (code = RpcCode.ok, text = '') => {
        if (over) return;
        over = true;
        events.ended(code === RpcCode.ok ? undefined : new RpcFailed(code, text));
      },
    });
    return {
      send: (message) => handler.message(message),
      end: () => handler.ended(),
      cancel: () => {
        over = true;
        handler.closed();
      },
      drained: () => handler.drained(),
    };
  }

  async range(request: Partial<RangeRequest> & { readonly key: string }): Promise<WireRangeResponse> {
    const message = writeRangeRequest(new Writer(256), request).finish();
    return decodeRangeResponse(await this.call('/etcdserverpb.KV/Range', message));
  }

  /** `write` fills a TxnRequest. */
  async txn(write: (out: Writer) => void): Promise<WireTxnResponse> {
    const out = new Writer(1024);
    write(out);
    return decodeTxnResponse(await this.call('/etcdserverpb.KV/Txn', out.finish()));
  }

  /**
   * Passes the responses of a watch to `accept` until `accept` returns true. Also resolves when the revisions that the
   * watch needs were compacted; the caller then has to list again. Throws RpcFailed when the watch ends before that,
   * and the signal's reason when it is aborted. While `receiver` is blocked, changes stay in the store's history.
   */
  watch(
    create: Partial<WatchCreateRequest> & { readonly key: string },
    signal: AbortSignal,
    accept: (response: WatchResponse) => boolean,
    receiver?: LocalReceiver,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        signal.removeEventListener('abort', aborted);
        stream.cancel();
        settle();
      };
      const aborted = (): void => finish(() => reject(signal.reason));
      const stream = this.stream(WATCH, {
        message: (bytes) => {
          const response = decodeWatchResponse(bytes);
          if (response.compactRevision > 0 || accept(response)) finish(resolve);
          else if (response.canceled) finish(() => reject(new RpcFailed(RpcCode.cancelled, response.cancelReason)));
          return receiver?.blocked !== true;
        },
        ended: (failure) => finish(() => reject(failure ?? new RpcFailed(RpcCode.unavailable, 'the watch ended'))),
      });
      signal.addEventListener('abort', aborted);
      if (receiver !== undefined) receiver.drained = () => stream.drained();
      if (signal.aborted) aborted();
      else stream.send(writeWatchCreate(new Writer(256), create).finish());
    });
  }
}
