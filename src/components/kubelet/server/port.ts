/**
 * The kubelet's HTTPS listener. Implemented by `src/io/http`. Requests and responses are Node's own objects, as at the
 * API server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { GateLimits } from '../../../base/connections/gate.ts';
import type { Identified } from '../../../base/connections/http-connection.ts';

export type KubeletRequest = IncomingMessage;
export type KubeletResponse = ServerResponse;

/** Subject of a client certificate. */
export interface PeerSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export interface KubeletConnection {
  /** Of a client certificate that TLS verified against the client authorities. */
  peer(): PeerSubject | undefined;
  /** Reports the identity of a request, before its answer: what the connection may cost depends on it. */
  identified(as: Identified): void;
}

/** PEM. */
export interface KubeletTls {
  readonly cert: string;
  readonly key: string;
  /** Authorities of client certificates. */
  readonly ca: string;
}

export interface KubeletListenOptions {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls: KubeletTls;
  readonly limits: GateLimits;
  /** Time a client has to send its complete header. */
  readonly headersTimeoutMs: number;
  request(request: KubeletRequest, response: KubeletResponse, connection: KubeletConnection): void;
  /** The handler owns the socket. */
  upgrade(request: KubeletRequest, socket: Duplex, head: Uint8Array, connection: KubeletConnection): void;
}

export interface KubeletListener {
  readonly port: number;
  /** New handshakes use the new material; present connections keep theirs. */
  updateTls(tls: KubeletTls): void;
  /** Closes the port and all connections. */
  close(): Promise<void>;
}

/** Resolves once it listens; rejects when the port is taken. Only HTTP/1.1 is spoken. */
export type KubeletListen = (options: KubeletListenOptions) => Promise<KubeletListener>;
