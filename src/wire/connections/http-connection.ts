/** Limits for an HTTP connection before it is authenticated and for requests without an identity. */
import { Bucket } from './bucket.ts';
import type { GatedConnection } from './gate.ts';
import type { ServedConnection } from './gated-server.ts';

/**
 * Identity of a request: an authenticated user, a request for a public file, a permitted anonymous request, or a
 * request with missing or invalid credentials.
 */
export type Identified = 'user' | 'public' | 'anonymous' | 'refused';

/** Used part of `http.ServerResponse`. */
interface Answer {
  readonly writableEnded: boolean;
  readonly headersSent: boolean;
  shouldKeepAlive: boolean;
}

/** Used part of `tls.TLSSocket`. */
export interface SecureSocket {
  readonly authorized: boolean;
  /** HTTP/1.1 parser, if there is one. */
  readonly parser?: { onIncoming?: unknown } | null;
  end(): unknown;
  destroy(): unknown;
}

/** Used part of `http2.ServerHttp2Session`. */
interface Session {
  close(): void;
  destroy(): void;
}

/** Anonymous requests (health checks) that one HTTP/1.1 connection may send. */
const MAX_ANONYMOUS = 20;
/**
 * Public files that one connection may read. A browser loads a page and its scripts at the same time and gives up if
 * the session ends in between.
 */
const MAX_PUBLIC = 200;
/** Refused requests on an authenticated connection. A proxy may forward requests of many users. */
const REFUSAL_BURST = 100;
const REFUSALS_PER_SECOND = 10;
/** Streams that an authenticated client may reset or cause to be reset (CVE-2023-44487, CVE-2025-8671). */
const RESET_BURST = 1000;
const RESETS_PER_SECOND = 33;
/**
 * Maximum number of concurrent streams before the first identity is known. An identity may be known late, because
 * another server may have to review the token.
 */
const MAX_PENDING_STREAMS = 100;
/** Return value of llhttp's `on_headers_complete` for an upgrade. */
const SKIP_REST = 2;
/** HTTP/2: bytes that may arrive with a refused request. */
const MAX_REFUSED_BYTES = 32 * 1024;
const GOODBYE_MS = 5_000;

export class HttpConnection implements ServedConnection {
  /** Number of requests and upgraded connections in progress. */
  inFlight = 0;
  /** Undefined for HTTP/1.1. */
  session: Session | undefined;
  /** HTTP/1.1: response to the latest request. */
  response: Answer | undefined;
  readonly #socket: SecureSocket;
  readonly #gated: GatedConnection;
  #ending = false;
  #anonymous = 0;
  #public = 0;
  #refusals: Bucket | undefined;
  #resets: Bucket | undefined;

  constructor(socket: SecureSocket, gated: GatedConnection) {
    this.#socket = socket;
    this.#gated = gated;
    gated.greeted();
    if (socket.authorized) gated.authenticated('certificate');
  }

  /** Call with the identity of a request before it is answered. */
  identified(as: Identified): void {
    const gated = this.#gated;
    if (as === 'user') {
      if (gated.standing === 'unauthenticated') gated.authenticated('token');
      return;
    }
    if (as === 'public' && this.#public < MAX_PUBLIC) {
      this.#public += 1;
      return;
    }
    const isUnauthenticated = gated.standing === 'unauthenticated';
    if (!isUnauthenticated) {
      const nowMs = performance.now();
      this.#refusals ??= new Bucket(REFUSAL_BURST, REFUSALS_PER_SECOND, nowMs);
      if (this.#refusals.take(nowMs)) return;
    }
    gated.refused();
    this.#anonymous += 1;
    // As in upstream's API server, unauthenticated clients may not keep an HTTP/2 connection.
    if (this.session !== undefined) this.#endSession(this.session, isUnauthenticated);
    else if (!isUnauthenticated || as === 'refused' || this.#anonymous >= MAX_ANONYMOUS) this.#endAfterAnswer();
  }

  /**
   * Ends the HTTP/2 session after the response. In a flood, the remaining requests would be parsed before the response
   * is sent, so the connection is destroyed without a response.
   */
  #endSession(session: Session, isUnauthenticated: boolean): void {
    const bytes = this.#gated.bytesSinceGreeting();
    if (!isUnauthenticated || bytes <= MAX_REFUSED_BYTES) session.close();
    else {
      this.#gated.violated('flood without an identity', bytes);
      this.destroy();
    }
  }

  #endAfterAnswer(): void {
    this.#ending = true;
    const { response } = this;
    if (response !== undefined && !response.headersSent) response.shouldKeepAlive = false;
    this.#stopParsing();
  }

  /**
   * Stops the HTTP/1.1 parser. Otherwise Node creates objects, and errors with stack traces, for all requests in one
   * read, even if the socket is destroyed at the first request.
   */
  #stopParsing(): void {
    const { parser } = this.#socket;
    // llhttp then treats the remaining bytes as another protocol.
    if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => SKIP_REST;
  }

  /**
   * Whether another request is admitted. Closes the connection if an unauthenticated client sends requests
   * concurrently.
   */
  admits(): boolean {
    const gated = this.#gated;
    if (gated.standing !== 'unauthenticated') return !this.#ending;
    if (this.session !== undefined) {
      if (this.inFlight >= MAX_PENDING_STREAMS) return false;
    } else if (this.#ending || this.response?.writableEnded === false) {
      // `inFlight` is not usable here: the client may receive the whole response before the request counts as done.
      this.#stopParsing();
      gated.violated('pipelined without an identity');
      this.destroy();
      return false;
    }
    gated.requested();
    return true;
  }

  /** Call when a stream ended with an error code. */
  streamReset(): void {
    const nowMs = performance.now();
    this.#resets ??= new Bucket(RESET_BURST, RESETS_PER_SECOND, nowMs);
    if (this.#resets.take(nowMs)) return;
    this.#gated.violated('too many resets');
    this.destroy();
  }

  busy(): boolean {
    return this.inFlight > 0;
  }

  close(reason: string): void {
    if (reason !== 'idle') {
      this.destroy();
      return;
    }
    if (this.session === undefined) this.#socket.end();
    else this.session.close();
    setTimeout(() => this.destroy(), GOODBYE_MS).unref();
  }

  destroy(): void {
    this.session?.destroy();
    this.#socket.destroy();
  }
}
