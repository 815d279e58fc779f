/**
 * Network interface of the API server. Implemented by `src/apiserver/io/http`, passed in by `src/host`. Requests and
 * responses are Node's own objects (HTTP/1.1 or the HTTP/2 compatibility API), because wrappers cost throughput.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type { GateLimits } from '../wire/connections/gate.ts';
import type { Identified } from '../wire/connections/http-connection.ts';

export type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/**
 * For HTTP/2, this is Node's Http2ServerRequest, which has all members that the API server uses. The same holds for
 * HttpResponse and Http2ServerResponse.
 */
export type HttpRequest = IncomingMessage & {
  /**
   * Delivers the body to `take` instead of a stream, whose events are expensive for small writes. Returns false if the
   * body has already started to arrive as a stream. Absent for HTTP/2, where bodies are always streams.
   */
  takeBody?(take: BodyConsumer): boolean;
  /** Stream of an HTTP/2 request. */
  readonly stream?: { readonly endAfterHeaders: boolean; close(code: number): void };
};
export type HttpResponse = ServerResponse;

/** Receives the chunks of a body, and null at its end. Returns false to stop reading. */
export type BodyConsumer = (chunk: Buffer | null) => boolean;

/** TLS properties of a connection. There is one object per connection, so callers may cache results by its identity. */
export interface ConnectionInfo {
  readonly remoteAddress: string;
  /**
   * DER of the client's certificate chain, leaf first. Set only if TLS verified the chain against one of the configured
   * CAs.
   */
  readonly peerChain: readonly Uint8Array[] | undefined;
  /** True if TLS could not verify the client's certificate: expired, or signed by an unknown authority. */
  readonly peerRefused: boolean;
  /**
   * DER of the client's chain, leaf first, if it was rejected only because it has expired. The client has proven that
   * it has the key.
   */
  readonly peerExpired?: readonly Uint8Array[];
  /**
   * Reports the identity behind the connection, which determines its resource limits. Call it for each request, before
   * the response.
   */
  identified?(as: Identified): void;
}

/** A certificate for certain server names (SNI). */
export interface NamedCertificate {
  /** Names in lower case. `*` may be the first label. */
  readonly names: readonly string[];
  readonly certificate: string;
  readonly key: string;
}

export interface TlsMaterial {
  /** PEM chain: leaf first, then intermediates. */
  readonly certificate: string;
  readonly key: string;
  /** Certificates for certain server names (SNI). The first match takes precedence over the certificate above. */
  readonly named?: readonly NamedCertificate[];
  /** PEM bundles of the CAs of client certificates. */
  readonly clientAuthorities: readonly string[];
  /** Minimum TLS version. Default: TLSv1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** TLS 1.2 cipher suites in OpenSSL's format. Default: the secure cipher suites. */
  readonly ciphers?: string;
  /** Key exchange groups in OpenSSL's format. Default: the groups of OpenSSL. */
  readonly curves?: string;
}

export interface ListenOptions {
  readonly bindAddress: string;
  /** Port to listen on. 0: any free port. */
  readonly port: number;
  readonly tls: TlsMaterial;
  readonly maxHeaderBytes: number;
  /** Time limit for a complete request header, in milliseconds. */
  readonly headersTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Maximum number of concurrent streams per HTTP/2 connection. Default 250. */
  readonly maxStreams?: number;
  /** True: only HTTP/1.1 is served. Default false. */
  readonly withoutHttp2?: boolean;
  /** Limits of the number of connections and of their idle time. Default: the limits of an API server. */
  readonly limits?: GateLimits;
  /** True: another process may listen on the same port. Default false. */
  readonly sharesPort?: boolean;
  /**
   * Called for each HTTP/2 request. If the result is true, the connection is closed with GOAWAY, so that the client
   * opens another connection, possibly to another server.
   */
  isLast?(): boolean;
  request(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): void;
  /**
   * Handles upgrades, HTTP/1.1 only. The handler owns the socket. `inMessages` turns the socket into a response over
   * WebSocket: once its header has been written with status 200, the body is sent in messages. Each line of JSON and
   * each protobuf frame is a message; other bodies are sent as they are written.
   */
  upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    connection: ConnectionInfo,
    inMessages: () => HttpResponse,
  ): void;
}

export interface Listener {
  readonly port: number;
  /** Uses new TLS material for new handshakes. Open connections keep their TLS material. */
  updateTls(tls: TlsMaterial): void;
  /**
   * Continues to serve, but makes clients connect elsewhere: every next response has `connection: close` (HTTP/1.1) or
   * GOAWAY (HTTP/2).
   */
  retire(): void;
  /** Rejects new connections, and new requests on open connections. Requests in flight continue. */
  drain(): void;
  /** Drains, waits up to `graceMs` for requests in flight, then closes the remaining connections. */
  close(graceMs: number): Promise<void>;
}

export interface BackendTls {
  readonly certificate?: string;
  readonly key?: string;
  /**
   * PEM bundle of the CAs of the server's certificate. Undefined: the certificate is not verified (as upstream for pod
   * and service proxying over HTTPS).
   */
  readonly authority?: string | undefined;
  /** Name in the server's certificate, if it differs from the host. */
  readonly serverName?: string;
}

/**
 * Destination network of a connection, with upstream's names: nodes, pods and services of the cluster, or servers that
 * an administrator has configured.
 */
export type Network = 'cluster' | 'controlplane';

/** HTTP CONNECT proxy for the connections to a network. */
export interface EgressProxy {
  readonly at: { readonly socket: string } | { readonly host: string; readonly port: number };
  /**
   * PEM material for TLS with the proxy. Undefined: no TLS. Without an authority, the proxy is verified with the public
   * authorities.
   */
  readonly tls?: Partial<Readonly<Record<'certificate' | 'key', string>>> &
    Pick<BackendTls, 'authority' | 'serverName'>;
  /** Value of the header Proxy-Authorization. */
  readonly authorization?: string;
}

export interface BackendRequest {
  readonly network: Network;
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly tls?: BackendTls;
  /**
   * Reports whether a connection to this address is allowed. Called after name resolution, so that a name cannot point
   * to a forbidden address. Not called for names that an egress proxy resolves.
   */
  allowAddress(address: string): boolean;
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
  /** Keeps the connection open for later requests of the same kind. Default false. */
  readonly pooled?: boolean;
}

/** HTTP client. Errors are CodedErrors: 'address-refused', 'connect-failed', 'aborted'. Redirects are not followed. */
export interface BackendConnector {
  /** PEM bundle of the public authorities of the runtime, for servers without a configured authority. */
  readonly publicAuthorities: string;
  /**
   * Sends a request. A stream as the body is piped. If a kept connection was closed before a response, a GET or a
   * request with a Buffer as the body is sent again on a new connection; such bodies are queries, which may be
   * repeated.
   */
  request(request: BackendRequest, body: Readable | Buffer | undefined): Promise<IncomingMessage>;
  /** Sends an upgrade request. Returns either the upgraded connection or an ordinary response. */
  upgrade(request: BackendRequest): Promise<UpgradeAnswer>;
}

export type UpgradeAnswer =
  | { readonly upgraded: true; readonly response: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }
  | { readonly upgraded: false; readonly response: IncomingMessage };

export interface HttpPort {
  listen(options: ListenOptions): Promise<Listener>;
  readonly backends: BackendConnector;
}
