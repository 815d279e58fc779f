import { buildConnector, Pool } from 'undici';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Clock } from '../base/time/clock.ts';
import { type ClientCredentials, type CredentialsProvider, sameTls } from './credentials.ts';
import { ConnectionError } from './errors.ts';
import { SharedStreams } from './informers/shared-streams.ts';

export interface ServerConnectionOptions {
  /** URL `https://host:port` with an optional path prefix. */
  readonly server: string;
  readonly credentials: CredentialsProvider;
  /** Name that the server's certificate must contain, if it differs from the host of `server`. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly log: Log;
  readonly clock: Clock;
  /** Maximum number of connections for requests that are not streams. */
  readonly maxConnections: number;
  /** Maximum time in milliseconds until the response headers, and between two chunks of a body. */
  readonly timeoutMs: number;
}

/** Connections that use the same set of credentials. */
interface Generation {
  readonly credentials: ClientCredentials;
  readonly requests: Pool;
  /** Shared HTTP/2 connection; undefined if the server does not use TLS. */
  readonly shared: SharedStreams | undefined;
  /** Pool with one connection per stream, for servers without HTTP/2. */
  readonly streams: Pool;
}

/**
 * Idle time before the first TCP keep-alive probe. If the peer has disappeared, the kernel closes the connection about
 * 10 s later.
 */
const TCP_KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * HTTPS connections to one API server: a limited keep-alive pool for requests, and a shared HTTP/2 connection for
 * streams. After a change of the credentials, new requests use new connections. Open requests finish on the old
 * connections, so that a renewed certificate does not interrupt watches.
 */
export class ServerConnections {
  readonly #options: ServerConnectionOptions;
  readonly #origin: string;
  #generation: Generation | undefined;
  readonly #closing = new AbortController();

  constructor(options: ServerConnectionOptions) {
    this.#options = options;
    this.#origin = new URL(options.server).origin;
  }

  /** Aborts when this client is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Connections with the current credentials. Throws ConnectionError after `close`. */
  current(): Generation {
    const options = this.#options;
    if (this.#closing.signal.aborted) throw new ConnectionError(options.server, new Error('this client is closed'));
    const credentials = options.credentials();
    const retired = this.#generation;
    if (retired !== undefined && sameTls(retired.credentials, credentials)) return retired;
    const generation = this.#open(credentials);
    this.#generation = generation;
    if (retired !== undefined) {
      options.log.v(2, 'client credentials changed, opening new connections', { server: options.server });
      void this.#retire(retired);
    }
    return generation;
  }

  async close(): Promise<void> {
    this.#closing.abort(new ConnectionError(this.#options.server, new Error('this client is closed')));
    const last = this.#generation;
    this.#generation = undefined;
    if (last === undefined) return;
    last.shared?.destroy();
    await Promise.all([last.requests.destroy(), last.streams.destroy()]);
  }

  #open(credentials: ClientCredentials): Generation {
    const options = this.#options;
    const how = {
      timeout: CONNECT_TIMEOUT_MS,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      rejectUnauthorized: options.insecureSkipTlsVerify !== true,
      minVersion: 'TLSv1.2' as const,
      ...(options.tlsServerName === undefined ? {} : { servername: options.tlsServerName }),
      ...(credentials.ca === undefined ? {} : { ca: credentials.ca }),
      ...(credentials.cert === undefined ? {} : { cert: credentials.cert }),
      ...(credentials.key === undefined ? {} : { key: credentials.key }),
    };
    const connect = buildConnector({ ...how, allowH2: false });
    const shared = { connect, pipelining: 1, keepAliveTimeout: 60_000, allowH2: false } as const;
    const requests = new Pool(this.#origin, {
      ...shared,
      connections: options.maxConnections,
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
    });
    const streams = new Pool(this.#origin, {
      ...shared,
      connections: null,
      headersTimeout: options.timeoutMs,
      bodyTimeout: 0,
    });
    const { clock, timeoutMs } = options;
    const secure = this.#origin.startsWith('https:')
      ? new SharedStreams({
          origin: this.#origin,
          connect: buildConnector({ ...how, allowH2: true }),
          clock,
          timeoutMs,
        })
      : undefined;
    return { credentials, requests, shared: secure, streams };
  }

  async #retire(retired: Generation): Promise<void> {
    retired.shared?.close();
    try {
      await Promise.all([retired.requests.close(), retired.streams.close()]);
    } catch (error) {
      this.#options.log.v(4, 'closing retired connections', { error: messageOf(error) });
    }
  }
}
