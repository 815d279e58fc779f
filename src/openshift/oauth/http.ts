/** Requests and responses of the OAuth server. */
import type { ConnectionInfo, HttpRequest, HttpResponse } from '../../apiserver/port.ts';
import { PAGE_HEADERS } from './pages.ts';

const MAX_FORM = 64 * 1024;

/** A request with its parsed parts, its response and its connection. */
export interface HttpCall {
  readonly request: HttpRequest;
  readonly response: HttpResponse;
  readonly connection: ConnectionInfo;
  readonly path: string;
  readonly query: URLSearchParams;
  /** Origin `https://HOST` with the host name that the client used. Undefined if the Host header is malformed. */
  readonly origin: string | undefined;
}

export function httpCallOf(request: HttpRequest, response: HttpResponse, connection: ConnectionInfo): HttpCall {
  const url = request.url ?? '/';
  const mark = url.indexOf('?');
  const host = request.headers.host ?? request.headers[':authority'];
  return {
    request,
    response,
    connection,
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    origin: typeof host === 'string' && /^[A-Za-z0-9.:[\]-]{1,255}$/.test(host) ? `https://${host}` : undefined,
  };
}

export function header({ request }: HttpCall, name: string): string | undefined {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

export function sendHttpResponse(
  { request, response }: HttpCall,
  status: number,
  headers: Headers,
  body: string,
): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(body);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value as string | string[]);
  response.setHeader('content-length', bytes.length);
  if (!request.complete && request.httpVersionMajor < 2 && request.method !== 'GET')
    response.setHeader('connection', 'close');
  response.statusCode = status;
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

export const sendPage = (call: HttpCall, status: number, html: string, headers: Headers = {}): void =>
  sendHttpResponse(call, status, { ...PAGE_HEADERS, ...headers }, html);

export const sendJson = (call: HttpCall, status: number, value: unknown, headers: Headers = {}): void =>
  sendHttpResponse(
    call,
    status,
    { 'content-type': 'application/json', 'cache-control': 'no-store', pragma: 'no-cache', ...headers },
    `${JSON.stringify(value)}\n`,
  );

export const redirect = (call: HttpCall, location: string, headers: Headers = {}): void =>
  sendHttpResponse(
    call,
    302,
    { location, 'cache-control': 'no-store', 'referrer-policy': 'no-referrer', ...headers },
    '',
  );

/** Sends an OAuth error (RFC 6749, section 5.2). */
export const sendError = (
  call: HttpCall,
  status: number,
  error: string,
  description: string,
  headers: Headers = {},
): void => sendJson(call, status, { error, error_description: description }, headers);

/** Fields of the form in the body. Undefined if the body has another content type or is too large. */
export async function readForm(call: HttpCall): Promise<URLSearchParams | undefined> {
  const body = await readBody(call, 'application/x-www-form-urlencoded');
  return body === undefined ? undefined : new URLSearchParams(body);
}

/** Text of the body. Undefined if the body has another content type or is too large. */
export async function readBody({ request }: HttpCall, wanted: string): Promise<string | undefined> {
  const type = request.headers['content-type'] ?? '';
  if (!type.toLowerCase().startsWith(wanted)) return undefined;
  if (request.readableEnded) return '';
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > MAX_FORM) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** User and secret of an `Authorization: Basic` header; undefined if there is no valid one. */
export function basicCredentials(call: HttpCall): { readonly user: string; readonly secret: string } | undefined {
  const [, encoded] = /^basic ([A-Za-z0-9+/=_-]{1,4096})$/i.exec(header(call, 'authorization') ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : { user: text.slice(0, colon), secret: text.slice(colon + 1) };
}
