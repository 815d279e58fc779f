/**
 * Streams of a client that share one HTTP/2 connection (RFC 9113), as in client-go. A separate connection for each
 * watch would need about 100 KB for TLS state and buffers on each side.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, constants, connect as openSession } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../../base/time/clock.ts';

export interface StreamAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface StreamRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: string | null;
  readonly signal: AbortSignal | undefined;
  /** Called immediately before the request is written. If the function throws, the request fails. */
  readonly beforeSend: (() => void) | undefined;
}

export interface SharedStreamsOptions {
  readonly origin: string;
  /** Connects with the ALPN protocols `h2` and `http/1.1`. */
  readonly connect: buildConnector.connector;
  readonly clock: Clock;
  /** Time-out in milliseconds for the response headers. */
  readonly timeoutMs: number;
}

/**
 * Age of a connection after which new streams use a new connection, so that clients are distributed over all servers
 * again after one was down.
 */
const MAX_AGE_MS = 300_000;
/** Maximum number of streams until the server has sent its limit. */
const STREAMS_AT_FIRST = 100;
/**
 * Flow-control window of a stream. It is much smaller than that of the connection, so that a slow reader does not block
 * other streams.
 */
const STREAM_WINDOW = 1 << 20;
const CONNECTION_WINDOW = 64 << 20;

/** Streams that use the same set of credentials. */
export class SharedStreams {
  readonly #options: SharedStreamsOptions;
  readonly #sessions = new Set<ClientHttp2Session>();
  readonly #streams = new WeakMap<ClientHttp2Session, number>();
  #current: Promise<ClientHttp2Session | undefined> | undefined;
  #closed = false;

  constructor(options: SharedStreamsOptions) {
    this.#options = options;
  }

  /**
   * Sends a request. Undefined if the server does not support HTTP/2; then the request was not sent. Rejects with the
   * error of the connection.
   */
  async request(request: StreamRequest): Promise<StreamAnswer | undefined> {
    const session = await this.#session();
    if (session === undefined) return undefined;
    request.signal?.throwIfAborted();
    request.beforeSend?.();
    const { ':authority': _, ...headers } = request.headers;
    const stream = session.request(
      { ...headers, ':method': request.method, ':path': request.path },
      { endStream: request.body === null, ...(request.signal === undefined ? {} : { signal: request.signal }) },
    );
    this.#count(session, 1);
    stream.once('close', () => this.#count(session, -1));
    if (request.body !== null) stream.end(request.body);
    return this.#answer(stream);
  }

  /** Rejects new requests. Open streams can finish. */
  close(): void {
    this.#closed = true;
    for (const session of this.#sessions) session.close();
  }

  destroy(): void {
    this.#closed = true;
    for (const session of this.#sessions) session.destroy();
  }

  async #session(): Promise<ClientHttp2Session | undefined> {
    if (this.#closed) throw new Error('this client is closed');
    let opening = this.#current;
    if (opening === undefined) {
      opening = this.#open();
      this.#current = opening;
    }
    let session: ClientHttp2Session | undefined;
    try {
      session = await opening;
    } catch (error) {
      if (this.#current === opening) this.#current = undefined;
      throw error;
    }
    if (session === undefined || this.#takes(session)) return session;
    if (this.#current === opening) this.#current = undefined;
    return this.#session();
  }

  #takes(session: ClientHttp2Session): boolean {
    if (session.closed || session.destroyed) return false;
    const most = session.remoteSettings?.maxConcurrentStreams ?? STREAMS_AT_FIRST;
    return (this.#streams.get(session) ?? 0) < most;
  }

  async #open(): Promise<ClientHttp2Session | undefined> {
    const socket = await this.#connected();
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      return undefined;
    }
    if (this.#closed) {
      socket.destroy();
      throw new Error('this client is closed');
    }
    const session = openSession(this.#options.origin, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW },
    });
    this.#sessions.add(session);
    const aging = this.#options.clock.setTimer(MAX_AGE_MS, () => session.close());
    session.once('close', () => {
      aging.cancel();
      this.#sessions.delete(session);
    });
    // The error also ends the connection's streams, and their readers handle it.
    session.on('error', () => session.destroy());
    session.setLocalWindowSize(CONNECTION_WINDOW);
    return session;
  }

  #connected(): Promise<TLSSocket> {
    const { protocol, hostname, port } = new URL(this.#options.origin);
    return new Promise((resolve, reject) => {
      this.#options.connect({ protocol, hostname, port }, (error, socket) => {
        if (error === null) resolve(socket as TLSSocket);
        else reject(error);
      });
    });
  }

  #count(session: ClientHttp2Session, change: number): void {
    this.#streams.set(session, (this.#streams.get(session) ?? 0) + change);
  }

  #answer(stream: ClientHttp2Stream): Promise<StreamAnswer> {
    const { clock, timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const late = clock.setTimer(timeoutMs, () => {
        stream.close(constants.NGHTTP2_CANCEL);
        stream.destroy(new Error(`no answer within ${timeoutMs} ms`));
      });
      stream.once('response', ({ ':status': statusCode = 0, ...headers }) => {
        late.cancel();
        resolve({ statusCode, headers, body: wholly(stream) });
      });
      // This listener is never removed: after a reader has stopped, no other listener handles errors of the stream.
      stream.on('error', (error) => {
        late.cancel();
        reject(error);
      });
      stream.once('close', () => {
        late.cancel();
        reject(cutOff());
      });
    });
  }
}

/**
 * Yields the body and throws if it is incomplete. When a connection breaks, Node ends its streams as if they were
 * complete.
 */
async function* wholly(stream: ClientHttp2Stream): AsyncGenerator<Uint8Array> {
  yield* stream;
  if (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw cutOff();
}

const cutOff = (): Error => Object.assign(new Error('the server has closed the connection'), { code: 'ECONNRESET' });
