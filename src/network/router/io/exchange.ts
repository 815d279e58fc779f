/** A client's request as the proxy handles it, for HTTP/1.1 and HTTP/2. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Backend, Choice, RequestFacts } from '../core/port.ts';
import { asObject, type RawHeaders } from './headers.ts';
import { page } from './pages.ts';

export type ClientRequest = IncomingMessage | Http2ServerRequest;
export type ClientResponse = ServerResponse | Http2ServerResponse;

/**
 * Whether the request came over an HTTP/2 connection. The version in the request is not used, because the request line
 * of HTTP/1 may contain any version.
 */
export const isHttp2 = (request: ClientRequest): request is Http2ServerRequest => request instanceof Http2ServerRequest;

export interface Target extends RequestFacts {
  /** Authority as the client wrote it, including its port. */
  readonly authority: string;
}

/** A request that is being forwarded. */
export interface Exchange {
  readonly request: ClientRequest;
  readonly response: ClientResponse;
  readonly target: Target;
  readonly backend: Backend;
  readonly path: string;
  readonly source: string;
  readonly cookie: string | undefined;
  readonly tried: Set<string>;
}

/** Host and port by RFC 3986. Underscores are allowed because they are in use, although no DNS host name has them. */
const AUTHORITY = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;
/** Characters that a reason phrase may contain (RFC 9112 §4). */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
const PATH = /^\/[\x21-\x22\x24-\x7e]*$/;

/** Host, path and query of the request. Undefined for an ambiguous or malformed request, which gets status 400. */
export function targetOf(request: ClientRequest, secure: boolean): Target | undefined {
  const { headers, rawHeaders, method = 'GET' } = request;
  if (!isHttp2(request) && request.httpVersionMajor !== 1) return undefined;
  // Methods are case-sensitive, but Node's client sends them in upper case. The server would get another method than
  // the one that selected its row.
  if (method !== method.toUpperCase()) return undefined;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  const pseudo = headers[':authority'];
  let authority = typeof pseudo === 'string' ? pseudo : headers.host;
  if (hosts > 1 || (pseudo !== undefined && headers.host !== undefined && headers.host !== pseudo)) return undefined;
  let url = request.url ?? '';
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url);
  if (absolute !== null) {
    // The authority in the request target takes precedence (RFC 9112 §3.2.2). A different Host header could be used for
    // request smuggling, so the request is rejected.
    if (absolute[1]?.toLowerCase() !== authority?.toLowerCase()) return undefined;
    authority = absolute[1];
    url = absolute[2]?.startsWith('/') ? absolute[2] : `/${absolute[2] ?? ''}`;
  }
  if (authority === undefined || authority.length > 300) return undefined;
  const [, host = ''] = AUTHORITY.exec(authority) ?? [];
  if (host === '') return undefined;
  const isServerWide = url === '*' && method === 'OPTIONS';
  if (!isServerWide && !PATH.test(url)) return undefined;
  const mark = url.indexOf('?');
  return {
    secure,
    authority,
    host: host.toLowerCase().replace(/\.$/, ''),
    path: isServerWide ? '/' : mark === -1 ? url : url.slice(0, mark),
    query: mark === -1 ? '' : url.slice(mark),
    method,
    header: (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
  };
}

/**
 * Framing of the request's body for the server, derived from the validated headers of the client. Undefined if the
 * headers are contradictory.
 */
export function framing(
  request: ClientRequest,
): { readonly hasBody: boolean; readonly headers: RawHeaders } | undefined {
  const { headers } = request;
  const length = headers['content-length'];
  if (isHttp2(request)) {
    if (headers['transfer-encoding'] !== undefined) return undefined;
    if (request.stream.endAfterHeaders)
      return { hasBody: false, headers: length === undefined ? [] : ['Content-Length', '0'] };
  } else if (headers['transfer-encoding'] !== undefined) {
    // Node's parser rejects requests with Content-Length and Transfer-Encoding. This check does not rely on the parser.
    if (length !== undefined || headers['transfer-encoding'].toLowerCase() !== 'chunked') return undefined;
    return { hasBody: true, headers: ['Transfer-Encoding', 'chunked'] };
  } else if (length === undefined) return { hasBody: false, headers: [] };
  if (length === undefined) return { hasBody: true, headers: ['Transfer-Encoding', 'chunked'] };
  if (!/^\d{1,15}$/.test(length)) return undefined;
  // Servers may read leading zeros as the prefix of an octal number.
  const bytes = String(Number(length));
  return { hasBody: bytes !== '0', headers: ['Content-Length', bytes] };
}

/** Sends the head of a response. Returns false if it cannot be sent: Node throws for some heads that servers send. */
export function writeHead(response: ClientResponse, status: number, reason: string, headers: RawHeaders): boolean {
  if (!(status >= 200 && status <= 599)) return false;
  try {
    if (response instanceof Http2ServerResponse) {
      const { 'content-length': length, ...others } = asObject(headers);
      // A response without content has no content length (RFC 9110 §8.6), which HTTP/2 enforces.
      response.writeHead(
        status,
        status === 204 || length === undefined ? others : { ...others, 'content-length': length },
      );
    } else response.writeHead(status, REASON.test(reason) ? reason : '', headers);
    return true;
  } catch {
    return false;
  }
}

/** Sends a response that the proxy itself generates. */
export function sendResponse(response: ClientResponse, status: number, more: RawHeaders = []): void {
  if (response.headersSent || response.writableEnded) {
    response.destroy();
    return;
  }
  const body = Buffer.from(page(status));
  const type = ['Content-Type', 'text/html; charset=utf-8', 'Cache-Control', 'no-cache'];
  if (!writeHead(response, status, '', [...type, 'Content-Length', String(body.length), ...more])) {
    response.destroy();
    return;
  }
  // The responses of HTTP/1 and HTTP/2 have the same `end`, but different types.
  (response as ServerResponse).end(body);
}

/** Headers that the proxy adds: sticky cookie and HSTS. */
export function ownHeaders({ backend, target, cookie: sent }: Omit<Exchange, 'response'>, choice: Choice): RawHeaders {
  const { cookie, hsts } = backend.options;
  const result: RawHeaders = [];
  if (cookie !== undefined && sent !== choice.cookie) {
    const secure = target.secure ? `; Secure; SameSite=${cookie.sameSite}` : '';
    result.push('Set-Cookie', `${cookie.name}=${choice.cookie}; Path=/; HttpOnly${secure}`);
  }
  if (hsts !== undefined && target.secure) result.push('Strict-Transport-Security', hsts);
  return result;
}
