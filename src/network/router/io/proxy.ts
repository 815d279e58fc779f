/**
 * The router's proxy: an HTTP and an HTTPS port. TLS is selected by server name and requests by the routing table,
 * which is always replaced as a whole.
 */

import { createServer as createHttpServer, type Server as HttpServer, type IncomingMessage } from 'node:http';
import { createSecureServer, type Http2SecureServer } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { peerAddress, peerNetwork } from '../../../base/addresses/addresses.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { ResponsesInProgress, refuseMalformed } from '../../../wire/connections/malformed-requests.ts';
import type { Backend, Balancing, Certificate, RoutingView } from '../core/port.ts';
import type { ProxyFactory, ProxySettings, RoutingProxy } from '../port.ts';
import { SecureContexts } from './certificates.ts';
import { MAX_HELLO_BYTES, readHello } from './client-hello.ts';
import { isHttp2 } from './exchange.ts';
import { firstBytes, type ParseResult } from './first-bytes.ts';
import { HttpProxy, type ProxyParts } from './http-proxy.ts';
import { IdleBackends } from './idle.ts';
import { RetriedListener } from './listeners.ts';
import { RouteMetrics } from './metrics.ts';
import { HEADER_TIMEOUT_MS, PendingConnections } from './pending.ts';
import { MAX_PROXY_HEADER_BYTES, readProxyHeader } from './proxy-header.ts';
import { Shares } from './shares.ts';
import { passThrough } from './splice.ts';
import { upgrade } from './upgrade.ts';
import { Upstreams } from './upstream.ts';

/** HAProxy's value in OpenShift's template: `timeout http-keep-alive 300s`. */
const KEEP_ALIVE_MS = 300_000;
const MAX_HEADER_BYTES = 32 * 1024;
const CHECK_MS = 2_000;
const CLUSTER_CA_PERIOD_MS = 30_000;
const MAX_STREAMS = 100;
/** Streams that a client may reset at once and per second. Node closes the session of a client that resets more. */
const STREAM_RESETS = { streamResetBurst: 200, streamResetRate: 33 };
/** Each connection with TLS takes up to 100 kB of memory. */
const MAX_CONNECTIONS = 20_000;
/** The fatal TLS alert unrecognized_name. Source: RFC 8446 §6, RFC 6066 §3. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 3, 0, 2, 2, 112]);
const EMPTY: RoutingView = {
  tls: () => ({ kind: 'terminate', certificate: undefined }),
  request: () => ({ kind: 'none' }),
  size: 0,
};

/** Creates proxies whose ports listen on the local address `address`. */
export const proxyFactory = (log: Log, address = '::'): ProxyFactory => ({
  create: (settings, balancing, needPods) => new NodeProxy(settings, balancing, needPods, log, address),
});

class NodeProxy implements RoutingProxy {
  readonly #settings: ProxySettings;
  readonly #log: Log;
  readonly #parts: ProxyParts;
  readonly #proxy: HttpProxy;
  readonly #idle: IdleBackends;
  readonly #metrics = new RouteMetrics();
  readonly #upstreams = new Upstreams();
  readonly #contexts = new SecureContexts();
  readonly #pending = new PendingConnections(() => performance.now());
  readonly #responses = new ResponsesInProgress();
  readonly #connections: Shares;
  readonly #sources = new WeakMap<Socket, string>();
  readonly #plain: HttpServer;
  readonly #secure: Http2SecureServer;
  readonly #listeners: RetriedListener[];
  #stats: HttpServer | undefined;
  #caTimer: NodeJS.Timeout | undefined;
  #view: RoutingView = EMPTY;

