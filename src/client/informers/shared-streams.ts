/**
 * Streams of a client that share one HTTP/2 connection (RFC 9113), as in client-go. A watch then needs no connection of
 * its own, whose TLS state and buffers take about 100 KB at each end.
 */
import { type ClientHttp2Session, type ClientHttp2Stream, constants, connect as openSession } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { buildConnector } from 'undici';
import type { Clock } from '../../base/clock.ts';

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
  /** Called when the request is written. If it throws, the request fails. */
  readonly beforeSend: (() => void) | undefined;
}

export interface SharedStreamsOptions {
  readonly origin: string;
  /** Connector that offers `h2` and `http/1.1`. */
  readonly connect: buildConnector.connector;
  readonly clock: Clock;
  /** Time-out in milliseconds for the response headers. */
  readonly timeoutMs: number;
}

/**
 * After this time new streams use a new connection, so that clients are distributed over the servers again after one
 * was down.
 */
const MAX_AGE_MS = 300_000;
/** Stream limit until the server has sent its own. */
const STREAMS_AT_FIRST = 100;
/**
 * Flow-control window of a stream, much smaller than the connection's, so that a slow reader does not block other
 * streams.
 */
const STREAM_WINDOW = 1 << 20;
const CONNECTION_WINDOW = 64 << 20;

/** Streams with one set of credentials. */
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
   * Undefined if the server does not support HTTP/2; the request was not sent then. Rejects with the connection error.
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

  /** Open streams finish; new requests are rejected. */
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
    // Its streams fail too, and their readers handle the error.
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
      // This listener remains, because a reader that stopped early no longer listens.
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

/** Node ends the streams of a broken connection as if they were complete, so completeness is checked here. */
async function* wholly(stream: ClientHttp2Stream): AsyncGenerator<Uint8Array> {
  yield* stream;
  if (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) throw cutOff();
}

const cutOff = (): Error => Object.assign(new Error('the server has closed the connection'), { code: 'ECONNRESET' });
