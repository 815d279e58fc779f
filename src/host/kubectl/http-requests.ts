/**
 * HTTP requests of the built-in client over node:https. This module starts in a third of the time of the API client for
 * components, because it has no connection pools, shared watches or credential rotation, which a single command does
 * not need.
 */

import { type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent, request as tlsRequest } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import { ApiError, type Status } from '../../api/meta/status.ts';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { parseJson } from '../../base/json/json.ts';
import { type ClientCredentials, sameTls } from '../../client/credentials.ts';
import { ConnectionError } from '../../client/errors.ts';
import type { RequestOptions, Requests } from '../../kubectl/port.ts';
import type { CredentialSource } from './exec-credentials.ts';
import { proxyAuthorization, TunnelAgent } from './proxies.ts';

export interface HttpRequestsOptions {
  /** URL of the API server: `https://host:port` with an optional path prefix. */
  readonly server: string;
  /** Source of the credentials, which are read before each request. */
  readonly source: CredentialSource;
  readonly insecure: boolean;
  readonly tlsServerName: string | undefined;
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Milliseconds without data after which a request fails; undefined means no limit. */
  readonly timeoutMs: number | undefined;
  readonly onWarning: (text: string) => void;
  readonly proxy?: URL;
}

/** Maximum number of repetitions after responses with Retry-After, as in client-go. */
const MAX_RETRIES = 10;
const MAX_RETRY_SECONDS = 30;
const MAX_RESPONSE_BYTES = 256 << 20;
const MAX_ERROR_BYTES = 1 << 20;
const USER_AGENT = 'kubectl/v1.36.0 (hyperedge)';

export function httpRequests(options: HttpRequestsOptions): Requests {
  const { server, source, headers } = options;
  const base = new URL(server);
  const isPlain = base.protocol === 'http:';
  const { proxy } = options;
  // An HTTP proxy forwards requests to an http URL itself. All other connections are tunnelled.
  const forwarder = isPlain && proxy?.protocol.startsWith('http') === true ? proxy : undefined;
  const agents = forwarder !== undefined || (isPlain && proxy === undefined) ? undefined : agentsFor(options, proxy);
  const prefix = base.pathname.replace(/\/+$/, '');

  const once = (
    method: string,
    path: string,
    body: string | undefined,
    request: RequestOptions,
    credentials: ClientCredentials,
  ): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const { accept = 'application/json', contentType = 'application/json', signal } = request;
      const peer = forwarder ?? base;
      const isPeerPlain = peer.protocol === 'http:';
      const agent = agents?.of(credentials);
      const call = (isPeerPlain ? plainRequest : tlsRequest)(
        {
          method,
          host: hostOfUrl(peer),
          port: portOfUrl(peer),
          path: (forwarder === undefined ? '' : base.origin) + prefix + path,
          ...(agent === undefined ? {} : { agent }),
          ...(signal === undefined ? {} : { signal }),
          ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs }),
          headers: {
            accept,
            'user-agent': USER_AGENT,
            ...(forwarder === undefined ? {} : { host: base.host, ...proxyAuthorization(forwarder) }),
            ...headers,
            ...(credentials.token === undefined ? {} : { authorization: `Bearer ${credentials.token}` }),
            ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }),
          },
        },
        resolve,
      );
      call.once('timeout', () => call.destroy(new Error(`no response within ${options.timeoutMs} ms`)));
      call.on('error', (error) =>
        reject(signal?.aborted === true ? signal.reason : new ConnectionError(server, error)),
      );
      call.end(body);
    });

  const send = async (
    method: string,
    path: string,
    text: string | undefined,
    request: RequestOptions,
  ): Promise<IncomingMessage> => {
    for (let attempt = 0; ; attempt += 1) {
      const credentials = await source.current();
      const response = await once(method, path, text, request, credentials);
      for (const warning of warningsIn(response.headers['warning'])) options.onWarning(warning);
      const code = response.statusCode ?? 0;
      if (code === 401) source.refuse(credentials);
      if (code < 300) return response;
      const error = await errorOf(response, code);
      const seconds = retrySeconds(code, response.headers['retry-after']);
      if (seconds === undefined || attempt >= MAX_RETRIES) throw error;
      await delay(seconds * 1_000, undefined, request.signal === undefined ? {} : { signal: request.signal });
    }
  };

  return {
    request: async <R>(method: string, path: string, body?: unknown, request: RequestOptions = {}) => {
      const sent = body === undefined ? undefined : JSON.stringify(body);
      const text = await textOf(await send(method, path, sent, request), server);
      try {
        return (text === '' ? undefined : parseJson(text)) as R;
      } catch {
        throw new ConnectionError(server, new Error(`${method} ${path}: the response is not JSON`));
      }
    },
    stream: async (path, request = {}) => send('GET', path, undefined, request),
    postText: async (path, text, request = {}) => send('POST', path, text, request),
    close: () => agents?.close(),
  };
}

