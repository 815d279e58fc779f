import type { Dispatcher } from 'undici';
import { ApiError, type Status } from '../api/meta/status.ts';
import { messageOf } from '../base/errors.ts';
import { parseJson } from '../base/json/json.ts';
import { sleep } from '../base/time/sleep.ts';
import { ConnectionError } from './errors.ts';
import type { StreamAnswer } from './informers/shared-streams.ts';
import { checkedAtSend } from './leases/fenced-dispatch.ts';
import type { WriteFence } from './leases/write-fence.ts';
import { type ServerConnectionOptions, ServerConnections } from './server-connections.ts';
import type { Impersonated } from './types.ts';

/**
 * Matches the path of a watch. Watches share a connection; each other stream, such as a log, has its own connection.
 */
const WATCH = /[?&]watch=(?:true|1)(?:&|$)/;

export interface TransportOptions extends ServerConnectionOptions {
  /** Returns the token for a request. Called before each request. It takes precedence over `credentials().token`. */
  readonly bearerToken?: () => Promise<string | undefined>;
  readonly userAgent: string;
}

export interface HttpRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  readonly impersonate?: Impersonated;
  /**
   * Fence that is checked before the request is queued and again when it is written. If the lease is lost, the request
   * is aborted.
   */
  readonly fence?: WriteFence;
}

export interface HttpStream {
  readonly contentType: string;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface Transport {
  /** Sends a request and parses the JSON response. Throws `ApiError`, or the signal's reason. */
  json(request: HttpRequest): Promise<unknown>;
  stream(request: HttpRequest): Promise<HttpStream>;
  close(): Promise<void>;
}

/** Maximum number of retries after a response with Retry-After, as in client-go. */
const MAX_RETRIES_AFTER = 10;
const MAX_RETRY_AFTER_SECONDS = 30;
/** Maximum number of bytes of an error response that are searched for a Status. */
const MAX_ERROR_BYTES = 1 << 20;

export function createTransport(options: TransportOptions): Transport {
  return new HttpTransport(options);
}

/** Impersonation headers. Keys of extra attributes are percent-encoded, as in k8s.io/client-go. */
function impersonation({ name, uid, groups = [], extra = {} }: Impersonated): Record<string, string | string[]> {
  return {
    'impersonate-user': name,
    ...(uid === undefined || uid === '' ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': [...groups] }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key)}`, [...values]]),
    ),
  };
}

class HttpTransport implements Transport {
  readonly #options: TransportOptions;
  readonly #connections: ServerConnections;
  /** Path prefix in the URL of the server. */
  readonly #prefix: string;

  constructor(options: TransportOptions) {
    this.#options = options;
    this.#connections = new ServerConnections(options);
    this.#prefix = new URL(options.server).pathname.replace(/\/+$/, '');
  }

  async json(request: HttpRequest): Promise<unknown> {
    const answer = await this.#send(request, 'requests');
    let text: string;
    try {
      text = await textOf(answer.body);
    } catch (error) {
      throw this.#failure(request, error);
    }
    try {
      return text === '' ? undefined : parseJson(text);
    } catch (error) {
      throw new ConnectionError(
        this.#options.server,
        new Error(`${request.method} ${request.path}: the answer is not JSON: ${messageOf(error)}`),
      );
    }
  }

