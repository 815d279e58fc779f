/**
 * Requests of the console to the Kubernetes API with the user's own token. All failures are `ApiError`s; a broken
 * connection has the reason 'ServiceUnavailable'.
 */
import { ApiError, type Status } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';

/** Sends a request with the user's token. After a response 401, the token is renewed. */
export type Send = (path: string, request: RequestInit) => Promise<Response>;

export interface ApiRequest {
  readonly method?: string;
  /** Body of the request, which is sent as JSON, or unchanged if it is a string. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';

/**
 * Maximum wait for a host's response. A host without power never responds, and the API server's own time limit is
 * longer.
 */
export const HOST_DEADLINE_MS = 6_000;

export class Api {
  readonly #sendRequest: Send;
  readonly #clock: Clock;

  constructor(send: Send, clock: Clock) {
    this.#sendRequest = send;
    this.#clock = clock;
  }

  /**
   * Requests JSON from a kubelet through the proxy of its node. Fails with the reason 'Timeout' after
   * `HOST_DEADLINE_MS`, so that a host that does not respond does not block a page.
   */
  async hostJson<T>(node: string, path: string, { signal, ...request }: ApiRequest = {}): Promise<T> {
    const ended = new AbortController();
    const onAbort = (): void => ended.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort);
    const timer = this.#clock.setTimer(HOST_DEADLINE_MS, () => ended.abort(lateAnswer(node)));
    try {
      return await this.json<T>(hostPath(node, path), { ...request, signal: ended.signal });
    } catch (error) {
      throw ended.signal.aborted ? ended.signal.reason : error;
    } finally {
      timer.cancel();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  /** Sends a request and returns the JSON body of the response. */
  async json<T>(path: string, request: ApiRequest = {}): Promise<T> {
    const response = await this.open(path, request);
    try {
      return (await response.json()) as T;
    } catch (error) {
      throw broken(error);
    }
  }

  async text(path: string, request: ApiRequest = {}): Promise<string> {
    const response = await this.open(path, request);
    try {
      return await response.text();
    } catch (error) {
      throw broken(error);
    }
  }

  /** A successful response whose body has not been read yet. */
  async open(path: string, request: ApiRequest = {}): Promise<Response> {
    const response = await this.#send(path, request);
    if (response.ok) return response;
    throw await failureOf(response);
  }

  async #send(path: string, request: ApiRequest): Promise<Response> {
    const { method = 'GET', body, contentType = 'application/json', accept = 'application/json', signal } = request;
    const headers: Record<string, string> = { accept };
    if (body !== undefined) headers['content-type'] = contentType;
    try {
      return await this.#sendRequest(path, {
        method,
        headers,
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      if (signal?.aborted === true) throw error;
      throw broken(error);
    }
  }
}

/** Path of a kubelet's resource through the proxy of its node. */
export const hostPath = (node: string, path: string): string =>
  `/api/v1/nodes/${encodeURIComponent(node)}/proxy${path}`;

const lateAnswer = (node: string): ApiError =>
  new ApiError(
    'Timeout',
    `node ${node} does not answer within ${HOST_DEADLINE_MS / 1_000} s; check the power and the network of the host`,
  );

function broken(error: unknown): ApiError {
  return new ApiError('ServiceUnavailable', `the API server cannot be reached: ${messageOf(error)}`);
}

async function failureOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  return ApiError.fromStatus(statusOf(text), response.status);
}

/**
 * Parses the Status in a body. If the body is not a Status, for example that of a proxy, its text becomes the message.
 */
function statusOf(text: string): Partial<Status> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'kind' in parsed && parsed.kind === 'Status')
      return parsed as Partial<Status>;
  } catch {
    // The body was written by a proxy and is not JSON.
  }
  return text.trim() === '' ? {} : { message: text.trim().slice(0, 500) };
}
