/**
 * One TLS port for HTTP/2 and HTTP/1.1. kubectl and client-go use HTTP/2; upgrades (SPDY, WebSocket) and most load
 * generators use HTTP/1.1. A client certificate is requested but optional, because a client may send a token instead.
 */
import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  type SecureServerOptions,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContext, TLSSocket } from 'node:tls';
import { endSocket } from '../../../wire/connections/end-socket.ts';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../../../wire/connections/gate.ts';
import { GatedServer } from '../../../wire/connections/gated-server.ts';
import { refuseMalformed } from '../../../wire/connections/malformed-requests.ts';
import { WebSocketAnswer } from '../../../wire/websocket/websocket-answer.ts';
import type { HttpRequest, HttpResponse, Listener, ListenOptions, TlsMaterial } from '../../port.ts';
import { Http1Message } from './message.ts';
import { TlsConnection } from './tls-connection.ts';
import { contextOf, namedContexts } from './tls-contexts.ts';

/** Default limit for the open streams of one HTTP/2 client. */
const MAX_CONCURRENT_STREAMS = 250;
/**
 * Stream resets that a client may send in a burst, and per second. Rapid reset attacks exceed this (CVE-2023-44487).
 */
const STREAM_RESET_BURST = 1000;
const STREAM_RESET_RATE = 33;
/**
 * Time limit of a TLS handshake, as in upstream. A host whose CPU is busy for seconds must not disconnect waiting
 * clients.
 */
const HANDSHAKE_TIMEOUT_MS = 32_000;
/** Limits for connections. Unauthenticated connections are closed first. */
const LIMITS: GateLimits = {
  authenticated: 8192,
  unauthenticated: 128,
  idleMs: 90_000,
  unauthenticatedIdleMs: 30_000,
  handshakeMs: HANDSHAKE_TIMEOUT_MS,
};
const ERROR_REFUSED_STREAM = 7;
/** Interval at which a stream with an unread body is checked for the end of its response. */
const SENT_CHECK_MS = 20;
/**
 * Status code of the response to a request line with HTTP/0.9 or HTTP/2.0 on an HTTP/1 connection. Node's parser
 * accepts these versions.
 */
const VERSION_NOT_SUPPORTED = 505;

/** Adds `destroyed` to HTTP/2 responses, as HTTP/1.1 responses have it: true when the client has disconnected. */
class Http2Response<Request extends Http2ServerRequest = Http2ServerRequest> extends Http2ServerResponse<Request> {}
Object.defineProperty(Http2Response.prototype, 'destroyed', {
  get(this: Http2ServerResponse): boolean {
    return this.stream.destroyed;
  },
});

/**
 * Tests the class of the request, which depends on the connection. The client can write any version in the request
 * line.
 */
const isHttp2 = (request: unknown): request is Http2ServerRequest => request instanceof Http2ServerRequest;

/** Node's compatibility API of HTTP/2 has all members of HTTP/1.1 requests and responses that the API server uses. */
const requestOf = (request: IncomingMessage | Http2ServerRequest): HttpRequest => request as unknown as HttpRequest;
const responseOf = (response: ServerResponse | Http2ServerResponse | WebSocketAnswer): HttpResponse =>
  response as unknown as HttpResponse;

/**
 * Closes a stream whose response is complete and whose client still sends a body (RFC 9113 §8.1). Browsers read the
 * response of an upload only when the body is sent or the stream is closed. The reset would overtake queued frames of
 * the response, which Go's clients then report as an error, so it is not sent before the last frame.
 */
function closeUnreadBody(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.closed || stream.state.remoteClose === 1) return;
  if (stream.state.localClose === 1) stream.close(constants.NGHTTP2_NO_ERROR);
  else setTimeout(closeUnreadBody, SENT_CHECK_MS, stream);
}

const isHttp1 = (protocol: string): boolean => protocol === 'http/1.1';

export async function listen(options: ListenOptions): Promise<Listener> {
  const listener = new HttpsListener(options);
  await listener.open();
  return listener;
}

/** Settings for both protocols: HTTP/2 takes its settings from this object, HTTP/1.1 takes its timeouts from it. */
function serverSettings(
  options: ListenOptions,
  contextFor: (name: string) => SecureContext | undefined,
): SecureServerOptions & ServerOptions {
  return {
    ...contextOf(options.tls),
    ...(options.tls.named === undefined ? {} : { SNICallback: (name, done) => done(null, contextFor(name)) }),
    allowHTTP1: true,
    ...(options.withoutHttp2 === true ? { ALPNCallback: ({ protocols }) => protocols.find(isHttp1) } : {}),
    Http2ServerResponse: Http2Response,
    requestCert: true,
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    settings: {
      maxConcurrentStreams: options.maxStreams ?? MAX_CONCURRENT_STREAMS,
      maxHeaderListSize: options.maxHeaderBytes,
    },
    streamResetBurst: STREAM_RESET_BURST,
    streamResetRate: STREAM_RESET_RATE,
    headersTimeout: options.headersTimeoutMs,
    // No limit for receiving a whole request. Bodies are limited in size and by the server's own timeout.
    requestTimeout: 0,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.max(500, Math.min(options.headersTimeoutMs / 2, 5_000)),
    maxHeaderSize: options.maxHeaderBytes,
    // Ends a request without a body immediately. Reading the empty body would take a twelfth of the time of a GET.
    optimizeEmptyRequests: true,
    IncomingMessage: Http1Message,
  };
}

