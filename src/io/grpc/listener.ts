/**
 * Takes connections, over TLS with client certificates or in the clear, and serves gRPC and plain HTTP on one port. The first
 * bytes of a connection tell HTTP/2 from HTTP/1.1.
 */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, TLSSocket } from 'node:tls';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { RpcListener, RpcService } from '../../components/etcd/port.ts';
import { Http2Connection } from './http2-connection.ts';
import { PREFACE } from './http2-frames.ts';
import { ServerCall } from './server-call.ts';

export interface TlsMaterials {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** Issuers of client certificates. With it, a client without a valid certificate is refused. */
  readonly ca?: string | Buffer;
}

export interface RpcListenerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Undefined: without TLS. */
  readonly tls?: TlsMaterials;
  readonly log: Log;
  /** Connections at once; 10,000 by default. */
  readonly maxConnections?: number;
}

/** A connection that has not said anything sensible by then is closed. */
const GREETING_MS = 10_000;

export function createRpcListener(options: RpcListenerOptions): RpcListener {
  return new Listener(options);
}

class Listener implements RpcListener {
  readonly #options: RpcListenerOptions;
  readonly #log: Log;
  readonly #connections = new Set<Http2Connection>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #service: RpcService | undefined;
  readonly #http = createHttpServer({ maxHeaderSize: 16 << 10, requestTimeout: 30_000, headersTimeout: GREETING_MS });

  constructor(options: RpcListenerOptions) {
    this.#options = options;
    this.#log = options.log.named('grpc');
    this.#http.on('request', (request: IncomingMessage, response: ServerResponse) => this.#plain(request, response));
  }

  async listen(service: RpcService): Promise<{ readonly host: string; readonly port: number }> {
    this.#service = service;
    const { host, port, tls, maxConnections } = this.#options;
    const accept = (socket: Socket): void => this.#greet(socket);
    const server =
      tls === undefined
        ? createNetServer({ noDelay: true }, accept)
        : createTlsServer(
            {
              noDelay: true,
              cert: tls.cert,
              key: tls.key,
              ALPNProtocols: ['h2', 'http/1.1'],
              minVersion: 'TLSv1.2',
              handshakeTimeout: GREETING_MS,
              ...(tls.ca === undefined ? {} : { ca: tls.ca, requestCert: true, rejectUnauthorized: true }),
            },
            accept,
          );
    server.maxConnections = maxConnections ?? 10_000;
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => socket.destroy());
    });
    server.on('tlsClientError', (error: Error, socket: TLSSocket) => {
      this.#log.v(2, 'connection refused', { client: socket.remoteAddress, cause: error.message });
      socket.destroy();
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        const code = error.code === 'EADDRINUSE' ? 'address-in-use' : 'unavailable';
        const why = error.code === 'EADDRINUSE' ? 'the address is in use by another process' : messageOf(error);
        reject(new CodedError(code, `cannot listen on ${host}:${port}: ${why}`, { cause: error }));
      });
      server.listen(port, host, resolve);
    });
    server.on('error', (error) => this.#log.error('listener failed', { cause: error }));
    const address = server.address();
    return { host, port: typeof address === 'object' && address !== null ? address.port : port };
  }

  async close(graceMs: number): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    this.#http.closeAllConnections();
    for (const connection of this.#connections) connection.goAway('server is stopping');
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
  }

  #greet(socket: Socket): void {
    socket.on('error', () => socket.destroy());
    const timer = setTimeout(() => socket.destroy(), GREETING_MS);
    socket.once('close', () => clearTimeout(timer));
    let head: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
      const known = Math.min(head.length, PREFACE.length);
      const isHttp2 = head.compare(PREFACE, 0, known, 0, known) === 0;
      if (isHttp2 && head.length < PREFACE.length) return;
      clearTimeout(timer);
      socket.off('data', onData);
      if (isHttp2) this.#serve(socket, head);
      else {
        socket.pause();
        socket.unshift(head);
        this.#http.emit('connection', socket);
        socket.resume();
      }
    };
    socket.on('data', onData);
  }

  #serve(socket: Socket, head: Buffer): void {
    const service = this.#service;
    if (service === undefined) {
      socket.destroy();
      return;
    }
    let commonName: string | undefined;
    const peerCommonName = (): string => {
      commonName ??= commonNameOf(socket);
      return commonName;
    };
    const connection: Http2Connection = new Http2Connection(socket, {
      client: false,
      events: {
        opened: (stream, fields) => new ServerCall(stream, fields, service, this.#log, peerCommonName),
        goingAway: () => {},
        closed: (reason) => {
          this.#connections.delete(connection);
          this.#log.v(6, 'connection closed', { reason });
        },
      },
    });
    this.#connections.add(connection);
    connection.start(head);
  }

  #plain(request: IncomingMessage, response: ServerResponse): void {
    const path = (request.url ?? '/').split('?')[0] as string;
    const service = this.#service;
    if (service === undefined) {
      response.destroy();
      return;
    }
    service.http(request.method ?? 'GET', path).then(
      ({ status, contentType, body }) => {
        response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
        response.end(request.method === 'HEAD' ? undefined : body);
      },
      (error: unknown) => {
        this.#log.error('request failed', { path, cause: messageOf(error) });
        response.writeHead(500).end();
      },
    );
  }
}

/** The common name of the client's certificate when it was verified against our issuers; '' otherwise. The last of several counts. */
function commonNameOf(socket: Socket): string {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return '';
  // Node answers {} where the peer showed no certificate, and a list where the subject has several names.
  const names: string | readonly string[] | undefined = socket.getPeerCertificate().subject?.CN;
  return (typeof names === 'string' ? names : names?.at(-1)) ?? '';
}
