import type { Placed } from '../../base/concurrency/running-count.ts';
import type { HeaderField } from '../http2/hpack.ts';
import type { Http2Connection } from '../http2/http2-connection.ts';
import { ErrorCode } from '../http2/http2-frames.ts';
import type { Http2Stream, StreamEvents } from '../http2/http2-stream.ts';
import { decodeStatusMessage, MAX_STATUS_MESSAGE, MessageReader, messagePrefix, RpcError } from './messages.ts';
import { RpcCode } from './port.ts';

/** Default limit for a received message. It allows for large lists of objects. */
const MAX_MESSAGE = 512 << 20;
/** Prefix of the error message of calls lost with their connection. */
export const LOST = 'store is unavailable: ';

export interface UnaryOutcome {
  done(answer: Buffer): void;
  /** `untouched`: the peer has certainly not processed the request. */
  failed(error: RpcError, options: { readonly untouched: boolean }): void;
}

export class UnaryExchange implements StreamEvents, Placed {
  place = -1;
  readonly #deadlineMs: number;
  readonly #outcome: UnaryOutcome;
  readonly #reader: MessageReader;
  #stream: Http2Stream | undefined;
  #answer: Buffer | undefined;
  #over = false;

  constructor(deadlineMs: number, outcome: UnaryOutcome, maxMessageBytes = MAX_MESSAGE) {
    this.#reader = new MessageReader(maxMessageBytes);
    this.#deadlineMs = deadlineMs;
    this.#outcome = outcome;
  }

  start(connection: Http2Connection, headers: Buffer, message: Buffer): void {
    this.#stream = connection.open(this);
    this.#stream.sendAll(headers, messagePrefix(message.length), message, undefined);
  }

  headers(fields: readonly HeaderField[], endStream: boolean): void {
    if (this.#over || !endStream) return;
    this.#over = true;
    const error = statusOf(fields);
    if (error !== undefined) this.#outcome.failed(error, { untouched: false });
    else if (this.#answer === undefined)
      this.#outcome.failed(new RpcError(RpcCode.internal, 'no answer'), { untouched: false });
    else this.#outcome.done(this.#answer);
  }

  data(bytes: Buffer, endStream: boolean): void {
    if (this.#over) return;
    try {
      this.#reader.push(bytes, (message) => {
        if (this.#answer !== undefined) throw new RpcError(RpcCode.internal, 'more than one answer to a call');
        this.#answer = message;
      });
    } catch (error) {
      this.#fail(error instanceof RpcError ? error : new RpcError(RpcCode.internal, String(error)));
      return;
    }
    if (endStream) this.#fail(new RpcError(RpcCode.internal, 'response without a status'));
  }

  lost(reason: string, code: number): void {
    if (this.#over) return;
    this.#over = true;
    this.#outcome.failed(new RpcError(RpcCode.unavailable, `${LOST}${reason}`), {
      untouched: code === ErrorCode.refusedStream,
    });
  }

  expire(nowMs: number): void {
    if (nowMs >= this.#deadlineMs) this.#fail(new RpcError(RpcCode.deadlineExceeded, 'store did not answer in time'));
  }

  cancel(error: RpcError): void {
    this.#fail(error);
  }

  #fail(error: RpcError): void {
    if (this.#over) return;
    this.#over = true;
    this.#stream?.reset(ErrorCode.cancel);
    this.#outcome.failed(error, { untouched: false });
  }
}

export interface ClientStreamEvents {
  message(message: Buffer): void;
  /** Called when the stream has ended; `error` is undefined on success. Not called after `cancel`. */
  ended(error: RpcError | undefined): void;
}

/** A bidirectional stream of messages. Messages sent before it is open are queued. */
export class ClientStream implements StreamEvents {
  readonly #events: ClientStreamEvents;
  readonly #reader: MessageReader;
  #stream: Http2Stream | undefined;
  #early: Buffer[] = [];
  #finished = false;
  #over = false;

  constructor(events: ClientStreamEvents, maxMessageBytes = MAX_MESSAGE) {
    this.#reader = new MessageReader(maxMessageBytes);
    this.#events = events;
  }

  get cancelled(): boolean {
    return this.#over;
  }

  start(connection: Http2Connection, headers: Buffer): void {
    this.#stream = connection.open(this);
    this.#stream.sendHeaders(headers, { endStream: false });
    const early = this.#early;
    this.#early = [];
    for (const message of early) this.send(message);
    if (this.#finished) this.#stream.end();
  }

  /** Half-closes the stream. Some servers respond only after that. */
  finish(): void {
    this.#finished = true;
    if (!this.#over) this.#stream?.end();
  }

  send(message: Buffer): void {
    if (this.#over) return;
    if (this.#stream === undefined) this.#early.push(message);
    else this.#stream.sendData([messagePrefix(message.length), message]);
  }

  cancel(): void {
    if (this.#over) return;
    this.#over = true;
    this.#stream?.reset(ErrorCode.cancel);
  }

  fail(error: RpcError): void {
    this.#end(error);
  }

  headers(fields: readonly HeaderField[], endStream: boolean): void {
    if (endStream) this.#end(statusOf(fields));
  }

  data(bytes: Buffer, endStream: boolean): void {
    if (this.#over) return;
    try {
      this.#reader.push(bytes, (message) => {
        if (!this.#over) this.#events.message(message);
      });
    } catch (error) {
      this.#stream?.reset(ErrorCode.cancel);
      this.#end(error instanceof RpcError ? error : new RpcError(RpcCode.internal, String(error)));
      return;
    }
    if (endStream) this.#end(new RpcError(RpcCode.internal, 'stream ended without a status'));
  }

  lost(reason: string): void {
    this.#end(new RpcError(RpcCode.unavailable, reason));
  }

  #end(error: RpcError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#events.ended(error);
  }
}

function statusOf(fields: readonly HeaderField[]): RpcError | undefined {
  let status: string | undefined;
  let message = '';
  let http = '';
  for (const field of fields) {
    if (field.name === 'grpc-status') status = field.value;
    else if (field.name === 'grpc-message') message = field.value;
    else if (field.name === ':status') http = field.value;
  }
  if (status === '0') return undefined;
  if (status === undefined) return new RpcError(RpcCode.unavailable, `not a gRPC answer (HTTP status ${http})`);
  // An invalid status code counts as `unknown`. Source: gRPC over HTTP/2, "Responses".
  const code = /^[1-9]\d?$/.test(status) ? Number(status) : RpcCode.unknown;
  return new RpcError(code, decodeStatusMessage(message).slice(0, MAX_STATUS_MESSAGE));
}
