/**
 * One TLS port for HTTP/2 and HTTP/1.1. kubectl and client-go speak h2; upgrades (SPDY, WebSocket) and most load
 * generators come by HTTP/1.1. Client certificates are asked for and never demanded: who has none may still bring a
 * token.
 */
import type { IncomingMessage, ServerOptions } from 'node:http';
import {
  createSecureServer,
  Http2ServerRequest,
  Http2ServerResponse,
  type SecureServerOptions,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../../base/connections/gate.ts';
import { GatedServer } from '../../base/connections/gated-server.ts';
import type {
  HttpRequest,
  HttpResponse,
  Listener,
  ListenOptions,
  NamedCertificate,
  TlsMaterial,
} from '../../components/apiserver/port.ts';
import { Http1Message } from './message.ts';
import { TlsConnection } from './tls-connection.ts';
import { WebSocketAnswer } from './websocket-answer.ts';

/** Streams one HTTP/2 client may have open at once, unless said otherwise. */
const MAX_CONCURRENT_STREAMS = 250;
/** Resets a client may burst, then per second: what rapid reset attacks exceed (CVE-2023-44487). */
const STREAM_RESET_BURST = 1000;
const STREAM_RESET_RATE = 33;
/**
 * As upstream's: a host that has no processor for this process for seconds shall not cut off those who wait for their
 * handshake.
 */
const HANDSHAKE_TIMEOUT_MS = 32_000;
/** Connections at once. Those of clients without an identity are closed first. */
const LIMITS: GateLimits = {
  authenticated: 8192,
  unauthenticated: 128,
  idleMs: 90_000,
  unauthenticatedIdleMs: 30_000,
  handshakeMs: HANDSHAKE_TIMEOUT_MS,
};
const ERROR_REFUSED_STREAM = 7;
/**
 * To a request that calls itself HTTP/0.9 or HTTP/2.0 on a connection that speaks HTTP/1: Node's parser lets it pass.
 */
const VERSION_NOT_SUPPORTED = 505;

/** Says, as HTTP/1.1's does, whether anybody is left to answer: Node's own has no `destroyed`. */
class Http2Response<Request extends Http2ServerRequest = Http2ServerRequest> extends Http2ServerResponse<Request> {}
Object.defineProperty(Http2Response.prototype, 'destroyed', {
  get(this: Http2ServerResponse): boolean {
    return this.stream.destroyed;
  },
});

/** What a request says of its version is the client's word; what it came by is not. */
const isHttp2 = (request: unknown): request is Http2ServerRequest => request instanceof Http2ServerRequest;

const contextOf = (tls: TlsMaterial, { certificate, key }: Pick<NamedCertificate, 'certificate' | 'key'> = tls) => ({
  cert: certificate,
  key,
  ca: [...tls.clientAuthorities],
  minVersion: tls.minVersion ?? ('TLSv1.2' as const),
  ...(tls.ciphers === undefined ? {} : { ciphers: tls.ciphers }),
  ...(tls.curves === undefined ? {} : { ecdhCurve: tls.curves }),
});

/** What is shown to whom by the name they ask for: the name itself before one that it only fits. */
function namedContexts(tls: TlsMaterial): (name: string) => SecureContext | undefined {
  const contexts = new Map<string, SecureContext>();
  for (const named of tls.named ?? []) {
    const context = createSecureContext(contextOf(tls, named));
    for (const name of named.names) if (!contexts.has(name)) contexts.set(name, context);
  }
  return (asked) => {
    const name = asked.toLowerCase();
    return contexts.get(name) ?? contexts.get(name.replace(/^[^.]*/, '*'));
  };
}

const isHttp1 = (protocol: string): boolean => protocol === 'http/1.1';

export async function listen(options: ListenOptions): Promise<Listener> {
  // Both halves read the same object: HTTP/2 its settings, HTTP/1.1 its timeouts.
  let contextFor = namedContexts(options.tls);
  const settings: SecureServerOptions & ServerOptions = {
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
    // A watch's request is complete with its header; bodies are bounded in size and by the server's own request time.
    requestTimeout: 0,
    keepAliveTimeout: options.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.max(500, Math.min(options.headersTimeoutMs / 2, 5_000)),
    maxHeaderSize: options.maxHeaderBytes,
    // A request that announces no body has ended as it begins: saying that there is nothing to read takes Node a
    // twelfth of a GET's time.
    optimizeEmptyRequests: true,
    IncomingMessage: Http1Message,
  };
  const server = createSecureServer(settings);
  const gate = new ConnectionGate(options.limits ?? LIMITS);
  const gated = new GatedServer(
    server,
    gate,
    (socket: TLSSocket, admitted: GatedConnection) => new TlsConnection(socket, admitted),
  );
  const bySession = new WeakMap<object, TlsConnection>();
  const sockets = new Set<TLSSocket>();
  const sessions = new Set<ServerHttp2Session>();
  let closing = false;
  // Before Node's own listener, which makes the session.
  server.prependListener('secureConnection', (socket) => {
    socket.on('error', () => socket.destroy());
    if (gated.secured(socket) === undefined) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
    const connection = gated.named(session.socket);
    if (connection === undefined) {
      session.destroy();
      return;
    }
    connection.session = session;
    bySession.set(session, connection);
  });
  const requested1 = (request: HttpRequest, response: HttpResponse): void => {
    const connection = gated.of(request.socket);
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
    // Once, as streams close; `once` would cost each request another function.
    response.on('close', () => {
      connection.inFlight -= 1;
      if (closing && connection.inFlight === 0) request.socket.end();
    });
    options.request(request, response, connection);
  };
  const requested2 = (request: Http2ServerRequest, response: HttpResponse): void => {
    const { stream } = request;
    const { session } = stream;
    const connection = session === undefined ? undefined : bySession.get(session);
    if (connection === undefined || !connection.admits()) {
      stream.close(ERROR_REFUSED_STREAM);
      return;
    }
    if (options.isLast?.() === true) session?.close();
    connection.inFlight += 1;
    response.on('close', () => {
      connection.inFlight -= 1;
      if (stream.rstCode > 0) connection.streamReset();
    });
    options.request(request as unknown as HttpRequest, response, connection);
  };
  server.on('request', (request, response) => {
    const answer = response as unknown as HttpResponse;
    if (isHttp2(request)) requested2(request, answer);
    else requested1(request as unknown as HttpRequest, answer);
  });
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as TLSSocket;
    const connection = gated.of(socket);
    socket.on('error', () => socket.destroy());
    if (connection === undefined || !connection.admits()) {
      socket.destroy();
      return;
    }
    if (request.httpVersionMajor !== 1) {
      socket.end(`HTTP/1.1 ${VERSION_NOT_SUPPORTED} HTTP Version Not Supported\r\nConnection: close\r\n\r\n`);
      return;
    }
    connection.inFlight += 1;
    const inMessages = () => new WebSocketAnswer(request, socket, head) as unknown as HttpResponse;
    options.upgrade(request, socket, head, connection, inMessages);
  });
  const closed = Promise.withResolvers<void>();
  const drain = (): void => {
    if (closing) return;
    closing = true;
    gate.stop();
    server.close(() => closed.resolve());
    for (const session of sessions) session.close();
    // Node counts a connection that has not sent anything yet as one in use, and would wait for it.
    for (const socket of sockets)
      if ((gated.of(socket)?.inFlight ?? 0) === 0 && socket.alpnProtocol !== 'h2') socket.destroy();
  };
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    const { port, bindAddress: host, sharesPort: reusePort = false } = options;
    server.listen({ port, host, reusePort }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  return {
    port: (server.address() as AddressInfo).port,
    updateTls: (tls) => {
      server.setSecureContext(contextOf(tls));
      contextFor = namedContexts(tls);
    },
    drain,
    close: async (graceMs) => {
      drain();
      const timer = setTimeout(() => {
        for (const session of sessions) session.destroy();
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      await closed.promise;
      clearTimeout(timer);
    },
  };
}
