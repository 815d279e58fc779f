/** This server's own requests to aggregated API servers (discovery, probes, OpenAPI), limited in time and size. */
import { CodedError } from '../../base/errors.ts';
import type { BackendRequest, BackendTls, IncomingHttpHeaders } from '../port.ts';
import type { BackendContext } from '../rest/context.ts';
import { type HostPort, serviceEndpoints } from '../webhooks/service-endpoints.ts';
import { AGGREGATOR, identityHeaders } from './identity.ts';
import type { Delegated } from './services.ts';

export const CONNECT_TIMEOUT_MS = 10_000;

/** A random ready endpoint of the service. Throws a CodedError if there is none. */
export function endpointOf(context: BackendContext, { service }: Delegated): HostPort {
  const { namespace, name, port } = service;
  const found = serviceEndpoints(context.cache, namespace, name, port);
  return found[Math.floor(context.random.random() * found.length)] as HostPort;
}

export const authorityOf = ({ host, port }: HostPort): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

export interface BackendQuery {
  readonly at: HostPort;
  readonly path: string;
  readonly accept: string;
  readonly etag?: string;
  readonly tls: BackendTls;
  readonly timeoutMs: number;
  /** Maximum length of the response body in bytes. With 0 the body is discarded. */
  readonly maxBytes: number;
  readonly signal?: AbortSignal;
}

export interface BackendResponse {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Sends a GET request. Throws CodedErrors. */
export async function queryBackend(context: BackendContext, query: BackendQuery): Promise<BackendResponse> {
  const { backends, clock } = context;
  const { at, timeoutMs, maxBytes } = query;
  const abort = new AbortController();
  const timer = clock.setTimer(timeoutMs, () => abort.abort());
  const signals = [abort.signal, context.stopping, ...(query.signal === undefined ? [] : [query.signal])];
  const request: BackendRequest = {
    network: 'cluster',
    scheme: 'https',
    host: at.host,
    port: at.port,
    method: 'GET',
    path: query.path,
    headers: {
      host: authorityOf(at),
      accept: query.accept,
      'user-agent': 'kube-apiserver',
      ...(query.etag === undefined ? {} : { 'if-none-match': query.etag }),
      ...identityHeaders(AGGREGATOR),
    },
    tls: query.tls,
    allowAddress: context.destinations.extension(at.port),
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, timeoutMs),
    signal: AbortSignal.any(signals),
    pooled: true,
  };
  try {
    const answer = await backends.request(request, undefined);
    const { statusCode: code = 0, headers } = answer;
    if (maxBytes === 0) {
      answer.destroy();
      return { code, headers, body: Buffer.alloc(0) };
    }
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) throw new CodedError('answer-too-large', `the response exceeds ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return { code, headers, body: Buffer.concat(chunks) };
  } catch (error) {
    const late = abort.signal.aborted;
    abort.abort();
    if (late) throw new CodedError('timeout', `did not answer within ${timeoutMs} ms`, { cause: error });
    throw error;
  } finally {
    timer.cancel();
  }
}
