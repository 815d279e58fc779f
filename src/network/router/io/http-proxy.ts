/** Forwards HTTP requests to the servers of their routes. */
import type { IncomingMessage, ClientRequest as Outgoing, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { NetworkSet } from '../../../base/addresses/network-set.ts';
import type { Log } from '../../../base/log.ts';
import type { Backend, Balancing, Choice, RoutingView } from '../core/port.ts';
import {
  type ClientRequest,
  type ClientResponse,
  type Exchange,
  framing,
  isHttp2,
  ownHeaders,
  sendResponse,
  targetOf,
  writeHead,
} from './exchange.ts';
import { cookieOf, type Forwarding, forwarded, ownHops, type RawHeaders, returned } from './headers.ts';
import { forwardHttp2 } from './http2-upstream.ts';
import { hasServers, type IdleBackends } from './idle.ts';
import type { RouteMetrics } from './metrics.ts';
import type { Shares } from './shares.ts';
import type { Upstreams } from './upstream.ts';

/** Maximum number of servers that are tried for one request. */
const ATTEMPTS = 3;
/** Maximum number of requests of HTTP/1 that a client may send before their responses; then the connection ends. */
const MAX_PIPELINED = 64;
/**
 * Number of times that routers may forward one request. A server may forward requests to another route, but a service
 * whose endpoint is a router would forward one request hundreds of times.
 */
const MAX_HOPS = 8;
/** Host of the requests with which this host probes its router. No route can have it, and they are no lost requests. */
const PROBED_HOST = '127.0.0.1';

export interface ProxyParts {
  readonly balancing: Balancing;
  readonly metrics: RouteMetrics;
  readonly upstreams: Upstreams;
  readonly idle: IdleBackends;
  /** Requests in progress, by the namespace of their route. */
  readonly requests: Shares;
  readonly log: Log;
  readonly accessLog: boolean;
  readonly ports: { readonly http: number; readonly https: number };
  view(): RoutingView;
  nowMs(): number;
  /** Address of the client, also behind balancers with the PROXY protocol. */
  sourceOf(socket: Socket): string;
}

export class HttpProxy {
  readonly #parts: ProxyParts;
  /** Routes for which a client connection has been counted. */
  readonly #counted = new WeakMap<Socket, Set<string>>();
  /** Number of requests on HTTP/1 connections without a complete response. */
  readonly #inFlight = new WeakMap<Socket, number>();

  /** Sets of networks that may connect, by their list. A list can have thousands of networks. */
  readonly #allowed = new WeakMap<readonly string[], NetworkSet>();

  constructor(parts: ProxyParts) {
    this.#parts = parts;
  }

  handle(request: ClientRequest, response: ClientResponse, scheme: 'https' | 'http'): void {
    response.on('error', () => {});
    // Errors of an HTTP/2 stream, such as a reset by the client, arrive here.
    request.on('error', () => {});
    // The parser delivers all requests of a chunk in one turn of the event loop, also after the end of the connection.
    if (!isHttp2(request) && (request.socket.destroyed || this.#begin(request, response) > MAX_PIPELINED))
      return void request.socket.destroy();
    const exchange = this.admit(request, scheme, (status, headers) => sendResponse(response, status, headers));
    if (exchange === undefined) return;
    const body = framing(request);
    if (body === undefined) {
      // The connection is closed, because the framing of its next request cannot be trusted.
      sendResponse(response, 400, isHttp2(request) ? [] : ['Connection', 'close']);
      return;
    }
    const { requests } = this.#parts;
    const { namespace } = exchange.backend;
    // Slow servers of one namespace could otherwise hold the sockets of the router.
    if (!requests.acquire(namespace)) {
      this.#parts.metrics.responded(exchange.backend, 503);
      sendResponse(response, 503, this.#closing(exchange, body.hasBody));
      return;
    }
    response.once('close', () => requests.release(namespace));
    if (this.#parts.accessLog) this.#logWhenDone(exchange, response);
    this.#attempt({ ...exchange, response }, body);
  }

  /** Whether a response on the connection is outstanding. An upgrade on the connection must wait for this response. */
  isBusy(socket: Socket): boolean {
    return (this.#inFlight.get(socket) ?? 0) > 0;
  }

  /** Returns the number of requests in progress on the connection. */
  #begin(request: IncomingMessage, response: ClientResponse): number {
    const { socket } = request;
    const count = (this.#inFlight.get(socket) ?? 0) + 1;
    this.#inFlight.set(socket, count);
    response.once('close', () => this.#inFlight.set(socket, (this.#inFlight.get(socket) ?? 1) - 1));
    return count;
  }

  /**
   * Finds the route of the request and checks whether the client may use it; otherwise calls `refuse` and returns
   * undefined.
   */
  admit(
    request: ClientRequest,
    scheme: 'https' | 'http',
    refuse: (status: number, headers: RawHeaders) => void,
  ): Omit<Exchange, 'response'> | undefined {
    const { balancing, metrics } = this.#parts;
    const target = targetOf(request, scheme === 'https');
    if (target === undefined) {
      refuse(400, isHttp2(request) ? [] : ['Connection', 'close']);
      return undefined;
    }
    const found = this.#parts.view().request(target);
    if (found.kind !== 'backend') {
      if (found.kind === 'redirect') {
        refuse(found.status, ['Location', found.location]);
        return undefined;
      }
      if (target.host !== PROBED_HOST) metrics.unrouted++;
      refuse(found.kind === 'misdirected' ? 421 : 503, []);
      return undefined;
    }
    if (ownHops(request.headers) >= MAX_HOPS) {
      refuse(508, []);
      return undefined;
    }
    const { backend, path } = found;
    const socket = request.socket as Socket;
    const source = this.#parts.sourceOf(socket);
    const { allowed, limits, cookie } = backend.options;
    if (allowed !== undefined && !this.isAllowed(allowed, source)) {
      refuse(403, []);
      return undefined;
    }
    if (limits !== undefined) {
      const isAdmitted = this.#countConnection(backend, socket, source);
      if (!isAdmitted || !balancing.admitRequest(backend, source, this.#parts.nowMs())) {
        refuse(429, isHttp2(request) ? [] : ['Connection', 'close']);
        return undefined;
      }
    }
    const sticky = cookie === undefined ? undefined : cookieOf(request.headers, cookie.name);
    return { request, target, backend, path, source, cookie: sticky, tried: new Set() };
  }

  isAllowed(networks: readonly string[], address: string): boolean {
    const known = this.#allowed.get(networks) ?? new NetworkSet(networks);
    this.#allowed.set(networks, known);
    return known.has(address);
  }

  forwardingOf({ target, source, backend }: Omit<Exchange, 'response'>): Forwarding {
    const { ports } = this.#parts;
    return {
      source,
      host: target.authority,
      secure: target.secure,
      port: target.secure ? ports.https : ports.http,
      cookie: backend.options.cookie?.name,
    };
  }

  /** Selects the next server that was not tried yet; undefined if there is none. */
  choose({ backend, source, cookie, tried }: Omit<Exchange, 'response'>): Choice | undefined {
    if (tried.size >= ATTEMPTS) return undefined;
    const choice = this.#parts.balancing.pick(backend, { address: source, cookie }, tried);
    if (choice !== undefined) tried.add(choice.key);
    return choice;
  }

  /**
   * Returns true if the request now waits for servers of an idled service. Later either `again` or `failed` is called,
   * but neither if `client` closes first.
   */
  holdIdle(
    exchange: Omit<Exchange, 'response'>,
    client: { once(event: 'close', listener: () => void): unknown },
    again: (exchange: Omit<Exchange, 'response'>) => void,
    failed: () => void,
  ): boolean {
    if (exchange.tried.size > 0) return false;
    const { idle, view } = this.#parts;
    const cancel = idle.hold(exchange.backend, {
      isReady: () => {
        const found = view().request(exchange.target);
        return found.kind !== 'backend' || hasServers(found.backend);
      },
      settled: (ready) => {
        const found = view().request(exchange.target);
        if (ready && found.kind === 'backend') again({ ...exchange, backend: found.backend, path: found.path });
        else failed();
      },
    });
    if (cancel === undefined) return false;
    client.once('close', cancel);
    return true;
  }

  #attempt(exchange: Exchange, body: NonNullable<ReturnType<typeof framing>>): void {
    const { request, response, backend, path, target } = exchange;
    const { balancing, metrics, upstreams } = this.#parts;
    const choice = this.choose(exchange);
    if (choice === undefined) {
      const again = (found: Omit<Exchange, 'response'>): void => this.#attempt({ ...found, response }, body);
      const unavailable = (): void => {
        metrics.responded(backend, 503);
        sendResponse(response, 503, this.#closing(exchange, body.hasBody));
      };
      // The response types of HTTP/1 and HTTP/2 differ, but have the same event.
      if (this.holdIdle(exchange, response as ServerResponse, again, unavailable)) return;
      if (exchange.tried.size > 0) metrics.of(backend).connectErrors++;
      unavailable();
      return;
    }
    const headers = forwarded(request.rawHeaders, request.headers, this.forwardingOf(exchange));
    const isGrpc = request.headers['content-type']?.startsWith('application/grpc') === true;
    balancing.opened(choice);
    const settled = once(() => balancing.closed(choice));
    if (choice.pool.http2 || (isGrpc && backend.upstream.tls)) {
      forwardHttp2({ exchange, choice, headers, session: upstreams.session(backend, choice), metrics, settled });
      return;
    }
    let upstream: Outgoing;
    try {
      upstream = upstreams.request({
        backend,
        choice,
        method: target.method,
        path,
        headers: [...headers, ...body.headers],
      });
    } catch {
      settled();
      sendResponse(response, 400, this.#closing(exchange, body.hasBody));
      return;
    }
    this.#carry(exchange, upstream, choice, body, settled);
  }

  #carry(
    exchange: Exchange,
    upstream: Outgoing,
    choice: Choice,
    body: NonNullable<ReturnType<typeof framing>>,
    settled: () => void,
  ): void {
    const { request, response, backend } = exchange;
    const { metrics } = this.#parts;
    const { options } = backend;
    let isConnected = false;
    let timedOut = false;
    let answered: IncomingMessage | undefined;
    const counters = metrics.of(backend);
    counters.sessions++;
    upstream.once('socket', (socket) => {
      const connected = (): void => {
        isConnected = true;
        if (body.hasBody) pump(request as IncomingMessage, upstream, (bytes) => (counters.bytesIn += bytes));
      };
      if (!socket.connecting && !isHandshaking(socket)) return connected();
      const timer = setTimeout(() => upstream.destroy(new Error('connect timeout')), options.connectTimeoutMs);
      socket.once(backend.upstream.tls ? 'secureConnect' : 'connect', () => {
        clearTimeout(timer);
        connected();
      });
      socket.once('close', () => clearTimeout(timer));
    });
    upstream.setTimeout(options.serverTimeoutMs, () => {
      timedOut = true;
      upstream.destroy(new Error('server timeout'));
    });
    upstream.once('response', (incoming) => {
      const status = incoming.statusCode ?? 502;
      const headers = this.answerHeaders(exchange, incoming, choice);
      if (!writeHead(response, status, incoming.statusMessage ?? '', headers))
        return void upstream.destroy(new Error('the head of the answer cannot be sent'));
      answered = incoming;
      metrics.responded(backend, status);
      pump(incoming, response as ServerResponse, (bytes) => (counters.bytesOut += bytes));
      incoming.once('error', () => response.destroy());
    });
    upstream.once('close', settled);
    // The request contained no upgrade, so a response 101 is an error of the server.
    upstream.once('upgrade', (_incoming, socket) => {
      socket.destroy();
      upstream.emit('error', new Error('the server switched protocols'));
    });
    upstream.on('error', () => {
      settled();
      // Bytes after a complete response, such as content after a response to HEAD, are an error of the connection only.
      if (answered?.complete === true) return;
      if (answered !== undefined || response.destroyed) {
        response.destroy();
        return;
      }
      // A retry is allowed only if no server has processed the request: the request has no body, and the server had
      // closed the kept connection in the meantime.
      const isStale = upstream.reusedSocket && !body.hasBody && !timedOut && isRepeatable(request.method);
      if (!isConnected && !timedOut) this.#attempt(exchange, body);
      else if (isStale && exchange.tried.size < ATTEMPTS) {
        // The route may have only this server, so the server may be chosen again. The placeholders keep the number of
        // attempts.
        exchange.tried.delete(choice.key);
        exchange.tried.add(`stale ${exchange.tried.size}`).add(`again ${exchange.tried.size}`);
        this.#attempt(exchange, body);
      } else {
        const status = timedOut ? 504 : 502;
        metrics.responded(backend, status);
        sendResponse(response, status, this.#closing(exchange, body.hasBody));
      }
    });
    response.once('close', () => {
      if (!response.writableFinished) upstream.destroy();
    });
    if (!body.hasBody) upstream.end();
  }

  answerHeaders(exchange: Exchange, incoming: IncomingMessage, choice: Choice): RawHeaders {
    return [...returned(incoming.rawHeaders, incoming.headers.connection), ...ownHeaders(exchange, choice)];
  }

  /**
   * Headers that close the client's connection after a request whose body was not read, because the connection is
   * unusable.
   */
  #closing({ request }: Pick<Exchange, 'request'>, hasBody: boolean): RawHeaders {
    return hasBody && !isHttp2(request) ? ['Connection', 'close'] : [];
  }

  #countConnection(backend: Backend, socket: Socket, source: string): boolean {
    const counted = this.#counted.get(socket) ?? new Set<string>();
    if (counted.has(backend.id)) return true;
    this.#counted.set(socket, counted.add(backend.id));
    const isAdmitted = this.#parts.balancing.admitConnection(backend, source, this.#parts.nowMs());
    socket.once('close', () => this.#parts.balancing.connectionClosed(backend, source));
    return isAdmitted;
  }

  #logWhenDone({ target, backend, source }: Omit<Exchange, 'response'>, response: ClientResponse): void {
    const sinceMs = this.#parts.nowMs();
    const { method, host, path, secure } = target;
    response.once('close', () =>
      this.#parts.log.info('request', {
        route: backend.id,
        source,
        method,
        scheme: secure ? 'https' : 'http',
        host,
        path,
        status: response.statusCode,
        ms: Math.round(this.#parts.nowMs() - sinceMs),
      }),
    );
  }
}

const isRepeatable = (method: string | undefined): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'PUT' || method === 'DELETE';

const isHandshaking = (socket: Socket): boolean => 'secureConnecting' in socket && socket.secureConnecting === true;

function once(callback: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    callback();
  };
}

/** Like `pipe`, but counts the bytes. The end of `from` ends `to`. */
function pump(from: NodeJS.ReadableStream, to: NodeJS.WritableStream, count: (bytes: number) => void): void {
  from.on('data', (chunk: Buffer) => {
    count(chunk.length);
    if (!to.write(chunk)) from.pause();
  });
  to.on('drain', () => from.resume());
  from.once('end', () => to.end());
}