export interface Agents {
  /** Agent for the credentials. Calls with the same certificate return the same agent. */
  of(credentials: ClientCredentials): Agent;
  close(): void;
}

/** Keeps one agent and replaces it when the certificate changes, for example when a plug-in returns another one. */
export function agentsFor(options: AgentOptions, proxy: URL | undefined): Agents {
  let last: { readonly agent: Agent; readonly credentials: ClientCredentials } | undefined;
  return {
    of: (credentials) => {
      if (last === undefined || !sameTls(last.credentials, credentials))
        last = { agent: agentFor(options, credentials, proxy), credentials };
      return last.agent;
    },
    close: () => last?.agent.destroy(),
  };
}

export type AgentOptions = Pick<HttpRequestsOptions, 'server' | 'insecure' | 'tlsServerName'>;

/** Agent with the given credentials. If `proxy` is given, its connections go through the proxy. */
export function agentFor(options: AgentOptions, credentials: ClientCredentials, proxy: URL | undefined): Agent {
  const { insecure, tlsServerName } = options;
  const tls = {
    keepAlive: true,
    minVersion: 'TLSv1.2' as const,
    ...(credentials.ca === undefined ? {} : { ca: credentials.ca }),
    ...(credentials.cert === undefined ? {} : { cert: credentials.cert }),
    ...(credentials.key === undefined ? {} : { key: credentials.key }),
    ...(insecure ? { rejectUnauthorized: false } : {}),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
  };
  return proxy === undefined ? new Agent(tls) : new TunnelAgent(proxy, tls, options.server.startsWith('http:'));
}

async function textOf(response: IncomingMessage, server: string): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    let size = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_RESPONSE_BYTES)
        throw new Error(
          `the response is larger than ${MAX_RESPONSE_BYTES >> 20} MiB; use a selector, a name or a smaller --chunk-size`,
        );
      chunks.push(chunk);
    }
  } catch (error) {
    throw new ConnectionError(server, error);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function errorOf(response: IncomingMessage, code: number): Promise<ApiError> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ERROR_BYTES) break;
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString('utf8').trim();
  return ApiError.fromStatus(statusIn(text) ?? { message: text || `HTTP ${code}` }, code);
}

function statusIn(text: string): Partial<Status> | undefined {
  try {
    const parsed = parseJson(text) as Partial<Status> | null;
    return parsed?.kind === 'Status' ? parsed : undefined;
  } catch {
    // If the body is not JSON, its text is the message.
    return undefined;
  }
}

/**
 * Texts of `Warning` headers with code 299, such as `299 - "text"`. A comma separates several warnings in one header
 * (RFC 9111).
 */
function warningsIn(header: string | string[] | undefined): string[] {
  const text = header === undefined ? '' : [header].flat().join(',');
  return [...text.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, quoted = '']) => quoted.replaceAll(/\\(.)/g, '$1'));
}

function retrySeconds(code: number, header: string | undefined): number | undefined {
  if ((code !== 429 && code < 500) || header === undefined || !/^\d{1,6}$/.test(header)) return undefined;
  return Math.min(Number(header), MAX_RETRY_SECONDS);
}
