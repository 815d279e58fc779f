/**
 * Port of the kubelet's HTTPS listener. Implemented by `src/kubelet/io`. Requests and responses are Node.js objects, as
 * in the API server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { GateLimits } from '../../wire/connections/gate.ts';
import type { Identified } from '../../wire/connections/http-connection.ts';

export type KubeletRequest = IncomingMessage;
export type KubeletResponse = ServerResponse;

export interface PeerSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

export interface KubeletConnection {
  /** Subject of the client certificate, if TLS verified it against the client authorities. */
  peer(): PeerSubject | undefined;
  /**
   * Sets the identity of the request, which determines the connection's resource limits. Must be called before the
   * response.
   */
  identified(as: Identified): void;
}

/** Key material in PEM. */
export interface KubeletTls {
  readonly cert: string;
  readonly key: string;
  /** Certificate authorities of clients. */
  readonly ca: string;
}

export interface KubeletListenOptions {
  readonly address: string;
  /** Port 0 selects a free port. */
  readonly port: number;
  readonly tls: KubeletTls;
  readonly limits: GateLimits;
  /** Timeout for a complete request header. */
  readonly headersTimeoutMs: number;
  request(request: KubeletRequest, response: KubeletResponse, connection: KubeletConnection): void;
  /** The handler takes ownership of the socket. */
  upgrade(request: KubeletRequest, socket: Duplex, head: Uint8Array, connection: KubeletConnection): void;
}

export interface KubeletListener {
  readonly port: number;
  /** New handshakes use the new key material. Existing connections keep theirs. */
  updateTls(tls: KubeletTls): void;
  close(): Promise<void>;
}

/** Resolves when the server listens. Rejects when the port is in use. Supports HTTP/1.1 only. */
export type KubeletListen = (options: KubeletListenOptions) => Promise<KubeletListener>;