  async stream(request: HttpRequest): Promise<HttpStream> {
    const answer = await this.#send(request, 'streams');
    const type = answer.headers['content-type'];
    return {
      contentType: typeof type === 'string' ? type : '',
      body: guarded(answer.body, (error) => this.#failure(request, error)),
    };
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  async #send(request: HttpRequest, kind: 'requests' | 'streams'): Promise<StreamAnswer> {
    const { log, clock } = this.#options;
    const encoded = request.body === undefined ? null : JSON.stringify(request.body);
    const startedMs = clock.monotonicMs();
    for (let attempt = 0; ; attempt++) {
      let answer: StreamAnswer;
      try {
        answer = await this.#once(request, kind, encoded);
      } catch (error) {
        // The server may close an idle connection at the moment in which it is reused. A GET can safely be repeated.
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
      log.v(4, 'server overloaded, retrying later', { path: request.path, seconds: waitSeconds });
      await sleep(clock, waitSeconds * 1000, request.signal);
    }
  }

  async #headers(request: HttpRequest): Promise<Record<string, string | string[]>> {
    const options = this.#options;
    const token = (await options.bearerToken?.()) ?? options.credentials().token;
    return {
      'user-agent': options.userAgent,
      accept: request.accept ?? 'application/json',
      ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
      ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
      ...(request.impersonate === undefined ? {} : impersonation(request.impersonate)),
    };
  }

  async #once(request: HttpRequest, kind: 'requests' | 'streams', encoded: string | null): Promise<StreamAnswer> {
    const headers = await this.#headers(request);
    const { [kind]: pool, shared } = this.#connections.current();
    const { fence } = request;
    fence?.check();
    const dispatcher: Dispatcher = fence === undefined ? pool : checkedAtSend(pool, fence);
    const signals = [
      ...(request.signal === undefined ? [] : [request.signal]),
      ...(fence?.lost === undefined ? [] : [fence.lost]),
      ...(kind === 'streams' ? [this.#connections.closed] : []),
    ];
    const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
    const { method } = request;
    const path = this.#prefix + request.path;
    try {
      const streamed =
        kind === 'streams' && WATCH.test(path)
          ? await shared?.request({ method, path, headers, body: encoded, signal, beforeSend: () => fence?.check() })
          : undefined;
      if (streamed !== undefined) return streamed;
      return await dispatcher.request({
        method,
        path,
        headers,
        body: encoded,
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      throw this.#failure(request, error);
    }
  }

  /** Error to throw: the signal's reason if the caller has aborted the request, otherwise an ApiError. */
  #failure(request: HttpRequest, error: unknown): unknown {
    if (request.signal?.aborted === true) return request.signal.reason;
    if (error instanceof ApiError) return error;
    return new ConnectionError(this.#options.server, error);
  }
}

async function readError(request: HttpRequest, code: number, body: AsyncIterable<Uint8Array>): Promise<ApiError> {
  let text: string;
  try {
    text = await readLimited(body, MAX_ERROR_BYTES);
  } catch (error) {
    if (request.signal?.aborted === true) throw request.signal.reason;
    text = messageOf(error);
  }
  return ApiError.fromStatus(statusIn(text) ?? { message: text.trim() || `HTTP ${code}` }, code);
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

/** Reads a body as text, by undici's own `text()` if the body has it, because that is faster. */
async function textOf(body: AsyncIterable<Uint8Array> & { text?(): Promise<string> }): Promise<string> {
  return body.text === undefined ? readLimited(body, Number.POSITIVE_INFINITY) : body.text();
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
    // If the body is not JSON, its text is the message.
  }
  return undefined;
}

/**
 * Retry delay of a response; undefined unless it reports overload and has a Retry-After header. The caller handles
 * other failures.
 */
function retryAfterSeconds(code: number, header: string | string[] | undefined): number | undefined {
  if (code !== 429 && code < 500) return undefined;
  if (typeof header !== 'string' || !/^\d{1,6}$/.test(header)) return undefined;
  return Math.min(Number(header), MAX_RETRY_AFTER_SECONDS);
}

const RESET_CODES: ReadonlySet<unknown> = new Set([
  'UND_ERR_SOCKET',
  'ECONNRESET',
  'EPIPE',
  'ERR_HTTP2_GOAWAY_SESSION',
  'ERR_HTTP2_INVALID_SESSION',
  'ERR_HTTP2_SESSION_ERROR',
  'ERR_HTTP2_STREAM_ERROR',
]);

function isReset(error: ConnectionError): boolean {
  const cause = error.cause;
  return typeof cause === 'object' && cause !== null && 'code' in cause && RESET_CODES.has(cause.code);
}
