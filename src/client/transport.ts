import { buildConnector, Pool } from 'undici';
import { ApiError, type Status } from '../api/meta/status.ts';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import { type ClientCredentials, type CredentialsProvider, sameTls } from './credentials.ts';
import { ConnectionError } from './errors.ts';

/**
 * HTTPS to one API server: two keep-alive pools, one bounded for requests, one for streams, which each hold a
 * connection for as long as they last. When the credentials change, new connections use the new ones, requests under
 * way finish on the old ones, and streams are cut so that they come back under the new identity.
 */
export interface TransportOptions {
  /** `https://host:port`, with an optional path prefix. */
  readonly server: string;
  readonly credentials: CredentialsProvider;
  /** Asked before each request; wins over `credentials().token`. */
  readonly bearerToken?: () => Promise<string | undefined>;
  /** Name to expect in the server's certificate when it differs from the host of `server`. */
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  readonly userAgent: string;
  readonly log: Log;
  readonly clock: Clock;
  /** Connections for requests that are not streams. */
  readonly maxConnections: number;
  /** Milliseconds until the head of an answer, and between two pieces of a body. */
  readonly timeoutMs: number;
}

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

export interface HttpStream {
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** Sends and parses the JSON answer. Throws `ApiError`; when `signal` aborts, its reason. */
  json(request: HttpRequest): Promise<unknown>;
  stream(request: HttpRequest): Promise<HttpStream>;
  close(): Promise<void>;
}

/** Detects a peer that vanished without a word: first probe after this long idle; the kernel then needs about 10 s. */
const TCP_KEEP_ALIVE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** A server that sheds load says when to come back; client-go tries as often. */
const MAX_RETRIES_AFTER = 10;
const MAX_RETRY_AFTER_SECONDS = 30;
/** The largest error body that is read in search of a Status. */
const MAX_ERROR_BYTES = 1 << 20;

interface Generation {
  readonly credentials: ClientCredentials;
  readonly requests: Pool;
  readonly streams: Pool;
  readonly rotated: AbortController;
}

