/** What the proxy needs of the routing table; every call is synchronous and must not throw. */

/** A server behind a route. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** The servers of one service; connections are shared among the pools of a route by weight. */
export interface Pool {
  /** `NAMESPACE/NAME` of the service. */
  readonly service: string;
  readonly weight: number;
  readonly endpoints: readonly Endpoint[];
  /** The service port speaks HTTP/2 without TLS. */
  readonly http2: boolean;
  /** The service has been idled: its workloads start when it has traffic. */
  readonly idled?: boolean;
}

export type Balance = 'random' | 'source' | 'roundrobin' | 'leastconn';

/** Over the windows of OpenShift's template: connections in 3 s, requests in 10 s. */
export interface RateLimits {
  readonly concurrent: number | undefined;
  readonly connections: number | undefined;
  readonly requests: number | undefined;
}

/** Of a route's annotations. Durations are milliseconds. */
export interface RouteOptions {
  readonly balance: Balance;
  readonly serverTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly tunnelTimeoutMs: number;
  /** Networks and addresses that may connect; undefined: all. */
  readonly allowed: readonly string[] | undefined;
  readonly limits: RateLimits | undefined;
  /** Undefined: no sticky cookie. */
  readonly cookie: { readonly name: string; readonly sameSite: string } | undefined;
  readonly hsts: string | undefined;
  /** Replaces the path of the route at the start of a request's path. */
  readonly rewrite: string | undefined;
}

export interface Certificate {
  /** PEM, leaf first. */
  readonly certificate: string;
  readonly key: string;
}

/** How the proxy reaches the servers: in the clear, or by TLS that is verified. */
export type Upstream =
  | { readonly tls: false }
  | {
      readonly tls: true;
      /** PEM bundle; undefined: the cluster's. The name is verified against the cluster's CA only. */
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
  /** '' where every path belongs to it. */
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
  /** Without query. */
  readonly path: string;
  /** With its question mark; '' without one. */
  readonly query: string;
  readonly method: string;
  /** By lower-case name. */
  header(name: string): string | undefined;
}

export type Found =
  /** `path`: with query, as the server shall see it. */
  | { readonly kind: 'backend'; readonly backend: Backend; readonly path: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly location: string }
  /** The host's TLS ends elsewhere or nowhere: the request came by a connection for another host. */
  | { readonly kind: 'misdirected' }
  | { readonly kind: 'none' };

export type TlsFound =
  | { readonly kind: 'passthrough'; readonly backend: Backend }
  /** The host's listener has no certificate that can be served: no handshake with another one's. */
  | { readonly kind: 'refused' }
  /** `certificate` undefined: the default one. */
  | { readonly kind: 'terminate'; readonly certificate: Certificate | undefined };

/** The routing table; the proxy replaces it as a whole. */
export interface RoutingView {
  /** By the name of a ClientHello, lower case; '' without one. */
  tls(serverName: string): TlsFound;
  request(facts: RequestFacts): Found;
  /** Number of rows. */
  readonly size: number;
}

export interface Client {
  readonly address: string;
  /** Of the sticky cookie; undefined: none. */
  readonly cookie: string | undefined;
}

/** Chooses servers, and counts what routes are limited by. */
export interface Balancing {
  /** Undefined: no server is left. */
  pick(backend: Backend, client: Client, tried: ReadonlySet<string>): Choice | undefined;
  opened(choice: Choice): void;
  closed(choice: Choice): void;
  /** False: the client has exceeded a limit of the route. */
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
