/** JSON requests to configured servers: verified HTTPS, no redirects, limits of time and size. */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { CodedError } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { decodeJson } from '../http/decode.ts';
import type { BackendConnector } from '../port.ts';
import { mayBeNamed } from '../server/destinations.ts';
import { pathOfUrl } from './webhook-path.ts';

/** Address and credentials of a server, from a kubeconfig or a flag. */
export interface RemoteEndpoint {
  /** URL of the server. http:// is only for a proxy on this host. */
  readonly url: string;
  /** PEM bundle of CAs. Undefined: the public authorities. */
  readonly ca?: string;
  readonly certificate?: string;
  readonly key?: string;
  readonly token?: string;
  readonly serverName?: string;
}

export interface RemoteDeps {
  readonly backends: BackendConnector;
  readonly clock: Clock;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** Status codes of transient errors. */
const PASSING_CODES: ReadonlySet<number> = new Set([429, 500, 504]);
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 500;
const PAUSE_FACTOR = 1.5;
const MAX_ANSWER = 4 * 1024 * 1024;

class UnexpectedStatus extends CodedError {
  readonly passing: boolean;
  constructor(host: string, code: number, retryAfter: string | undefined) {
    super('unexpected-status', `${host} returned status ${code}`);
    this.passing = PASSING_CODES.has(code) || retryAfter !== undefined;
  }
}

/**
 * Like `callRemote`, with up to four retries after transient errors. Calls `tried` for each attempt. Source:
 * k8s.io/apiserver/pkg/util/webhook (WithExponentialBackoff, DefaultShouldRetry).
 */
export async function callRemoteWithRetry(
  deps: RemoteDeps,
  endpoint: RemoteEndpoint,
  timeoutMs: number,
  body: JsonObject | string,
  tried: (failure: unknown, ms: number) => void = () => {},
): Promise<JsonValue> {
  const { clock } = deps;
  let pauseMs = FIRST_PAUSE_MS;
  for (let attempt = 1; ; attempt++) {
    const beganMs = clock.monotonicMs();
    try {
      const answer = await callRemote(deps, endpoint, timeoutMs, body);
      tried(undefined, clock.monotonicMs() - beganMs);
      return answer;
    } catch (error) {
      tried(error, clock.monotonicMs() - beganMs);
      if (attempt === ATTEMPTS || !isPassing(error)) throw error;
      await new Promise<void>((resolve) => void clock.setTimer(pauseMs, resolve));
      pauseMs *= PAUSE_FACTOR;
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof UnexpectedStatus ? error.passing : (error as { code?: unknown }).code === 'ECONNRESET';
}

/** Sends a GET, or a POST if `body` is given. A string as the body is already JSON. Throws a CodedError. */
export async function callRemote(
  { backends, clock }: RemoteDeps,
  endpoint: RemoteEndpoint,
  timeoutMs: number,
  body?: JsonObject | string,
): Promise<JsonValue> {
  const url = new URL(endpoint.url);
  const payload = body === undefined ? undefined : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const abort = new AbortController();
  const timer = clock.setTimer(timeoutMs, () => abort.abort());
  const secure = url.protocol === 'https:';
  try {
    const answer = await backends.request(
      {
        network: 'controlplane',
        scheme: secure ? 'https' : 'http',
        host: hostOfUrl(url),
        port: portOfUrl(url),
        method: payload === undefined ? 'GET' : 'POST',
        path: payload === undefined ? `${url.pathname}${url.search}` : pathOfUrl(url),
        headers: {
          host: url.host,
          accept: 'application/json',
          'user-agent': 'kube-apiserver',
          ...(payload === undefined ? {} : { 'content-type': 'application/json', 'content-length': payload.length }),
          ...(endpoint.token === undefined ? {} : { authorization: `Bearer ${endpoint.token}` }),
        },
        ...(secure
          ? {
              tls: {
                authority: endpoint.ca ?? backends.publicAuthorities,
                ...(endpoint.certificate === undefined ? {} : { certificate: endpoint.certificate }),
                ...(endpoint.key === undefined ? {} : { key: endpoint.key }),
                ...(endpoint.serverName === undefined ? {} : { serverName: endpoint.serverName }),
              },
            }
          : {}),
        allowAddress: mayBeNamed,
        connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
        signal: abort.signal,
        pooled: true,
      },
      payload,
    );
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_ANSWER)
        throw new CodedError('answer-too-large', `the response of ${url.host} exceeds ${MAX_ANSWER} bytes`);
      chunks.push(chunk);
    }
    const code = answer.statusCode ?? 0;
    if (code < 200 || code > 299) throw new UnexpectedStatus(url.host, code, answer.headers['retry-after']);
    return chunks.length === 0 ? null : decodeJson(Buffer.concat(chunks));
  } catch (error) {
    const isLate = abort.signal.aborted;
    abort.abort();
    if (isLate) throw new CodedError('timeout', `${url.host} did not answer within ${timeoutMs} ms`, { cause: error });
    throw error;
  } finally {
    timer.cancel();
  }
}
