/**
 * What the API server needs of the network. Implemented by `src/io/http`; handed in by `src/roles`. Requests and
 * responses are Node's own objects (HTTP/1.1 or the HTTP/2 compatibility form): wrapping them costs throughput.
 */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import type { GateLimits } from '../../base/connections/gate.ts';
import type { Identified } from '../../base/connections/http-connection.ts';

export type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/**
 * Over HTTP/2 these are `Http2ServerRequest` and `Http2ServerResponse`, which have the same surface as far as it is
 * used here.
 */
export type HttpRequest = IncomingMessage & {
  /**
   * Has the body given to `take` and not to a stream, whose events cost a small write as much as the rest of HTTP.
   * False: it has begun to come as a stream; absent: it comes as one (HTTP/2).
   */
  takeBody?(take: BodyTaker): boolean;
};
export type HttpResponse = ServerResponse;

/** Receives the chunks of a body, and null at its end. Returns false to stop reading. */
export type BodyTaker = (chunk: Buffer | null) => boolean;

/**
 * The TLS facts of the connection a request came on; one object per connection, so results may be kept by its identity.
 */
export interface ConnectionInfo {
  readonly remoteAddress: string;
  /** DER of the client's chain, leaf first; only present when TLS verified it against one of the configured CAs. */
  readonly peerChain: readonly Uint8Array[] | undefined;
  /** The client showed a certificate that TLS could not verify: expired, or signed by an unknown authority. */
  readonly peerRefused: boolean;
  /** DER of the client's chain, leaf first, when its expiry is why TLS refused it. Its key was proven all the same. */
  readonly peerExpired?: readonly Uint8Array[];
  /**
   * Reports whose request the connection has brought: what it may cost depends on it. To be called for each request,
   * before its answer.
   */
  identified?(as: Identified): void;
}

/** A certificate that is shown to who asks for one of `names`. */
export interface NamedCertificate {
  /** Lower case; `*` may stand for the first label. */
  readonly names: readonly string[];
  readonly certificate: string;
  readonly key: string;
}

export interface TlsMaterial {
  /** PEM, leaf first, with intermediates. */
  readonly certificate: string;
  readonly key: string;
  /** For who asks for a name (SNI), before the one above; the first that has it counts. */
  readonly named?: readonly NamedCertificate[];
  /** PEM bundles that client certificates may chain to. */
  readonly clientAuthorities: readonly string[];
  /** Default: TLSv1.2. */
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Suites of TLS 1.2 in OpenSSL's form; default: those that are safe. */
  readonly ciphers?: string;
  /** Groups of key exchange in OpenSSL's form; default: its own. */
  readonly curves?: string;
}

export interface ListenOptions {
  readonly bindAddress: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls: TlsMaterial;
  readonly maxHeaderBytes: number;
  /** Time a client has to send its complete header, in milliseconds. */
  readonly headersTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Streams that one HTTP/2 connection may have open at once. Default 250. */
  readonly maxStreams?: number;
  /** Only HTTP/1.1 is spoken. Default false. */
  readonly withoutHttp2?: boolean;
  /** Connections at once, and how long they may be idle. Default: those of an API server. */
  readonly limits?: GateLimits;
  /** Another process may listen on the same port. Default false. */
  readonly sharesPort?: boolean;
  /**
   * Asked at each HTTP/2 request: true lets its connection take no more, so that the client opens another, maybe to
   * another server.
   */
  isLast?(): boolean;
  request(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): void;
  /**
   * HTTP/1.1 only. The handler owns the socket. `inMessages` makes of the socket an answer to a WebSocket whose body,
   * once its head is written with 200, travels in messages: lines of JSON and frames of protobuf one by one, other
   * bodies as they come.
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
  /** New handshakes use the new material; present connections keep theirs. */
  updateTls(tls: TlsMaterial): void;
  /**
   * Serves on, and asks clients to connect elsewhere: `connection: close` on HTTP/1.1, GOAWAY on HTTP/2, each with the
   * next request.
   */
  retire(): void;
  /** Refuses new connections, and new requests on those there are; requests in flight go on. */
  drain(): void;
  /** Drains, waits up to `graceMs` for requests in flight, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

export interface BackendTls {
  readonly certificate?: string;
  readonly key?: string;
  /**
   * PEM bundle the server must chain to; undefined: not verified (as upstream for pod and service proxying over HTTPS).
   */
  readonly authority?: string | undefined;
  /** The name that the server's certificate must bear, where it is not the host that is connected to. */
  readonly serverName?: string;
}

/**
 * Where a request goes, by upstream's names: the nodes, pods and services of the cluster, or servers that the
 * administrator named.
 */
export type Network = 'cluster' | 'controlplane';

/** Who is asked to connect to a network, by CONNECT. */
export interface EgressProxy {
  readonly at: { readonly socket: string } | { readonly host: string; readonly port: number };
  /** PEM; undefined: in the clear. Without an authority the proxy is verified by those that everybody trusts. */
  readonly tls?: Readonly<Record<'certificate' | 'key', string>> & Pick<BackendTls, 'authority' | 'serverName'>;
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
   * Asked with the address that is about to be connected to: after name resolution, so that a name cannot point
   * elsewhere. Names that a proxy resolves are its to judge.
   */
  allowAddress(address: string): boolean;
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
  /** On a connection that stays open for later requests of the same kind. Default false. */
  readonly pooled?: boolean;
}

/**
 * Errors are `CodedError`s: 'address-refused', 'connect-failed', 'aborted'. Redirects are returned as they are, never
 * followed.
 */
export interface BackendConnector {
  /** PEM of the authorities that come with the runtime, for servers whose authority is not configured. */
  readonly publicAuthorities: string;
  /**
   * Sends a request; `body` is piped when it is a stream. On a connection that was kept and turns out to be closed, a
   * GET, and a request whose body is at hand as a Buffer, are sent once more on a new one when nothing was answered:
   * such bodies are questions, which may be asked twice.
   */
  request(request: BackendRequest, body: Readable | Buffer | undefined): Promise<IncomingMessage>;
  /** Sends an upgrade request. The answer is either the switched connection or an ordinary response. */
  upgrade(request: BackendRequest): Promise<UpgradeAnswer>;
}

export type UpgradeAnswer =
  | { readonly upgraded: true; readonly response: IncomingMessage; readonly socket: Duplex; readonly head: Buffer }
  | { readonly upgraded: false; readonly response: IncomingMessage };

export interface HttpPort {
  listen(options: ListenOptions): Promise<Listener>;
  readonly backends: BackendConnector;
}