  constructor(
    settings: ProxySettings,
    balancing: Balancing,
    needPods: (service: string) => void,
    log: Log,
    address: string,
  ) {
    this.#settings = settings;
    this.#idle = new IdleBackends(needPods, () => performance.now());
    this.#log = log;
    this.#connections = new Shares(settings.maxConnections ?? MAX_CONNECTIONS);
    this.#parts = {
      balancing,
      metrics: this.#metrics,
      upstreams: this.#upstreams,
      idle: this.#idle,
      requests: new Shares(settings.maxConnections ?? MAX_CONNECTIONS),
      log,
      accessLog: settings.accessLog,
      ports: { http: settings.httpPort, https: settings.httpsPort },
      view: () => this.#view,
      nowMs: () => performance.now(),
      sourceOf: (socket) => this.#sourceOf(socket),
    };
    this.#proxy = new HttpProxy(this.#parts);
    const limits = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: HEADER_TIMEOUT_MS,
      requestTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: CHECK_MS,
      insecureHTTPParser: false,
      shouldUpgradeCallback: mayUpgrade,
      noDelay: true,
    };
    this.#plain = createHttpServer(limits, (request, response) => {
      this.#pending.done(request.socket);
      this.#responses.add(request.socket, response);
      this.#proxy.handle(request, response, 'http');
    });
    refuseMalformed(this.#plain, this.#responses.isBusy);
    this.#plain.on('upgrade', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.#pending.done(request.socket);
      upgrade(this.#proxy, this.#parts, request, client, head, 'http');
    });
    this.#secure = this.#secureServer(limits);
    // Both servers receive their connections from the listeners below, so they never listen themselves. This event
    // starts their timer for slow request headers.
    this.#plain.emit('listening');
    this.#secure.emit('listening');
    this.#listeners = [
      new RetriedListener(settings.httpPort, address, log, (socket) =>
        this.#accept(socket, () => this.#plain.emit('connection', socket)),
      ),
      new RetriedListener(settings.httpsPort, address, log, (socket) =>
        this.#accept(socket, () => this.#readHello(socket)),
      ),
    ];
  }

  async start(): Promise<void> {
    await this.#readClusterCa();
    const period = this.#settings.clusterCaPeriodMs ?? CLUSTER_CA_PERIOD_MS;
    this.#caTimer = setInterval(() => void this.#readClusterCa(), period).unref();
    await Promise.all(this.#listeners.map((listener) => listener.start()));
    this.#serveStats();
  }

  swap(view: RoutingView): void {
    this.#view = view;
    this.#idle.changed();
  }

  useDefaultCertificate({ certificate, key }: Certificate): void {
    try {
      createSecureContext({ cert: certificate, key });
      this.#secure.setSecureContext({ cert: certificate, key });
    } catch (error) {
      this.#log.warn('default certificate not usable', { error: messageOf(error) });
    }
  }

  metrics(): string {
    return this.#metrics.render(this.#pending.size, this.#pending.refused + this.#connections.refused, this.#view.size);
  }

  async stop(): Promise<void> {
    clearInterval(this.#caTimer);
    this.#pending.stop();
    this.#idle.stop();
    this.#upstreams.close();
    this.#stats?.closeAllConnections();
    this.#stats?.close();
    this.#plain.emit('close');
    this.#secure.emit('close');
    await Promise.all(this.#listeners.map((listener) => listener.stop()));
  }

  #secureServer(limits: object): Http2SecureServer {
    const options = {
      ...limits,
      ...STREAM_RESETS,
      allowHTTP1: true,
      minVersion: 'TLSv1.2' as const,
      handshakeTimeout: HEADER_TIMEOUT_MS,
      settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES },
      SNICallback: (name: string, callback: (error: Error | null, context?: SecureContext) => void) => {
        const found = this.#view.tls(name.toLowerCase());
        if (found.kind === 'refused') return callback(new Error('no certificate can be served for the name'));
        const certificate = found.kind === 'terminate' ? found.certificate : undefined;
        const context = certificate === undefined ? undefined : this.#contexts.of(certificate);
        callback(null, context);
      },
    };
    const server = createSecureServer(options, (request, response) => {
      const socket = request.socket as TLSSocket;
      this.#pending.done(this.#rawSocketOf(socket));
      if (!isHttp2(request)) {
        this.#responses.add(socket, response);
        return this.#proxy.handle(request, response, 'https');
      }
      // Thousands of streams can be opened and reset within one packet. They end before the next turn of the event
      // loop, so that no server gets a request for them.
      request.on('error', () => {});
      setImmediate(() => {
        const { stream } = request;
        if (!stream.destroyed && stream.session?.destroyed === false) this.#proxy.handle(request, response, 'https');
      });
    });
    server.on('upgrade', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.#pending.done(this.#rawSocketOf(request.socket as TLSSocket));
      upgrade(this.#proxy, this.#parts, request, client, head, 'https');
    });
    // Node does not apply this option to the HTTP/1 connections of a server for HTTP/2.
    Object.assign(server, { shouldUpgradeCallback: mayUpgrade });
    refuseMalformed(server, this.#responses.isBusy);
    server.on('tlsClientError', (_error, socket) => socket.destroy());
    server.on('sessionError', () => {});
    server.on('session', (session) => {
      session.on('error', () => session.destroy());
      // `close` ends the session after its open streams have ended.
      session.setTimeout(KEEP_ALIVE_MS, () => session.close());
    });
    server.on('secureConnection', (socket: TLSSocket) => socket.on('error', () => socket.destroy()));
    return server;
  }

  #accept(socket: Socket, next: () => void): void {
    const address = plainAddress(socket.remoteAddress);
    socket.on('error', () => socket.destroy());
    if (!this.#settings.proxyProtocol) {
      this.#sources.set(socket, address);
      if (this.#admit(socket, address)) next();
      return;
    }
    // The socket's remote address is that of the load balancer. Limits per source apply to the clients behind the load
    // balancer, once the PROXY header has named them.
    const timer = setTimeout(() => socket.destroy(), HEADER_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
    firstBytes(socket, MAX_PROXY_HEADER_BYTES, parseProxyHeader, ({ length, source }, bytes) => {
      clearTimeout(timer);
      const client = source ?? address;
      this.#sources.set(socket, client);
      if (!this.#admit(socket, client)) return;
      if (bytes.length > length) socket.unshift(bytes.subarray(length));
      next();
    });
  }

  /** Returns false, and destroys the socket, if the client has too many connections. */
  #admit(socket: Socket, address: string): boolean {
    const source = peerNetwork(address);
    if (!this.#connections.acquire(source)) {
      socket.destroy();
      return false;
    }
    socket.once('close', () => this.#connections.release(source));
    return this.#pending.add(socket, address);
  }

  #readHello(socket: Socket): void {
    firstBytes(socket, MAX_HELLO_BYTES, parseHello, (name, bytes) => {
      const found = this.#view.tls(name);
      if (found.kind === 'terminate') {
        socket.unshift(bytes);
        socket.allowHalfOpen = false;
        this.#secure.emit('connection', socket);
        return;
      }
      this.#pending.done(socket);
      if (found.kind === 'refused') return void socket.end(UNRECOGNIZED_NAME, () => socket.destroy());
      const { backend } = found;
      const { balancing } = this.#parts;
      const source = this.#sourceOf(socket);
      const { allowed, limits } = backend.options;
      if (allowed !== undefined && !this.#proxy.isAllowed(allowed, source)) return void socket.destroy();
      if (limits !== undefined) {
        const isAdmitted = balancing.admitConnection(backend, source, performance.now());
        socket.once('close', () => balancing.connectionClosed(backend, source));
        if (!isAdmitted) return void socket.destroy();
      }
      const current = (): Backend | undefined => {
        const now = this.#view.tls(name);
        return now.kind === 'passthrough' ? now.backend : undefined;
      };
      const [metrics, idle, ownPort] = [this.#metrics, this.#idle, this.#settings.httpsPort];
      passThrough(socket, bytes, { backend, source, balancing, metrics, idle, ownPort, current });
    });
  }

  #sourceOf(socket: Socket): string {
    const raw = this.#rawSocketOf(socket as TLSSocket);
    return this.#sources.get(raw) ?? plainAddress(raw.remoteAddress);
  }

  /** The TCP connection below TLS and HTTP/2. The client's address is stored under this connection. */
  #rawSocketOf(socket: TLSSocket): Socket {
    const below = (socket as { readonly _parent?: Socket })._parent;
    return below ?? socket;
  }

  async #readClusterCa(): Promise<void> {
    try {
      this.#upstreams.useClusterCa(await this.#settings.clusterCa());
    } catch (error) {
      this.#log.warn('cluster CA not readable; re-encrypting routes need one of their own', {
        error: messageOf(error),
      });
    }
  }

  #serveStats(): void {
    if (this.#settings.statsPort === undefined) return;
    const server = createHttpServer({ headersTimeout: HEADER_TIMEOUT_MS }, (request, response) => {
      const isMetrics = request.url === '/metrics';
      const isHealth = request.url === '/healthz';
      response.writeHead(isMetrics || isHealth ? 200 : 404, { 'content-type': 'text/plain; version=0.0.4' });
      response.end(isMetrics ? this.metrics() : isHealth ? 'ok' : 'not found\n');
    });
    server.maxConnections = 32;
    server.on('error', (error) => this.#log.warn('router metrics not served', { error: error.message }));
    server.listen(this.#settings.statsPort, '127.0.0.1');
    this.#stats = server;
  }
}

/**
 * An upgrade to HTTP/2 would bypass the route's rules, so such a request is served without the upgrade (RFC 9113
 * §3.1).
 */
const mayUpgrade = ({ headers }: IncomingMessage): boolean =>
  !(headers.upgrade ?? '').split(',').some((each) => /^\s*(?:h2c?|http\b)/i.test(each));

const plainAddress = (address = ''): string => peerAddress(address);

function parseHello(bytes: Buffer): ParseResult<string> {
  const hello = readHello(bytes);
  return hello.kind === 'name' ? { kind: 'done', value: hello.name } : hello;
}

function parseProxyHeader(
  bytes: Buffer,
): ParseResult<{ readonly length: number; readonly source: string | undefined }> {
  const header = readProxyHeader(bytes);
  return header.kind === 'header' ? { kind: 'done', value: header } : header;
}
