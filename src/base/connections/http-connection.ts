/** What one connection of HTTP may do before, and without, an identity. */
import { Bucket } from './bucket.ts';
import type { GatedConnection } from './gate.ts';
import type { ServedConnection } from './gated-server.ts';

/** A user; a request without credentials where that is allowed; or credentials that are missing or not valid. */
export type Identified = 'user' | 'anonymous' | 'refused';

/** What is used of `http.ServerResponse`. */
interface Answer {
  readonly writableEnded: boolean;
  readonly headersSent: boolean;
  shouldKeepAlive: boolean;
}

/** What is used of `tls.TLSSocket`. */
export interface SecureSocket {
  readonly authorized: boolean;
  /** Of HTTP/1.1, while there is one. */
  readonly parser?: { onIncoming?: unknown } | null;
  end(): unknown;
  destroy(): unknown;
}

/** What is used of `http2.ServerHttp2Session`. */
interface Session {
  close(): void;
  destroy(): void;
}

/** Health checks that one HTTP/1.1 connection may bring without an identity. */
const MAX_ANONYMOUS = 20;
/** Requests without an identity on a connection that has one: a proxy may carry requests of many users. */
const REFUSAL_BURST = 100;
const REFUSALS_PER_SECOND = 10;
/** Streams that an authenticated client may reset, or have reset (CVE-2023-44487, CVE-2025-8671). */
const RESET_BURST = 1000;
const RESETS_PER_SECOND = 33;
/** Streams at once before the first identity is known: it may have to be reviewed by another server. */
const MAX_PENDING_STREAMS = 100;
/** What `on_headers_complete` of llhttp returns for an upgrade. */
const SKIP_REST = 2;
/** HTTP/2: what may have come with a request that is refused. */
const MAX_REFUSED_BYTES = 32 * 1024;
const GOODBYE_MS = 5_000;

export class HttpConnection implements ServedConnection {
  /** Requests and upgraded connections in progress. */
  inFlight = 0;
  /** Undefined: HTTP/1.1. */
  session: Session | undefined;
  /** HTTP/1.1: the answer to the latest request. */
  response: Answer | undefined;
  readonly #socket: SecureSocket;
  readonly #gated: GatedConnection;
  #ending = false;
  #anonymous = 0;
  #refusals: Bucket | undefined;
  #resets: Bucket | undefined;

  constructor(socket: SecureSocket, gated: GatedConnection) {
    this.#socket = socket;
    this.#gated = gated;
    gated.greeted();
    if (socket.authorized) gated.authenticated('certificate');
  }

  /** Reports whose request has come; before its answer. */
  identified(as: Identified): void {
    const gated = this.#gated;
    if (as === 'user') {
      if (gated.standing === 'stranger') gated.authenticated('token');
      return;
    }
    const stranger = gated.standing === 'stranger';
    if (!stranger) {
      const nowMs = performance.now();
      this.#refusals ??= new Bucket(REFUSAL_BURST, REFUSALS_PER_SECOND, nowMs);
      if (this.#refusals.take(nowMs)) return;
    }
    gated.refused();
    this.#anonymous += 1;
    // As upstream: HTTP/2 is not for clients without an identity.
    if (this.session !== undefined) this.#endSession(this.session, stranger);
    else if (!stranger || as === 'refused' || this.#anonymous >= MAX_ANONYMOUS) this.#endAfterAnswer();
  }

  /** The rest of a flood would be parsed before the answer leaves: the client of a flood gets none. */
  #endSession(session: Session, stranger: boolean): void {
    const bytes = this.#gated.bytesSinceGreeting();
    if (!stranger || bytes <= MAX_REFUSED_BYTES) session.close();
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
   * Node makes objects, and errors with stacks, of all requests that one read has brought, also when the socket is
   * destroyed at the first of them.
   */
  #stopParsing(): void {
    const { parser } = this.#socket;
    // llhttp takes what follows for another protocol.
    if (typeof parser?.onIncoming === 'function') parser.onIncoming = () => SKIP_REST;
  }

  /**
   * Whether another request is taken; the connection is closed where a client without an identity sends more than one
   * at a time.
   */
  admits(): boolean {
    const gated = this.#gated;
    if (gated.standing !== 'stranger') return !this.#ending;
    if (this.session !== undefined) {
      if (this.inFlight >= MAX_PENDING_STREAMS) return false;
    } else if (this.#ending || this.response?.writableEnded === false) {
      // Its answer may have reached the client before it counts as sent here, and is ended before that.
      this.#stopParsing();
      gated.violated('pipelined without an identity');
      this.destroy();
      return false;
    }
    gated.requested();
    return true;
  }

  /** A stream ended with an error code. */
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
