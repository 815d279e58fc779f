/** What the listener knows of one connection, and what a connection may do that brings no identity. */
import type { ServerHttp2Session } from 'node:http2';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { Bucket } from '../../base/connections/bucket.ts';
import type { GatedConnection } from '../../base/connections/gate.ts';
import type { ServedConnection } from '../../base/connections/gated-server.ts';
import type { ConnectionInfo, HttpResponse, Identified } from '../../components/apiserver/port.ts';

const MAX_CHAIN = 8;
/** Health checks that one HTTP/1.1 connection may bring without an identity. */
const MAX_ANONYMOUS = 20;
/** Requests without an identity on a connection that has one: a proxy may carry requests of many users. */
const REFUSAL_BURST = 100;
const REFUSALS_PER_SECOND = 10;
/** Streams that an authenticated client may reset, or have reset (CVE-2023-44487, CVE-2025-8671). */
const RESET_BURST = 1000;
const RESETS_PER_SECOND = 33;
/** Streams at once before the first identity is known: it may have to be asked for. */
const MAX_PENDING_STREAMS = 100;
const GOODBYE_MS = 5_000;

export class TlsConnection implements ConnectionInfo, ServedConnection {
  readonly remoteAddress: string;
  readonly peerChain: readonly Uint8Array[] | undefined;
  readonly peerRefused: boolean;
  /** Requests and upgraded connections in progress. */
  inFlight = 0;
  session: ServerHttp2Session | undefined;
  /** HTTP/1.1: no request is taken any more. */
  ending = false;
  /** HTTP/1.1: the answer to the latest request. */
  response: HttpResponse | undefined;
  readonly #socket: TLSSocket;
  readonly #gated: GatedConnection;
  #anonymous = 0;
  #refusals: Bucket | undefined;
  #resets: Bucket | undefined;

  constructor(socket: TLSSocket, gated: GatedConnection) {
    this.#socket = socket;
    this.#gated = gated;
    this.remoteAddress = socket.remoteAddress ?? '';
    const chain = chainOf(socket);
    this.peerChain = socket.authorized ? chain : undefined;
    this.peerRefused = chain !== undefined && !socket.authorized;
    gated.greeted();
    if (this.peerChain !== undefined) gated.authenticated('certificate');
  }

  identified(as: Identified): void {
    const gated = this.#gated;
    if (as === 'user') {
      if (gated.standing === 'stranger') gated.authenticated('token');
      return;
    }
    if (gated.standing !== 'stranger') {
      const nowMs = performance.now();
      this.#refusals ??= new Bucket(REFUSAL_BURST, REFUSALS_PER_SECOND, nowMs);
      if (this.#refusals.take(nowMs)) return;
    }
    gated.refused();
    this.#anonymous += 1;
    // As upstream: HTTP/2 is not for clients without an identity.
    if (this.session !== undefined) this.session.close();
    else if (as === 'refused' || this.#anonymous >= MAX_ANONYMOUS || gated.standing !== 'stranger')
      this.#endAfterAnswer();
  }

  #endAfterAnswer(): void {
    this.ending = true;
    const { response } = this;
    if (response !== undefined && !response.headersSent) response.shouldKeepAlive = false;
  }

  /** Whether another request is taken; the connection is closed where a client without an identity sends more than one at a time. */
  admits(): boolean {
    const gated = this.#gated;
    if (gated.standing !== 'stranger') return !this.ending;
    if (this.session !== undefined) {
      if (this.inFlight >= MAX_PENDING_STREAMS) return false;
    } else if (this.ending || this.response?.writableEnded === false) {
      // Its answer may have reached the client before it counts as sent here, and is ended before that.
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

function chainOf(socket: TLSSocket): Uint8Array[] | undefined {
  const chain: Uint8Array[] = [];
  let current: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (current?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(current.raw);
    const issuer: DetailedPeerCertificate | undefined = current.issuerCertificate;
    current = issuer === current ? undefined : issuer;
  }
  return chain.length === 0 ? undefined : chain;
}
