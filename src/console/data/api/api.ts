/**
 * Requests of the console to the Kubernetes API with the user's own token. All failures are `ApiError`s; a broken
 * connection has the reason 'ServiceUnavailable'.
 */
import { ApiError, type Status } from '../../../api/meta/status.ts';
import { messageOf } from '../../../base/errors.ts';

/** Sends a request of the page with the user's token; it renews the token after a 401. */
export type Send = (path: string, request: RequestInit) => Promise<Response>;

export interface ApiRequest {
  readonly method?: string;
  /** Sent as JSON, or unchanged if it is a string. */
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';

export class Api {
  readonly #sendRequest: Send;

  constructor(send: Send) {
    this.#sendRequest = send;
  }

  /** The JSON body of a successful response. */
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

  /** A successful response whose body is still to be read. */
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

function broken(error: unknown): ApiError {
  return new ApiError('ServiceUnavailable', `the API server cannot be reached: ${messageOf(error)}`);
}

async function failureOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => '');
  return ApiError.fromStatus(statusOf(text), response.status);
}

/** The Status in a body. Other bodies, such as those of proxies, become its message. */
function statusOf(text: string): Partial<Status> {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null && 'kind' in parsed && parsed.kind === 'Status')
      return parsed as Partial<Status>;
  } catch {
    // The body is of a proxy.
  }
  return text.trim() === '' ? {} : { message: text.trim().slice(0, 500) };
}
