/**
 * One TLS port for HTTP/2 and HTTP/1.1. kubectl and client-go speak h2; upgrades (SPDY, WebSocket) and most load generators come by
 * HTTP/1.1. Client certificates are asked for and never demanded: who has none may still bring a token.
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
import { createSecureContext, type DetailedPeerCertificate, type SecureContext, type TLSSocket } from 'node:tls';
import type {
  ConnectionInfo,
  HttpRequest,
  HttpResponse,
  Listener,
  ListenOptions,
  NamedCertificate,
  TlsMaterial,
} from '../../components/apiserver/port.ts';
import { Http1Message } from './message.ts';
import { WebSocketAnswer } from './websocket-answer.ts';

/** Streams one HTTP/2 client may have open at once, unless said otherwise. */
const MAX_CONCURRENT_STREAMS = 250;
/** Resets a client may burst, then per second: what rapid reset attacks exceed (CVE-2023-44487). */
const STREAM_RESET_BURST = 1000;
const STREAM_RESET_RATE = 33;
/** As upstream's: a host that has no processor for this process for seconds shall not cut off those who wait for their handshake. */
const HANDSHAKE_TIMEOUT_MS = 32_000;
const MAX_CHAIN = 8;
/** To a request that calls itself HTTP/0.9 or HTTP/2.0 on a connection that speaks HTTP/1: Node's parser lets it pass. */
const VERSION_NOT_SUPPORTED = 505;

/** Says, as HTTP/1.1's does, whether anybody is left to answer: Node's own has no `destroyed`. */
class Http2Response<Request extends Http2ServerRequest = Http2ServerRequest> extends Http2ServerResponse<Request> {}
Object.defineProperty(Http2Response.prototype, 'destroyed', {
  get(this: Http2ServerResponse): boolean {
    return this.stream.destroyed;
  },
});

class TlsConnection implements ConnectionInfo {
  readonly remoteAddress: string;
  readonly peerChain: readonly Uint8Array[] | undefined;
  readonly peerRefused: boolean;
  /** Requests of HTTP/1.1 in flight; taken over by an upgrade, it has one that does not end. */
  inFlight = 0;
  constructor(socket: TLSSocket) {
    this.remoteAddress = socket.remoteAddress ?? '';
    const chain = chainOf(socket);
    this.peerChain = socket.authorized ? chain : undefined;
    this.peerRefused = chain !== undefined && !socket.authorized;
  }
}

function chainOf(socket: TLSSocket): Uint8Array[] | undefined {
  const chain: Uint8Array[] = [];
  let current: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (current?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(current.raw);
    const issuer: DetailedPeerCertificate | undefined = current.issuerCertificate;
    current = issuer === current ? undefined : issuer;
  }
  return chain.length === 0 ? undefined : chain;
}

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
    // A request that announces no body has ended as it begins: saying that there is nothing to read takes Node a twelfth of a GET's time.
    optimizeEmptyRequests: true,
    IncomingMessage: Http1Message,
  };
  const server = createSecureServer(settings);
  const connections = new WeakMap<object, TlsConnection>();
  const sockets = new Set<TLSSocket>();
  const sessions = new Set<ServerHttp2Session>();
  let closing = false;
  const describe = (key: object, socket: TLSSocket): TlsConnection => {
    let info = connections.get(key);
    if (info === undefined) {
      info = new TlsConnection(socket);
      connections.set(key, info);
    }
    return info;
  };
  const connectionOf = ({ stream: { session } }: Http2ServerRequest): ConnectionInfo =>
    session === undefined
      ? { remoteAddress: '', peerChain: undefined, peerRefused: false }
      : describe(session, session.socket as TLSSocket);
  server.on('secureConnection', (socket) => {
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  });
  server.on('session', (session) => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
  });
  const requested1 = (request: HttpRequest, response: HttpResponse): void => {
    if (request.httpVersionMajor !== 1) {
      response.writeHead(VERSION_NOT_SUPPORTED, { connection: 'close' }).end();
      return;
    }
    const socket = request.socket as TLSSocket;
    const connection = describe(socket, socket);
    connection.inFlight += 1;
    // Once, as streams close; `once` would cost each request another function.
    response.on('close', () => {
      connection.inFlight -= 1;
      if (closing && connection.inFlight === 0) socket.end();
    });
    options.request(request, response, connection);
  };
  server.on('request', (request, response) => {
    const asHttp1 = request as unknown as HttpRequest;
    const answer = response as unknown as HttpResponse;
    if (!isHttp2(request)) {
      requested1(asHttp1, answer);
      return;
    }
    if (options.isLast?.() === true) request.stream.session?.close();
    options.request(asHttp1, answer, connectionOf(request));
  });
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as TLSSocket;
    socket.on('error', () => socket.destroy());
    if (request.httpVersionMajor !== 1) {
      socket.end(`HTTP/1.1 ${VERSION_NOT_SUPPORTED} HTTP Version Not Supported\r\nConnection: close\r\n\r\n`);
      return;
    }
    const connection = describe(socket, socket);
    connection.inFlight += 1;
    const inMessages = () => new WebSocketAnswer(request, socket, head) as unknown as HttpResponse;
    options.upgrade(request, socket, head, connection, inMessages);
  });
  const closed = Promise.withResolvers<void>();
  const drain = (): void => {
    if (closing) return;
    closing = true;
    server.close(() => closed.resolve());
    for (const session of sessions) session.close();
    // Node counts a connection that has not sent anything yet as one in use, and would wait for it.
    for (const socket of sockets)
      if ((connections.get(socket)?.inFlight ?? 0) === 0 && socket.alpnProtocol !== 'h2') socket.destroy();
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
