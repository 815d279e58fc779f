/**
 * A listener for gRPC and plain HTTP on one port, over TLS with client certificates or in clear text. The first bytes
 * of a connection decide between HTTP/2 and HTTP/1.1.
 */
import { lstat, unlink } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { TLSSocket } from 'node:tls';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { ConnectionGate, type GatedConnection, type GateLimits } from '../connections/gate.ts';
import { GatedServer, type ServedConnection } from '../connections/gated-server.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { PREFACE } from '../http2/http2-frames.ts';
import { PlainCall } from './plain-call.ts';
import { answerHttp1, type PlainRules, type PlainService } from './plain-http.ts';
import type { RpcListener, RpcService } from './port.ts';
import { isGrpc, ServerCall } from './server-call.ts';
import { createTlsFront, type TlsFront, type TlsMaterials, type TlsSource } from './tls-source.ts';

export interface RpcListenerOptions {
  /** An address, or `localhost` (127.0.0.1). `0.0.0.0` and `::` both mean all addresses of both families. */
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  /** Path of a Unix socket, instead of host and port. */
  readonly path?: string;
  /** Undefined means clear text. */
  readonly tls?: TlsMaterials | TlsSource;
  readonly log: Log;
  /** Maximum number of connections and their idle time. */
  readonly limits?: Partial<GateLimits>;
  /** With `tls`: also accepts connections without TLS. */
  readonly alsoInTheClear?: boolean;
  /** False serves only plain HTTP. */
  readonly grpc?: boolean;
  /** Paths of plain HTTP that are served; all by default, no path with an empty set. */
  readonly httpPaths?: ReadonlySet<string>;
  /**
   * Without TLS: the only `Host` header names (without port) for which plain HTTP is served. Protects against DNS
   * rebinding.
   */
  readonly httpHosts?: ReadonlySet<string>;
  /** Maximum number of concurrent calls on a connection. */
  readonly maxStreams?: number;
  /** Limit for one incoming gRPC message; 2 MiB by default. */
  readonly maxMessageBytes?: number;
  /** Interval of pings to a silent peer, and the time after which a peer that does not answer is disconnected. */
  readonly keepAlive?: { readonly intervalMs: number; readonly timeoutMs: number };
  readonly reusePort?: boolean;
}

/** Time limit for the TLS handshake and the first valid bytes of a connection. */
const GREETING_MS = 10_000;
/** First byte of a TLS connection: the record type "handshake" (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 22;
/**
 * Limits of the connection gate. A connection with a client certificate, or without the need for one, counts as
 * authenticated and is never closed because it is idle.
 */
const LIMITS: GateLimits = {
  authenticated: 10_000,
  unauthenticated: 128,
  idleMs: 0,
  unauthenticatedIdleMs: GREETING_MS,
  handshakeMs: GREETING_MS,
};
/** Longest delay of a Node timer. */
const LONGEST_TIMER_MS = 0x7fff_ffff;
/** Poll interval for calls in progress while the listener drains. */
const DRAIN_MS = 5;

export function createRpcListener(options: RpcListenerOptions): RpcListener {
  return new Listener(options);
}

/** A connection of any protocol. */
class Served implements ServedConnection {
  readonly socket: Socket;
  readonly gated: GatedConnection;
  /** Number of HTTP/1.1 requests in progress. */
  inFlight = 0;
  http2: Http2Connection | undefined;

  constructor(socket: Socket, gated: GatedConnection) {
    this.socket = socket;
    this.gated = gated;
    gated.greeted();
    if (socket instanceof TLSSocket && socket.authorized) gated.authenticated('certificate');
  }

  busy(): boolean {
    return this.inFlight > 0 || (this.http2?.streamCount ?? 0) > 0;
  }

  close(reason: string): void {
    if (this.http2 === undefined) this.socket.destroy();
    else this.http2.destroy(reason);
  }
}

class Listener implements RpcListener {
  readonly #options: RpcListenerOptions;
  readonly #log: Log;
  readonly #rules: PlainRules;
  readonly #connections = new Set<Http2Connection>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  /** Set once the listener has stopped accepting connections. */
  #closed: Promise<void> | undefined;
  #service: RpcService | undefined;
  #keepAlive: NodeJS.Timeout | undefined;
  #gate: ConnectionGate | undefined;
  #gated: GatedServer<Socket, Served> | undefined;
  readonly #http = createHttpServer({ maxHeaderSize: 16 << 10, requestTimeout: 30_000, headersTimeout: GREETING_MS });

