import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { encodeHeaders, type HeaderField } from '../http2/hpack.ts';
import type { Http2Stream, StreamEvents } from '../http2/http2-stream.ts';
import { encodeStatusMessage, MessageReader, messagePrefix, RpcError } from './messages.ts';
import {
  messageLength,
  RpcCode,
  type RpcMessage,
  type RpcService,
  type StreamCall,
  type StreamHandler,
  type UnaryCall,
} from './port.ts';

/**
 * Slightly more than the largest accepted request, so that the service itself rejects larger requests with etcd's
 * message.
 */
const MAX_MESSAGE = 2 << 20;

const EMPTY = Buffer.alloc(0);
const CONTENT_TYPE = { name: 'content-type', value: 'application/grpc' };
const RESPONSE_HEADERS = encodeHeaders([{ name: ':status', value: '200' }, CONTENT_TYPE]);
const OK_TRAILERS = encodeHeaders([{ name: 'grpc-status', value: '0' }]);

/** Whether the content type is that of gRPC. */
export function isGrpc(fields: readonly HeaderField[]): boolean {
  return fields.some(({ name, value }) => name === 'content-type' && value.startsWith('application/grpc'));
}

/** Server side of one gRPC request: a unary call or a stream of messages. */
export class ServerCall implements StreamEvents, UnaryCall, StreamCall {
  readonly #stream: Http2Stream;
  readonly #fields: readonly HeaderField[];
  readonly #log: Log;
  readonly #reader: MessageReader;
  readonly #unary: ((message: Uint8Array, call: UnaryCall) => void) | undefined;
  readonly #handler: StreamHandler | undefined;
  #message: Buffer | undefined;
  #headersSent = false;
  #answered = false;
  #blocked = false;
  #lost = false;
  /** Whether the peer has sent its last message and the handler was not notified yet. */
  #endPending = false;
  #cancelled: (() => void) | undefined;

  /** The common name of the verified client certificate; '' when there is none. */
  readonly peerCommonName: () => string;

  constructor(
    stream: Http2Stream,
    fields: readonly HeaderField[],
    service: RpcService,
    log: Log,
    peerCommonName: () => string,
    maxMessageBytes = MAX_MESSAGE,
  ) {
    this.peerCommonName = peerCommonName;
    this.#reader = new MessageReader(maxMessageBytes);
    this.#stream = stream;
    this.#fields = fields;
    this.#log = log;
    const path = this.metadata(':path') ?? '';
    this.#unary = service.unary(path);
    if (this.#unary !== undefined) return;
    const open = service.stream(path);
    if (open === undefined) this.fail(RpcCode.unimplemented, unknown(service, path));
    else this.#handler = open(this);
  }

  get lasting(): boolean {
    return this.#handler !== undefined;
  }

  metadata(name: string): string | undefined {
    for (const field of this.#fields) if (field.name === name) return field.value;
    return undefined;
  }

  data(bytes: Buffer, endStream: boolean): void {
    if (this.#answered) return;
    if (endStream) this.#endPending = true;
    this.#read(bytes);
  }

  #read(bytes: Buffer): void {
    try {
      this.#reader.push(bytes, this.#deliver);
      if (!this.#endPending || this.#reader.paused) return;
      this.#endPending = false;
      if (this.#handler !== undefined) this.#handler.ended();
      else if (this.#unary !== undefined) {
        if (this.#message === undefined) this.fail(RpcCode.internal, 'request ended without a message');
        else this.#unary(this.#message, this);
      }
    } catch (error) {
      if (error instanceof RpcError) this.fail(error.code as RpcCode, error.message);
      else {
        this.#log.error('call failed', { cause: messageOf(error) });
        this.fail(RpcCode.internal, messageOf(error));
      }
      this.#closed();
    }
  }

  readonly #deliver = (message: Buffer): void => {
    if (this.#handler !== undefined) this.#handler.message(message);
    else if (this.#message === undefined) this.#message = message;
    else throw new RpcError(RpcCode.internal, 'more than one message in a unary call');
  };

  lost(): void {
    this.#lost = !this.#answered;
    this.#answered = true;
    if (this.#lost) this.#cancelled?.();
    this.#closed();
  }

  drained(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.#handler?.drained();
  }

  pause(): void {
    this.#reader.paused = true;
    this.#stream.pause();
  }

  resume(): void {
    if (!this.#reader.paused || this.#answered) return;
    this.#reader.paused = false;
    this.#read(EMPTY);
    // The peer may send more once all messages that have arrived are delivered.
    if (!this.#reader.paused) this.#stream.resume();
  }

  whenCancelled(listener: () => void): void {
    if (this.#lost) listener();
    else this.#cancelled = listener;
  }

  reply(message: RpcMessage): void {
    if (this.#answered) return;
    this.#answered = true;
    const prefix = messagePrefix(messageLength(message));
    if (message instanceof Uint8Array) this.#stream.sendAll(RESPONSE_HEADERS, prefix, message, OK_TRAILERS);
    else this.#stream.sendPieces(RESPONSE_HEADERS, [prefix, ...message], OK_TRAILERS);
  }

  fail(code: RpcCode, message: string): void {
    if (this.#answered) return;
    this.#answered = true;
    const status = [
      { name: 'grpc-status', value: String(code) },
      { name: 'grpc-message', value: encodeStatusMessage(message) },
    ];
    if (this.#headersSent) this.#stream.end(encodeHeaders(status));
    else
      this.#stream.sendHeaders(encodeHeaders([{ name: ':status', value: '200' }, CONTENT_TYPE, ...status]), {
        endStream: true,
      });
  }

  send(...parts: readonly Uint8Array[]): boolean {
    if (this.#answered) return true;
    this.#sendHeaders();
    let length = 0;
    for (const part of parts) length += part.length;
    const goOn = this.#stream.sendData([messagePrefix(length), ...parts]);
    if (!goOn) this.#blocked = true;
    return goOn;
  }

  end(code: RpcCode = RpcCode.ok, message = ''): void {
    if (code !== RpcCode.ok) this.fail(code, message);
    else if (!this.#answered) {
      this.#answered = true;
      this.#sendHeaders();
      this.#stream.end(OK_TRAILERS);
    }
    this.#closed();
  }

  #sendHeaders(): void {
    if (this.#headersSent) return;
    this.#headersSent = true;
    this.#stream.sendHeaders(RESPONSE_HEADERS, { endStream: false });
  }

  #handlerClosed = false;

  #closed(): void {
    if (this.#handlerClosed) return;
    this.#handlerClosed = true;
    this.#handler?.closed();
  }
}

/** Error message for an unknown `path`, with grpc-go's wording. */
function unknown(service: RpcService, path: string): string {
  const [, name = '', method = ''] = path.split('/');
  return service.hasService(name) ? `unknown method ${method} for service ${name}` : `unknown service ${name}`;
}
