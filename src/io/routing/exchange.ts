/** A request of a client as the proxy sees it, whichever version of HTTP it came by. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Backend, Choice, RequestFacts } from '../../core/routing/port.ts';
import { asObject, type RawHeaders } from './headers.ts';
import { page } from './pages.ts';

export type ClientRequest = IncomingMessage | Http2ServerRequest;
export type ClientResponse = ServerResponse | Http2ServerResponse;

/** By the connection: a request line of HTTP/1 may name any version. */
export const isHttp2 = (request: ClientRequest): request is Http2ServerRequest => request instanceof Http2ServerRequest;

export interface Target extends RequestFacts {
  /** As the client wrote it, with its port. */
  readonly authority: string;
}

/** One request on its way. */
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

/** RFC 3986 host and port; an underscore is in use, though no DNS name has one. */
const AUTHORITY = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/;
/** RFC 9112 §4. */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
const PATH = /^\/[\x21-\x22\x24-\x7e]*$/;

/** Undefined: the request is ambiguous or malformed; it is answered with 400. */
export function targetOf(request: ClientRequest, secure: boolean): Target | undefined {
  const { headers, rawHeaders, method = 'GET' } = request;
  if (!isHttp2(request) && request.httpVersionMajor !== 1) return undefined;
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  const pseudo = headers[':authority'];
  let authority = typeof pseudo === 'string' ? pseudo : headers.host;
  if (hosts > 1 || (pseudo !== undefined && headers.host !== undefined && headers.host !== pseudo)) return undefined;
  let url = request.url ?? '';
  const absolute = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url);
  if (absolute !== null) {
    // RFC 9112 §3.2.2: the request target's authority wins; a Host that differs is a way to smuggle.
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

/** How the body is framed to the server; never taken over from the client's own headers unread. */
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
    // The parser refuses both at once; this does not depend on it.
    if (length !== undefined || headers['transfer-encoding'].toLowerCase() !== 'chunked') return undefined;
    return { hasBody: true, headers: ['Transfer-Encoding', 'chunked'] };
  } else if (length === undefined) return { hasBody: false, headers: [] };
  if (length === undefined) return { hasBody: true, headers: ['Transfer-Encoding', 'chunked'] };
  if (!/^\d{1,15}$/.test(length)) return undefined;
  return { hasBody: length !== '0', headers: ['Content-Length', length] };
}

/** False: the client cannot be sent such a head. Servers write what they want, and Node throws for some of it. */
export function writeHead(response: ClientResponse, status: number, reason: string, headers: RawHeaders): boolean {
  if (!(status >= 200 && status <= 599)) return false;
  try {
    if (response instanceof Http2ServerResponse) {
      const { 'content-length': length, ...others } = asObject(headers);
      // RFC 9110 §8.6: an answer without content has none, and HTTP/2 enforces that.
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

/** An answer of the proxy itself. */
export function answer(response: ClientResponse, status: number, more: RawHeaders = []): void {
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
  // A compat response of HTTP/2 and one of HTTP/1 share this signature, but not its type.
  (response as ServerResponse).end(body);
}

/** Sticky cookie and HSTS. */
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
