/** Contracts between a gRPC listener or client and the services that use it. Plain HTTP requests share the port. */

/** The gRPC status codes used here. Source: gRPC status codes document. */
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
  dataLoss: 15,
  unauthenticated: 16,
} as const;

export type RpcCode = (typeof RpcCode)[keyof typeof RpcCode];

export interface CallIdentity {
  /** A request metadata value; names are lower case. */
  metadata(name: string): string | undefined;
  /** The common name of the verified client certificate; '' when there is none. */
  peerCommonName(): string;
}

/** A message, whole or in pieces. Its memory must not change after it was passed on. */
export type RpcMessage = Uint8Array | readonly Uint8Array[];

export function messageLength(message: RpcMessage): number {
  if (message instanceof Uint8Array) return message.length;
  let length = 0;
  for (const piece of message) length += piece.length;
  return length;
}

/** The message in one piece. Returns a view if the message is not in pieces. */
export function wholeMessage(message: RpcMessage): Buffer {
  if (!(message instanceof Uint8Array)) return Buffer.concat(message);
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

/**
 * One unary call. The handler calls either `reply` or `fail`, exactly once. Both methods do nothing after the client
 * has cancelled.
 */
export interface UnaryCall extends CallIdentity {
  /** If present, called instead of `fail` when only the leader can serve the call: it routes the call to the leader. */
  redirect?(): void;
  reply(message: RpcMessage): void;
  fail(code: RpcCode, message: string): void;
  /**
   * Calls `listener` once when the client cancels before the reply; immediately if the client has already cancelled.
   */
  whenCancelled(listener: () => void): void;
}

export interface StreamCall extends CallIdentity {
  /** Queues a message made of `parts`. Returns false when the peer is slow: wait for `drained` before sending more. */
  send(...parts: readonly Uint8Array[]): boolean;
  /**
   * Delivers no further messages until `resume`. The peer can then send only as much as its flow-control window allows.
   */
  pause(): void;
  resume(): void;
  /** Ends the stream, with success by default. */
  end(code?: RpcCode, message?: string): void;
}

export interface StreamHandler {
  message(message: Uint8Array): void;
  /** The peer has sent its last message. */
  ended(): void;
  /** The stream was closed for any reason. Called once. */
  closed(): void;
  /** The peer has read what was queued after `send` returned false. */
  drained(): void;
}

export interface HttpAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Streams the rest of the body after the head. */
  readonly follow?: (out: HttpStream) => void;
}

/** A response body that is streamed. */
export interface HttpStream {
  /** Returns false if the peer is slow. The writer must then wait for `drained`. */
  write(text: string): boolean;
  end(): void;
  /** Calls `listener` when the client disconnected or the response has ended. */
  closed(listener: () => void): void;
  drained(listener: () => void): void;
}

/** A plain HTTP request on the same port. */
export interface HttpRequest extends CallIdentity {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole body; throws CodedError 'too-large'. */
  body(): Promise<Uint8Array>;
  /** Calls `listener` when the client disconnected or was answered. */
  closed(listener: () => void): void;
}

export interface RpcService {
  /** Whether any method of `name`, a full service name, is known. */
  hasService(name: string): boolean;
  unary(path: string): ((message: Uint8Array, call: UnaryCall) => void) | undefined;
  stream(path: string): ((call: StreamCall) => StreamHandler) | undefined;
  /** Plain requests on the same port (`/health`, `/metrics` …). */
  http(request: HttpRequest): Promise<HttpAnswer>;
}

export interface RpcListener {
  /** Starts to listen. Throws CodedError 'address-in-use' naming the address. */
  listen(service: RpcService): Promise<{ readonly host: string; readonly port: number }>;
  /**
   * Stops accepting, sends GOAWAY, and resolves when unary calls in progress are answered, or after `mostMs`. Streams
   * continue.
   */
  drain(mostMs: number): Promise<void>;
  /** Stops accepting, sends GOAWAY, and closes the remaining connections after `graceMs`. */
  close(graceMs: number): Promise<void>;
}
