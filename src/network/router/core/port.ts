/** Port between the routing table and the proxy. Every call is synchronous and must not throw. */

/** A server behind a route. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** Servers of one service. Connections are distributed among the pools of a route by weight. */
export interface Pool {
  /** `NAMESPACE/NAME` of the service. */
  readonly service: string;
  readonly weight: number;
  readonly endpoints: readonly Endpoint[];
  /** Whether the service port uses HTTP/2 without TLS. */
  readonly http2: boolean;
  /** Whether the service is idled. Its workloads are started when it receives traffic. */
  readonly idled?: boolean;
}

export type Balance = 'random' | 'source' | 'roundrobin' | 'leastconn';

/** Limits per client for the time windows of OpenShift's template: connections in 3 s, requests in 10 s. */
export interface RateLimits {
  readonly concurrent: number | undefined;
  readonly connections: number | undefined;
  readonly requests: number | undefined;
}

/** Options from a route's annotations. Durations are milliseconds. */
export interface RouteOptions {
  readonly balance: Balance;
  readonly serverTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly tunnelTimeoutMs: number;
  /** Networks and addresses that may connect; undefined if all may. */
  readonly allowed: readonly string[] | undefined;
  readonly limits: RateLimits | undefined;
  /** Sticky cookie; undefined if the route has none. */
  readonly cookie: { readonly name: string; readonly sameSite: string } | undefined;
  readonly hsts: string | undefined;
  /** Replacement for the route's path at the start of a request's path. */
  readonly rewrite: string | undefined;
}

export interface Certificate {
  /** Certificate chain as PEM, the leaf first. */
  readonly certificate: string;
  readonly key: string;
}

/** Connection to the servers: in plain text, or with verified TLS. */
export type Upstream =
  | { readonly tls: false }
  | {
      readonly tls: true;
      /** PEM bundle; undefined for the cluster's CA. The server name is verified only with the cluster's CA. */
      readonly ca: string | undefined;
      readonly serverName: string;
    };

export interface Redirect {
  readonly scheme: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly path: { readonly kind: 'full' | 'prefix'; readonly value: string } | undefined;
  readonly status: number;
}

/** A row of the table. */
export interface Backend {
  /** `route/NAMESPACE/NAME`, `ingress/…` or `httproute/…`. */
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
  readonly host: string;
  /** Path of the row; '' if the row serves every path. */
  readonly path: string;
  readonly pools: readonly Pool[];
  readonly upstream: Upstream;
  readonly options: RouteOptions;
  readonly redirect: Redirect | undefined;
}

export interface RequestFacts {
  readonly secure: boolean;
  /** Lower case, without port. */
  readonly host: string;
  /** Path without the query. */
  readonly path: string;
  /** Query with its question mark; '' if there is no query. */
  readonly query: string;
  readonly method: string;
  /** Returns the value of a header by its lower-case name. */
  header(name: string): string | undefined;
}

export type Found =
  /** `path`: path and query for the server. */
  | { readonly kind: 'backend'; readonly backend: Backend; readonly path: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly location: string }
  /**
   * The request used a connection for another host, and this router does not terminate the TLS of the requested host.
   */
  | { readonly kind: 'misdirected' }
  | { readonly kind: 'none' };

export type TlsFound =
  | { readonly kind: 'passthrough'; readonly backend: Backend }
  /**
   * The host's listener has no valid certificate, so the handshake is rejected instead of using another certificate.
   */
  | { readonly kind: 'refused' }
  /** `certificate` is undefined for the default certificate. */
  | { readonly kind: 'terminate'; readonly certificate: Certificate | undefined };

/** Immutable routing table; the proxy replaces it as a whole. */
export interface RoutingView {
  /** Looks up the server name of a ClientHello in lower case; '' stands for a ClientHello without a name. */
  tls(serverName: string): TlsFound;
  request(facts: RequestFacts): Found;
  /** Number of rows. */
  readonly size: number;
}

export interface Client {
  readonly address: string;
  /** Value of the sticky cookie in the request; undefined if there is none. */
  readonly cookie: string | undefined;
}

/** Selects servers and counts connections and requests for the limits of routes. */
export interface Balancing {
  /** Selects a server; undefined if no server is left. */
  pick(backend: Backend, client: Client, tried: ReadonlySet<string>): Choice | undefined;
  opened(choice: Choice): void;
  closed(choice: Choice): void;
  /** Counts a request or connection. Returns false if the client has exceeded a limit of the route. */
  admitRequest(backend: Backend, address: string, nowMs: number): boolean;
  admitConnection(backend: Backend, address: string, nowMs: number): boolean;
  connectionClosed(backend: Backend, address: string): void;
}

export interface Choice {
  readonly endpoint: Endpoint;
  readonly pool: Pool;
  /** `ADDRESS:PORT`. */
  readonly key: string;
  /** Value of the sticky cookie for this server. */
  readonly cookie: string;
}