export function createTransport(options: TransportOptions): Transport {
  const { log, clock } = options;
  const server = new URL(options.server);
  const prefix = server.pathname.replace(/\/+$/, '');
  let generation: Generation | undefined;
  let closed = false;

  const open = (credentials: ClientCredentials): Generation => {
    const connect = buildConnector({
      allowH2: false,
      timeout: CONNECT_TIMEOUT_MS,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      rejectUnauthorized: options.insecureSkipTlsVerify !== true,
      minVersion: 'TLSv1.2',
      ...(options.tlsServerName === undefined ? {} : { servername: options.tlsServerName }),
      ...(credentials.ca === undefined ? {} : { ca: credentials.ca }),
      ...(credentials.cert === undefined ? {} : { cert: credentials.cert }),
      ...(credentials.key === undefined ? {} : { key: credentials.key }),
    });
    const shared = { connect, pipelining: 1, keepAliveTimeout: 60_000, allowH2: false } as const;
    const requests = new Pool(server.origin, {
      ...shared,
      connections: options.maxConnections,
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
    });
    const streams = new Pool(server.origin, {
      ...shared,
      connections: null,
      headersTimeout: options.timeoutMs,
      bodyTimeout: 0,
    });
    return { credentials, requests, streams, rotated: new AbortController() };
  };

  const current = (): Generation => {
    if (closed) throw new ConnectionError(options.server, new Error('this client is closed'));
    const credentials = options.credentials();
    if (generation !== undefined && sameTls(generation.credentials, credentials)) return generation;
    const retired = generation;
    generation = open(credentials);
    if (retired !== undefined) {
      log.v(2, 'client credentials changed, opening new connections', { server: options.server });
      retired.rotated.abort(new ConnectionError(options.server, new Error('client credentials changed')));
      void retire(retired);
    }
    return generation;
  };

  const retire = async (retired: Generation): Promise<void> => {
    try {
      await Promise.all([retired.requests.close(), retired.streams.close()]);
    } catch (error) {
      log.v(4, 'closing retired connections', { error: messageOf(error) });
    }
  };

  const headersFor = async (request: HttpRequest): Promise<Record<string, string>> => {
    const token = (await options.bearerToken?.()) ?? options.credentials().token;
    return {
      'user-agent': options.userAgent,
      accept: request.accept ?? 'application/json',
      ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
      ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
    };
  };

  const once = async (request: HttpRequest, kind: 'requests' | 'streams', encoded: string | null) => {
    const headers = await headersFor(request);
    const { [kind]: pool, rotated } = current();
    const signals = [
      ...(request.signal === undefined ? [] : [request.signal]),
      ...(kind === 'streams' ? [rotated.signal] : []),
    ];
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    try {
      return await pool.request({
        method: request.method,
        path: prefix + request.path,
        headers,
        body: encoded,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      throw failure(request, error);
    }
  };

  /** The caller's own abort is passed on as it is; everything else is a broken connection. */
  const failure = (request: HttpRequest, error: unknown): unknown => {
    if (request.signal?.aborted === true) return request.signal.reason;
    if (error instanceof ApiError) return error;
    return new ConnectionError(options.server, error);
  };

  const send = async (request: HttpRequest, kind: 'requests' | 'streams') => {
    const encoded = request.body === undefined ? null : JSON.stringify(request.body);
    const startedMs = clock.monotonicMs();
    for (let attempt = 0; ; attempt++) {
      let answer: Awaited<ReturnType<typeof once>>;
      try {
        answer = await once(request, kind, encoded);
      } catch (error) {
        // A kept-alive connection may be closed by the server in the moment it is reused; reading twice does no harm.
        if (attempt === 0 && request.method === 'GET' && error instanceof ConnectionError && isReset(error)) continue;
        throw error;
      }
      if (log.enabled(6)) {
        log.v(6, `${request.method} ${request.path}`, {
          code: answer.statusCode,
          ms: Math.round(clock.monotonicMs() - startedMs),
        });
      }
      if (answer.statusCode < 300) return answer;
      const error = await readError(request, answer.statusCode, answer.body);
      const waitSeconds = retryAfterSeconds(answer.statusCode, answer.headers['retry-after']);
      if (waitSeconds === undefined || attempt >= MAX_RETRIES_AFTER) throw error;
      log.v(4, 'server asks to come back later', { path: request.path, seconds: waitSeconds });
      await sleep(clock, waitSeconds * 1000, request.signal);
    }
  };

  const readError = async (request: HttpRequest, code: number, body: AsyncIterable<Uint8Array>): Promise<ApiError> => {
    let text: string;
    try {
      text = await readLimited(body, MAX_ERROR_BYTES);
    } catch (error) {
      if (request.signal?.aborted === true) throw request.signal.reason;
      text = messageOf(error);
    }
    return ApiError.fromStatus(statusIn(text) ?? { message: text.trim() || `HTTP ${code}` }, code);
  };

  return {
    async json(request) {
      const answer = await send(request, 'requests');
      let text: string;
      try {
        text = await answer.body.text();
      } catch (error) {
        throw failure(request, error);
      }
      try {
        return text === '' ? undefined : parseJson(text);
      } catch (error) {
        throw new ConnectionError(
          options.server,
          new Error(`${request.method} ${request.path}: the answer is not JSON: ${messageOf(error)}`),
        );
      }
    },
    async stream(request) {
      const answer = await send(request, 'streams');
      const type = answer.headers['content-type'];
      return {
        contentType: typeof type === 'string' ? type : '',
        body: guarded(answer.body, (error) => failure(request, error)),
      };
    },
    async close() {
      closed = true;
      const last = generation;
      generation = undefined;
      if (last === undefined) return;
      last.rotated.abort(new ConnectionError(options.server, new Error('this client is closed')));
      await Promise.all([last.requests.destroy(), last.streams.destroy()]);
    },
  };
}

/** Waits on `clock`; rejects with the signal's reason as soon as it aborts. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

async function* guarded(
  body: AsyncIterable<Uint8Array>,
  translate: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw translate(error);
  }
}

async function readLimited(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function statusIn(text: string): Partial<Status> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const parsed: Partial<Status> = JSON.parse(text);
    if (parsed.kind === 'Status') return parsed;
  } catch {
    // Not JSON: the text itself is the message.
  }
  return undefined;
}

/** Only an answer that both sheds load and names a time is retried; other failures are the caller's to judge. */
function retryAfterSeconds(code: number, header: string | string[] | undefined): number | undefined {
  if (code !== 429 && code < 500) return undefined;
  if (typeof header !== 'string' || !/^\d{1,6}$/.test(header)) return undefined;
  return Math.min(Number(header), MAX_RETRY_AFTER_SECONDS);
}

const RESET_CODES: ReadonlySet<unknown> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE']);

function isReset(error: ConnectionError): boolean {
  const cause = error.cause;
  return typeof cause === 'object' && cause !== null && 'code' in cause && RESET_CODES.has(cause.code);
}