class HttpsListener implements Listener {
  readonly #options: ListenOptions;
  readonly #server: Http2SecureServer;
  readonly #gate: ConnectionGate;
  readonly #gated: GatedServer<TLSSocket, TlsConnection>;
  readonly #bySession = new WeakMap<object, TlsConnection>();
  readonly #sockets = new Set<TLSSocket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #closed = Promise.withResolvers<void>();
  #contextFor: (name: string) => SecureContext | undefined;
  #retiring = false;
  #closing = false;
  #port = 0;

  constructor(options: ListenOptions) {
    this.#options = options;
    this.#contextFor = namedContexts(options.tls);
    this.#server = createSecureServer(serverSettings(options, (name) => this.#contextFor(name)));
    this.#gate = new ConnectionGate(options.limits ?? LIMITS);
    this.#gated = new GatedServer(
      this.#server,
      this.#gate,
      (socket: TLSSocket, admitted: GatedConnection) => new TlsConnection(socket, admitted),
    );
    // This listener must run before Node's own listener, which creates the session.
    this.#server.prependListener('secureConnection', (socket) => this.#secured(socket));
    this.#server.on('session', (session) => this.#begun(session));
    this.#server.on('request', (request, response) => {
      const answer = responseOf(response);
      if (isHttp2(request)) this.#requested2(request, answer);
      else this.#requested1(requestOf(request), answer);
    });
    refuseMalformed(this.#server, (socket) => this.#isResponding(socket as TLSSocket));
    this.#server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) =>
      this.#upgraded(request, duplex as TLSSocket, head),
    );
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      const { port, bindAddress: host, sharesPort: reusePort = false } = this.#options;
      this.#server.listen({ port, host, reusePort }, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get port(): number {
    return this.#port;
  }

  updateTls(tls: TlsMaterial): void {
    this.#server.setSecureContext(contextOf(tls));
    this.#contextFor = namedContexts(tls);
  }

  retire(): void {
    this.#retiring = true;
  }

  drain(): void {
    if (this.#closing) return;
    this.#closing = true;
    this.#gate.stop();
    this.#server.close(() => this.#closed.resolve());
    for (const session of this.#sessions) session.close();
    // Node would wait for a connection without any data, because it counts as in use.
    for (const socket of this.#sockets)
      if ((this.#gated.of(socket)?.inFlight ?? 0) === 0 && socket.alpnProtocol !== 'h2') socket.destroy();
  }

  async close(graceMs: number): Promise<void> {
    this.drain();
    const timer = setTimeout(() => {
      for (const session of this.#sessions) session.destroy();
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await this.#closed.promise;
    clearTimeout(timer);
  }

  #secured(socket: TLSSocket): void {
    socket.on('error', () => socket.destroy());
    if (this.#gated.secured(socket) === undefined) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  #begun(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.once('close', () => this.#sessions.delete(session));
    session.on('error', () => session.destroy());
    const connection = this.#gated.named(session.socket);
    if (connection === undefined) {
      session.destroy();
      return;
    }
    connection.session = session;
    this.#bySession.set(session, connection);
  }

  #requested1(request: HttpRequest, response: HttpResponse): void {
    const connection = this.#gated.of(request.socket);
    if (connection === undefined || !connection.admits()) {
      request.destroy();
      return;
    }
    if (request.httpVersionMajor !== 1) {
      response.writeHead(VERSION_NOT_SUPPORTED, { connection: 'close' }).end();
      return;
    }
    connection.inFlight += 1;
    connection.response = response;
    if (this.#retiring) response.setHeader('connection', 'close');
    // `close` is emitted once, so `on` is enough; `once` would allocate another function per request.
    response.on('close', () => {
      connection.inFlight -= 1;
      if (this.#closing && connection.inFlight === 0) request.socket.end();
    });
    this.#options.request(request, response, connection);
  }

  /** Whether a response has started on the connection, or the connection is not admitted. */
  #isResponding(socket: TLSSocket): boolean {
    const connection = this.#gated.of(socket);
    return connection === undefined || (connection.inFlight > 0 && connection.response?.headersSent === true);
  }

  #requested2(request: Http2ServerRequest, response: HttpResponse): void {
    const { stream } = request;
    const { session } = stream;
    const connection = session === undefined ? undefined : this.#bySession.get(session);
    if (connection === undefined || !connection.admits()) {
      stream.close(ERROR_REFUSED_STREAM);
      return;
    }
    if (this.#retiring || this.#options.isLast?.() === true) session?.close();
    connection.inFlight += 1;
    response.on('close', () => {
      connection.inFlight -= 1;
      if (stream.rstCode > 0) connection.streamReset();
    });
    if (!stream.endAfterHeaders) stream.once('finish', () => setImmediate(closeUnreadBody, stream));
    this.#options.request(requestOf(request), response, connection);
  }

  #upgraded(request: IncomingMessage, socket: TLSSocket, head: Buffer): void {
    const connection = this.#gated.of(socket);
    socket.on('error', () => socket.destroy());
    if (connection === undefined || !connection.admits()) {
      socket.destroy();
      return;
    }
    if (request.httpVersionMajor !== 1) {
      endSocket(socket, `HTTP/1.1 ${VERSION_NOT_SUPPORTED} HTTP Version Not Supported\r\nConnection: close\r\n\r\n`);
      return;
    }
    connection.inFlight += 1;
    const inMessages = () => responseOf(new WebSocketAnswer(request, socket, head));
    this.#options.upgrade(request, socket, head, connection, inMessages);
  }
}
