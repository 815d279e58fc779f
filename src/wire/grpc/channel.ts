/**
 * A gRPC client over one HTTP/2 connection that reconnects by itself to any endpoint that answers. The first endpoint
 * is preferred: the channel returns to it when it answers again.
 */

import { connect as connectNet, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { UnderWay } from '../../base/concurrency/running-count.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import { encodeHeaders } from '../http2/hpack.ts';
import { Http2Connection } from '../http2/http2-connection.ts';
import { ClientStream, type ClientStreamEvents, UnaryExchange, type UnaryOutcome } from './client-calls.ts';

import { RpcError } from './messages.ts';
import { RpcCode } from './port.ts';

function isSecure(endpoint: URL | undefined): boolean {
  return endpoint?.protocol === 'https:' || endpoint?.protocol === 'unixs:';
}

/**
 * A host and port, or the path of a socket. The path is absolute or relative to the working directory, as in
 * `unix://localhost:2380`.
 */
function targetOf(endpoint: URL): { readonly host: string; readonly port: number } | { readonly path: string } {
  const { protocol } = endpoint;
  if (protocol === 'unix:' || protocol === 'unixs:')
    return { path: decodeURIComponent(`${endpoint.host}${endpoint.pathname}`) };
  return { host: hostOf(endpoint), port: portOfUrl(endpoint) };
}

/** Name or address that the server's certificate must be valid for; localhost for a socket with an absolute path. */
function hostOf(endpoint: URL): string {
  return endpoint.hostname === '' ? 'localhost' : hostOfUrl(endpoint);
}

export interface ChannelOptions {
  /**
   * `https://host:port`, `http://host:port`, `unix:///path`, or `unix://name` for a socket relative to the working
   * directory. `unixs` means TLS over the socket; the server certificate must be valid for `name` without a trailing
   * `:port`, or for localhost if the path is absolute.
   */
  readonly endpoints: readonly string[];
  readonly ca?: string | Buffer | string[];
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  /** Returns the TLS files for each new connection, because they may change. Replaces `ca`, `cert` and `key`. */
  readonly materials?: () => Pick<ChannelOptions, 'ca' | 'cert' | 'key'>;
  /**
   * Accepts any certificate, as etcd does with `--peer-auto-tls`. The connection is then encrypted, but the server is
   * not authenticated.
   */
  readonly anyServer?: boolean;
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /** Longest pause between two connection attempts; 1000 ms by default. */
  readonly lastRetryMs?: number;
  readonly refused?: () => void;
  /** Limit for one incoming message; 512 MiB by default. */
  readonly maxMessageBytes?: number;
  readonly log: Log;
  readonly clock: Clock;
}

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 1000;
/**
 * Retry pause after a rejected certificate. A retry a moment later fails too, and each attempt costs both sides a
 * handshake and a log line.
 */
const REFUSED_RETRY_MS = 3000;
const REFUSED = /\balert\b|certificate|^ERR_TLS/i;
const CONNECT_MS = 5000;
/** Connection failures shorter than this are not logged: a store that is starting answers sooner. */
const REPORT_FAILURE_MS = 10_000;
const KEEP_ALIVE_MS = 10_000;
/** Interval of keep-alive pings when there is another endpoint to switch to. */
const KEEP_ALIVE_OF_SEVERAL_MS = 3_000;
/** Interval of connection attempts to the first endpoint while another endpoint serves. */
const RETURN_MS = 5_000;
/** Time that calls in progress have on a connection that is being replaced. */
const DRAIN_MS = 10_000;
const SWEEP_MS = 500;
const MAX_LEAVING = 8;
/** A connection that the server closes (GOAWAY) sooner than this counts as a failure. */
const SHORT_MS = 500;

export interface Metadata {
  readonly name: string;
  readonly value: string;
}

export interface UnaryOptions {
  readonly metadata?: Metadata | undefined;
  /** Cancels the call: the server is informed, and the call throws RpcError 'cancelled'. */
  readonly signal?: AbortSignal | undefined;
}

interface Waiting {
  readonly deadlineMs: number;
  ready(connection: Http2Connection): void;
  failed(error: RpcError): void;
}

export class Channel {
  readonly #options: ChannelOptions;
  readonly #endpoints: readonly URL[];
  readonly #headers = new Map<string, Buffer>();
  readonly #exchanges = new UnderWay<UnaryExchange>();
  #waiting: Waiting[] = [];
  #connection: Http2Connection | undefined;
  /** Connections that the server is closing (GOAWAY) and that still have calls or streams. */
  readonly #leaving = new Set<Http2Connection>();
  /** Connection that is open but whose server settings have not arrived yet. */
  #greeting: Http2Connection | undefined;
  #socket: Socket | undefined;
  #connecting = false;
  #retry: Timer | undefined;
  #sweep: Timer | undefined;
  #keepAlive: Timer | undefined;
  #return: Timer | undefined;
  #returning: Socket | undefined;
  #failures = 0;
  #failingSinceMs = 0;
  #reportedFailure = false;
  #next = 0;
  #closed = false;
  #lastFailure = 'not connected yet';

  constructor(options: ChannelOptions) {
    this.#options = options;
    if (options.endpoints.length === 0) throw new Error('no endpoints');
    this.#endpoints = options.endpoints.map((endpoint) => new URL(endpoint));
  }

  get connected(): boolean {
    return this.#connection?.available ?? false;
  }

  /**
   * Sends one request and returns its response. Throws RpcError: 'unavailable' if no connection is established in time,
   * or if the connection is lost before the response (the request may then have taken effect), 'deadlineExceeded' after
   * `timeoutMs`.
   */
  unary(path: string, message: Buffer, timeoutMs: number, options: UnaryOptions = {}): Promise<Buffer> {
    const { metadata, signal } = options;
    return new Promise((resolve, reject) => {
      const cancelled = (): RpcError => new RpcError(RpcCode.cancelled, 'the call was cancelled');
      if (signal?.aborted === true) return reject(cancelled());
      let exchange: UnaryExchange | undefined;
      const onAbort = (): void => {
        exchange?.cancel(cancelled());
        reject(cancelled());
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const deadlineMs = this.#options.clock.monotonicMs() + timeoutMs;
      const send = (connection: Http2Connection): void => {
        if (signal?.aborted === true) return;
        const outcome: UnaryOutcome = {
          done: (answer) => {
            this.#exchanges.delete(current);
            signal?.removeEventListener('abort', onAbort);
            if (this.#waiting.length > 0) this.#serveWaiting();
            resolve(answer);
          },
          failed: (error, { untouched }) => {
            this.#exchanges.delete(current);
            // The server refused the call before processing it, so another connection may take it.
            if (untouched && !this.#closed) this.#whenConnected({ deadlineMs, ready: send, failed: reject });
            else reject(error);
          },
        };
        const current = new UnaryExchange(deadlineMs, outcome, this.#options.maxMessageBytes);
        exchange = current;
        this.#exchanges.add(current);
        this.#armSweep();
        current.start(connection, this.#headerBlock(path, metadata), message);
      };
      const connection = this.#connection;
      if (connection?.available) send(connection);
      else this.#whenConnected({ deadlineMs, ready: send, failed: reject });
    });
  }

  /**
   * Opens a stream as soon as there is a connection; `events.ended` is called when the stream ends, or when the wait
   * for a connection fails.
   */
  stream(path: string, events: ClientStreamEvents, metadata?: Metadata): ClientStream {
    const stream = new ClientStream(events, this.#options.maxMessageBytes);
    const ready = (connection: Http2Connection): void => {
      if (!stream.cancelled) stream.start(connection, this.#headerBlock(path, metadata));
    };
    if (this.#connection?.available) ready(this.#connection);
    else {
      this.#whenConnected({ deadlineMs: Number.POSITIVE_INFINITY, ready, failed: (error) => stream.fail(error) });
    }
    return stream;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#retry?.cancel();
    this.#sweep?.cancel();
    this.#keepAlive?.cancel();
    this.#return?.cancel();
    this.#returning?.destroy();
    this.#socket?.destroy();
    this.#connection?.destroy('client is closed');
    this.#greeting?.destroy('client is closed');
    for (const connection of this.#leaving) connection.destroy('client is closed');
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) one.failed(new RpcError(RpcCode.unavailable, 'client is closed'));
  }

  #headerBlock(path: string, metadata: Metadata | undefined): Buffer {
    const authority = this.#endpoints[this.#next]?.host || 'localhost';
    const key = `${authority}|${path}|${metadata === undefined ? '' : `${metadata.name}=${metadata.value}`}`;
    let block = this.#headers.get(key);
    if (block === undefined) {
      block = encodeHeaders([
        { name: ':method', value: 'POST' },
        { name: ':scheme', value: isSecure(this.#endpoints[this.#next]) ? 'https' : 'http' },
        { name: ':path', value: path },
        { name: ':authority', value: authority },
        { name: 'content-type', value: 'application/grpc' },
        { name: 'te', value: 'trailers' },
        ...(metadata === undefined ? [] : [metadata]),
      ]);
      this.#headers.set(key, block);
    }
    return block;
  }

  #whenConnected(waiting: Waiting): void {
    if (this.#closed) {
      waiting.failed(new RpcError(RpcCode.unavailable, 'client is closed'));
      return;
    }
    this.#waiting.push(waiting);
    this.#armSweep();
    // A full connection gets free streams by itself; only a lost connection must be replaced.
    if (this.#connection === undefined || this.#connection.closed) this.#connect();
  }

  #connect(): void {
    if (this.#connecting || this.#closed || this.#retry !== undefined) return;
    this.#connecting = true;
    const endpoint = this.#endpoints[this.#next] as URL;
    const socket = this.#open(endpoint);
    this.#socket = socket;
    const giveUp = this.#options.clock.setTimer(CONNECT_MS, () => socket.destroy(new Error('connection timed out')));
    const failed = (error?: Error): void => {
      giveUp.cancel();
      socket.off('close', failed);
      socket.off('error', failed);
      socket.on('error', () => {});
      socket.destroy();
      this.#connecting = false;
      if ((error as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED') this.#options.refused?.();
      this.#lastFailure = `${endpoint.host}: ${error === undefined ? 'connection closed' : messageOf(error)}`;
      this.#again();
    };
    socket.once('error', failed);
    socket.once('close', failed);
    socket.once(isSecure(endpoint) ? 'secureConnect' : 'connect', () => {
      socket.off('close', failed);
      socket.off('error', failed);
      this.#connected(socket, endpoint, giveUp);
    });
  }

  #open(endpoint: URL): Socket {
    const target = targetOf(endpoint);
    if (!isSecure(endpoint)) return connectNet({ ...target, noDelay: true });
    const host = hostOf(endpoint);
    const { ca, cert, key } = this.#options.materials?.() ?? this.#options;
    const socket = connectTls({
      ...target,
      ALPNProtocols: ['h2'],
      minVersion: this.#options.minVersion ?? 'TLSv1.2',
      ...(isIP(host) === 0 ? { servername: host } : { host }),
      ...(this.#options.anyServer ? { rejectUnauthorized: false } : {}),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    });
    socket.setNoDelay(true);
    return socket;
  }

  /**
   * Calls start only after the server's SETTINGS: a TLS 1.3 server rejects a client certificate after the handshake,
   * and a call lost with the connection before that would have an unknown outcome.
   */
  #connected(socket: Socket, endpoint: URL, giveUp: Timer): void {
    const connection = this.#startHttp2(socket, endpoint);
    this.#greeting = connection;
    connection.ready.then(
      () => {
        giveUp.cancel();
        if (!connection.available) {
          connection.destroy('server is stopping');
          return;
        }
        this.#connecting = false;
        this.#greeting = undefined;
        this.#connection = connection;
        this.#failures = 0;
        this.#armKeepAlive();
        this.#armReturn();
        this.#serveWaiting();
      },
      () => giveUp.cancel(),
    );
  }

  #startHttp2(socket: Socket, endpoint: URL): Http2Connection {
    const openedMs = this.#options.clock.monotonicMs();
    const connection: Http2Connection = new Http2Connection(socket, {
      client: true,
      events: {
        goingAway: () => {
          if (this.#connection !== connection) return;
          this.#connection = undefined;
          this.#leave(connection);
          if (this.#options.clock.monotonicMs() - openedMs < SHORT_MS) {
            this.#again();
            return;
          }
          this.#next = (this.#next + 1) % this.#endpoints.length;
          if (this.#waiting.length > 0) this.#connect();
        },
        closed: (reason) => {
          this.#leaving.delete(connection);
          if (this.#closed || (connection !== this.#connection && connection !== this.#greeting)) return;
          if (connection === this.#connection) this.#connection = undefined;
          else {
            this.#greeting = undefined;
            this.#connecting = false;
          }
          this.#lastFailure = `${endpoint.host}: ${reason}`;
          this.#options.log.v(2, 'connection lost', { endpoint: endpoint.host, reason });
          this.#again();
        },
      },
    });
    connection.start();
    return connection;
  }

  /**
   * Keeps a connection open until its calls end, with a limit on the number of such connections: otherwise, the client
   * would accumulate connections to a server that sends GOAWAY for each call and never closes a connection.
   */
  #leave(connection: Http2Connection): void {
    this.#leaving.add(connection);
    if (this.#leaving.size <= MAX_LEAVING) return;
    const [oldest] = this.#leaving;
    oldest?.destroy('too many connections are going away');
  }

  /** Schedules the next connection attempt to the first endpoint while another endpoint serves. */
  #armReturn(): void {
    this.#return?.cancel();
    this.#return = undefined;
    if (this.#next === 0 || this.#closed) return;
    this.#return = this.#options.clock.setTimer(RETURN_MS, () => this.#tryFirst());
  }

  #tryFirst(): void {
    const [first] = this.#endpoints;
    // Without a connection, a regular attempt is in progress. Its success schedules the next attempt to return.
    if (first === undefined || this.#next === 0 || this.#closed || this.#connection === undefined) return;
    const socket = this.#open(first);
    this.#returning = socket;
    const giveUp = this.#options.clock.setTimer(CONNECT_MS, () => socket.destroy());
    const failed = (): void => {
      giveUp.cancel();
      this.#armReturn();
    };
    socket.on('error', () => {});
    socket.once('close', failed);
    socket.once(isSecure(first) ? 'secureConnect' : 'connect', () => {
      socket.off('close', failed);
      const connection = this.#startHttp2(socket, first);
      // The time limit also applies to the server's SETTINGS.
      connection.ready.then(() => {
        giveUp.cancel();
        this.#moveTo(connection);
      }, failed);
    });
  }

  /**
   * Moves new calls to `connection`. The old connection ends when its calls have their responses; its streams restart
   * on the new connection.
   */
  #moveTo(connection: Http2Connection): void {
    const old = this.#connection;
    if (this.#closed || old === undefined || this.#next === 0) {
      connection.destroy('not needed');
      return;
    }
    if (!connection.available) {
      connection.destroy('server is stopping');
      this.#armReturn();
      return;
    }
    this.#connection = connection;
    this.#next = 0;
    this.#failures = 0;
    this.#options.log.v(2, 'returned to the first endpoint', { endpoint: this.#endpoints[0]?.host });
    const underWay = this.#exchanges.all();
    const deadlineMs = this.#options.clock.monotonicMs() + DRAIN_MS;
    const drain = (): void => {
      const over = this.#closed || this.#options.clock.monotonicMs() >= deadlineMs;
      if (over || !underWay.some((exchange) => this.#exchanges.has(exchange))) old.destroy('another member serves now');
      else this.#options.clock.setTimer(SWEEP_MS, drain);
    };
    drain();
  }

  #serveWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) {
      if (this.#connection?.available) one.ready(this.#connection);
      else this.#waiting.push(one);
    }
  }

  #again(): void {
    this.#next = (this.#next + 1) % this.#endpoints.length;
    this.#failures += 1;
    if (this.#closed || this.#retry !== undefined) return;
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#failures === 1) {
      this.#failingSinceMs = nowMs;
      this.#reportedFailure = false;
    }
    if (!this.#reportedFailure && nowMs - this.#failingSinceMs >= REPORT_FAILURE_MS) {
      this.#reportedFailure = true;
      this.#options.log.warn('store does not answer; retrying', { cause: this.#lastFailure });
    }
    // The first few refusals may happen while a certificate is being replaced.
    const refused = this.#failures > 5 && REFUSED.test(this.#lastFailure);
    const longest = refused ? REFUSED_RETRY_MS : (this.#options.lastRetryMs ?? LAST_RETRY_MS);
    const delay = refused ? longest : Math.min(FIRST_RETRY_MS * 2 ** Math.min(this.#failures - 1, 10), longest);
    this.#retry = this.#options.clock.setTimer(delay, () => {
      this.#retry = undefined;
      if (this.#waiting.length > 0) this.#connect();
    });
  }

  #armSweep(): void {
    if (this.#sweep !== undefined || this.#closed) return;
    this.#sweep = this.#options.clock.setTimer(SWEEP_MS, () => {
      this.#sweep = undefined;
      const now = this.#options.clock.monotonicMs();
      for (const exchange of this.#exchanges.all()) exchange.expire(now);
      const late = this.#waiting.filter((one) => one.deadlineMs <= now);
      this.#waiting = this.#waiting.filter((one) => one.deadlineMs > now);
      for (const one of late)
        one.failed(new RpcError(RpcCode.unavailable, `store is unavailable: ${this.#lastFailure}`));
      if (this.#connection?.available && this.#waiting.length > 0) this.#serveWaiting();
      if (this.#exchanges.size > 0 || this.#waiting.length > 0) this.#armSweep();
    });
  }

  /** Detects a dead peer by an unanswered ping. */
  #armKeepAlive(): void {
    this.#keepAlive?.cancel();
    const pauseMs = this.#endpoints.length > 1 ? KEEP_ALIVE_OF_SEVERAL_MS : KEEP_ALIVE_MS;
    this.#keepAlive = this.#options.clock.setTimer(pauseMs, () => {
      const connection = this.#connection;
      if (connection === undefined || connection.closed) return;
      if (connection.streamCount > 0 && !connection.ping()) connection.destroy('no answer to a ping');
      else this.#armKeepAlive();
    });
  }
}