  constructor(options: RpcListenerOptions) {
    this.#options = options;
    this.#log = options.log.named('grpc');
    this.#rules = { paths: options.httpPaths, hosts: options.httpHosts };
    this.#http.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { socket } = request;
      const plain = this.#plain();
      const served = this.#gated?.of(socket);
      if (served !== undefined) {
        served.inFlight += 1;
        response.once('close', () => {
          served.inFlight -= 1;
        });
      }
      if (plain === undefined) response.destroy();
      else
        answerHttp1(request, response, plain, {
          secure: socket instanceof TLSSocket,
          commonName: () => commonNameOf(socket),
        });
    });
  }

  async listen(service: RpcService): Promise<{ readonly host: string; readonly port: number }> {
    this.#service = service;
    const { host, port, path, tls, limits } = this.#options;
    const front =
      tls === undefined
        ? undefined
        : await createTlsFront(tls, GREETING_MS, this.#log, (socket) => {
            if (this.#gated?.secured(socket) === undefined) socket.destroy();
            else this.#greet(socket);
          });
    const server = createNetServer({ noDelay: true }, (socket) => {
      // The connection gate has already admitted this connection.
      if (front === undefined) this.#greet(socket);
      else if (this.#options.alsoInTheClear === true) this.#detectTls(socket, () => shake(socket, front));
      else shake(socket, front);
    });
    const gate = new ConnectionGate({ ...LIMITS, ...limits });
    this.#gate = gate;
    this.#gated = new GatedServer(server, gate, (socket: Socket, admitted) => new Served(socket, admitted));
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    const shake = (socket: Socket, { server: tlsServer, refresh }: TlsFront): void => {
      const begin = (): void => {
        if (!socket.destroyed) tlsServer.emit('connection', socket);
      };
      const fresh = refresh();
      if (fresh === undefined) begin();
      else fresh.then(begin, () => socket.destroy());
    };
    // The HTTP server does not listen itself; connections are passed to it. It enforces its time limits only after the
    // event 'listening'.
    this.#http.emit('listening');
    this.#server = server;
    if (path === undefined) await this.#bind(server, host, port);
    else {
      await removeStaleSocket(path);
      await bindTo(server, { path }, path);
    }
    server.on('error', (error) => this.#log.error('listener failed', { cause: error }));
    this.#watchOverSilence();
    const address = server.address();
    return { host: path ?? host, port: typeof address === 'object' && address !== null ? address.port : port };
  }

  /** A wildcard address of either family listens on both families, as in Go, if the host has both. */
  async #bind(server: Server, host: string, port: number): Promise<void> {
    const reusePort = this.#options.reusePort ?? false;
    const name = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const wildcard = host === '0.0.0.0' || host === '::';
    try {
      const exact = host === 'localhost' ? '127.0.0.1' : host;
      await bindTo(server, { host: wildcard ? '::' : exact, port, reusePort }, name);
    } catch (error) {
      const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined)?.code : undefined;
      if (!wildcard || (cause !== 'EAFNOSUPPORT' && cause !== 'EADDRNOTAVAIL')) throw error;
      await bindTo(server, { host: '0.0.0.0', port, reusePort }, name);
    }
  }

  /**
   * Pings all connections periodically. A connection gets its next ping only after the time limit of the previous ping,
   * so that the check after the time limit never sees the state of a later ping.
   */
  #watchOverSilence(): void {
    const { keepAlive } = this.#options;
    if (keepAlive === undefined || keepAlive.intervalMs <= 0) return;
    const pinged = new Set<Http2Connection>();
    const check = (connections: readonly Http2Connection[]): void => {
      for (const connection of connections) {
        pinged.delete(connection);
        if (connection.awaitsPing) connection.destroy('no answer to a ping');
      }
    };
    const ping = (): void => {
      const connections = [...this.#connections].filter((connection) => !pinged.has(connection));
      for (const connection of connections) connection.ping();
      if (keepAlive.timeoutMs <= 0 || connections.length === 0) return;
      for (const connection of connections) pinged.add(connection);
      setTimeout(() => check(connections), Math.min(keepAlive.timeoutMs, LONGEST_TIMER_MS)).unref();
    };
    this.#keepAlive = setInterval(ping, Math.min(keepAlive.intervalMs, LONGEST_TIMER_MS)).unref();
  }

  async drain(mostMs: number): Promise<void> {
    this.#retire();
    const until = performance.now() + mostMs;
    while (this.#connections.values().some(({ callCount }) => callCount > 0) && performance.now() < until)
      await sleep(DRAIN_MS);
  }

  /** Stops accepting connections and calls. */
  #retire(): void {
    const server = this.#server;
    if (server === undefined || this.#closed !== undefined) return;
    clearInterval(this.#keepAlive);
    this.#gate?.stop();
    this.#closed = new Promise((resolve) => {
      server.close(() => resolve());
    });
    for (const connection of this.#connections) connection.goAway('server is stopping');
  }

  async close(graceMs: number): Promise<void> {
    if (this.#server === undefined) return;
    this.#retire();
    this.#server = undefined;
    this.#http.close();
    this.#http.closeAllConnections();
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await this.#closed;
    this.#closed = undefined;
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
      const served = this.#gated?.of(socket) ?? this.#gated?.secured(socket);
      if (served === undefined) {
        socket.destroy();
        return;
      }
      // Without client certificates, every client of the protocol counts as authenticated.
      served.gated.authenticated('token');
      // Over TLS, a client of plain HTTP may have negotiated HTTP/2.
      if (isHttp2 && this.#options.grpc === false && !(socket instanceof TLSSocket)) socket.destroy();
      else if (isHttp2) this.#serve(socket, head, served);
      else {
        socket.pause();
        socket.unshift(head);
        this.#http.emit('connection', socket);
        socket.resume();
      }
    };
    socket.on('data', onData);
    socket.resume();
  }

  /** Detects TLS by the first byte of a connection: every clear-text protocol here starts with a letter. */
  #detectTls(socket: Socket, shake: () => void): void {
    const timer = setTimeout(() => socket.destroy(), GREETING_MS);
    socket.once('close', () => clearTimeout(timer));
    socket.once('data', (head: Buffer) => {
      clearTimeout(timer);
      socket.pause();
      socket.unshift(head);
      if (head[0] === TLS_HANDSHAKE) shake();
      else {
        this.#greet(socket);
      }
    });
    socket.resume();
  }

  #plain(): PlainService | undefined {
    const service = this.#service;
    return service === undefined ? undefined : { service, rules: this.#rules, log: this.#log };
  }

  #serve(socket: Socket, head: Buffer, served: Served): void {
    const plain = this.#plain();
    // Close before sending SETTINGS: the client then knows that no call was processed.
    if (plain === undefined || this.#closed !== undefined) {
      socket.destroy();
      return;
    }
    const peer = { secure: socket instanceof TLSSocket, commonName: () => peerCommonName() };
    let commonName: string | undefined;
    const peerCommonName = (): string => {
      commonName ??= commonNameOf(socket);
      return commonName;
    };
    const connection: Http2Connection = new Http2Connection(socket, {
      client: false,
      ...(this.#options.maxStreams === undefined ? {} : { maxStreams: this.#options.maxStreams }),
      events: {
        opened: (stream, fields) =>
          this.#options.grpc !== false && isGrpc(fields)
            ? new ServerCall(stream, fields, plain.service, this.#log, peerCommonName, this.#options.maxMessageBytes)
            : new PlainCall(stream, fields, plain, peer),
        goingAway: () => {},
        closed: (reason) => {
          this.#connections.delete(connection);
          this.#log.v(6, 'connection closed', { reason });
        },
      },
    });
    served.http2 = connection;
    this.#connections.add(connection);
    connection.start(head);
  }
}

function bindTo(
  server: Server,
  where: { readonly path: string } | { readonly host: string; readonly port: number; readonly reusePort: boolean },
  name: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const code = error.code === 'EADDRINUSE' ? 'address-in-use' : 'unavailable';
      const why = error.code === 'EADDRINUSE' ? 'the address is in use by another process' : messageOf(error);
      reject(new CodedError(code, `cannot listen on ${name}: ${why}`, { cause: error }));
    };
    server.once('error', failed);
    server.listen(where, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

/**
 * Removes the socket file that a killed process has left. A process that still listens loses its socket too, as in
 * etcd.
 */
async function removeStaleSocket(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found?.isSocket() === true) await unlink(path);
}

/**
 * Common name of a client certificate that was verified against the configured issuers; '' otherwise. If there are
 * several names, the last one is used.
 */
function commonNameOf(socket: Socket): string {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return '';
  // Node returns {} if the peer sent no certificate, and a list if the subject has several names.
  const names: string | readonly string[] | undefined = socket.getPeerCertificate().subject?.CN;
  return (typeof names === 'string' ? names : names?.at(-1)) ?? '';
}
