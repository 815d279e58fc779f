/** Common steps of proxied requests and upgrades. */
import type { Duplex } from 'node:stream';
import { ApiError } from '../../api/meta/status.ts';
import { endSocket } from '../../wire/connections/end-socket.ts';
import { failureOf } from '../http/failures.ts';
import type {
  BackendRequest,
  HttpRequest,
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
} from '../port.ts';
import type { ServerContext } from '../rest/context.ts';
import type { Target } from './targets.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** Headers that are not forwarded: they are for the next hop only (RFC 9110 §7.6.1), or for this server. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'host',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]);

/** Headers that this server sets itself. */
const SET_HERE = /^(?:audit-id|content-length|x-forwarded-.*)$/;

/** WebSocket subprotocol in which browsers send a bearer token. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';

/**
 * Prefix of the OAuth server's cookies. Proxied pages have the origin of the OAuth server, so a backend could otherwise
 * read or replace the session of a browser. Browsers ignore the case of the prefix.
 */
const OWN_COOKIE = /^\s*__host-/i;

/**
 * Header name as the backend may read it, in lower case. Many servers, such as those with a CGI or WSGI interface,
 * treat an underscore as a hyphen.
 */
export const meantName = (name: string): string => name.toLowerCase().replaceAll('_', '-');

/** Request headers that are forwarded to the backend. Credentials and hop-by-hop headers are removed. */
export function passedHeaders(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  const passed: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    const meant = meantName(name);
    if (name.startsWith(':') || NOT_FORWARDED.has(meant) || value === undefined) continue;
    if (meant.startsWith('impersonate-') || meant.startsWith('x-remote-')) continue;
    // A name that only means a header which this server sets would be a second value of it.
    if (meant !== name && SET_HERE.test(meant)) continue;
    passed[name] = value;
  }
  if (headers.cookie !== undefined) {
    const others = headers.cookie.split(';').filter((each) => !OWN_COOKIE.test(each));
    if (others.length === 0) delete passed['cookie'];
    else passed['cookie'] = others.join(';').trim();
  }
  const protocols = headers['sec-websocket-protocol'];
  if (protocols?.includes(TOKEN_PROTOCOL) === true) {
    const others = protocols.split(',').filter((each) => !each.trim().startsWith(TOKEN_PROTOCOL));
    passed['sec-websocket-protocol'] = others.join(',').trim();
  }
  return passed;
}

/** Reports whether the request has a body, and sets its framing. A body of unknown length is sent in chunks. */
export function frameBody(request: HttpRequest, headers: OutgoingHttpHeaders): boolean {
  if (request.method === 'GET' || request.method === 'HEAD') {
    delete headers['content-length'];
    return false;
  }
  const length = request.headers['content-length'];
  if (length !== undefined) return length !== '0';
  const { stream } = request;
  const chunked = stream === undefined ? request.headers['transfer-encoding'] !== undefined : !stream.endAfterHeaders;
  if (chunked) headers['transfer-encoding'] = 'chunked';
  return chunked;
}

/** Response headers that are forwarded to the client. */
export function answerHeaders(answer: IncomingMessage): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (NOT_FORWARDED.has(name) || value === undefined) continue;
    // RFC 9110 §8.6: a 204 response has no content length. HTTP/2 clients reset the stream of a 204 response with one.
    if (name === 'content-length' && answer.statusCode === 204) continue;
    headers[name] = value;
  }
  const cookies = answer.headers['set-cookie']?.filter((each) => !OWN_COOKIE.test(each)) ?? [];
  if (cookies.length === 0) delete headers['set-cookie'];
  else headers['set-cookie'] = cookies;
  return headers;
}

/** Head of a 101 response for the client. */
export function switchingHead(answer: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${answer.statusMessage ?? 'Switching Protocols'}`];
  for (let index = 0; index + 1 < answer.rawHeaders.length; index += 2) {
    const [name = '', value = ''] = answer.rawHeaders.slice(index, index + 2);
    if (name.toLowerCase() !== 'set-cookie' || !OWN_COOKIE.test(value)) lines.push(`${name}: ${value}`);
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}

export function backendRequest(
  target: Target,
  method: string,
  headers: OutgoingHttpHeaders,
  signal: AbortSignal,
): BackendRequest {
  return {
    network: 'cluster',
    scheme: target.scheme,
    host: target.host,
    port: target.port,
    method,
    path: target.path,
    headers,
    ...(target.tls === undefined ? {} : { tls: target.tls }),
    allowAddress: target.allowAddress,
    connectTimeoutMs: target.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    signal,
  };
}

/**
 * Connects the client's socket with the backend's socket after a 101 response. `destination`: name of the backend in
 * messages.
 */
export async function upgradeThrough(
  context: Pick<ServerContext, 'backends' | 'stopping'>,
  request: BackendRequest,
  socket: Duplex,
  head: Buffer,
  destination: string,
): Promise<void> {
  const answer = await context.backends.upgrade(request);
  if (!answer.upgraded) {
    await returnFailure(socket, answer.response, destination);
    return;
  }
  const { response, socket: backend, head: first } = answer;
  socket.write(switchingHead(response));
  if (first.length > 0) socket.write(first);
  if (head.length > 0) backend.write(head);
  splice(socket, backend, context.stopping);
}

function splice(left: Duplex, right: Duplex, stopping: AbortSignal): void {
  const close = (): void => {
    left.destroy();
    right.destroy();
    stopping.removeEventListener('abort', close);
  };
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.on('error', close);
    from.once('close', () => {
      // Unread data is delivered before the socket is closed.
      to.end();
      setTimeout(close, 1_000).unref();
    });
    from.pipe(to);
  }
  stopping.addEventListener('abort', close, { once: true });
}

/** Sends the backend's error response to the client and closes the connection. */
async function returnFailure(socket: Duplex, response: IncomingMessage, destination: string): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    const bytes = Buffer.from(chunk as Uint8Array);
    length += bytes.length;
    if (length > 64 * 1024) break;
    chunks.push(bytes);
  }
  response.destroy();
  const body = Buffer.concat(chunks);
  const { statusCode = 0 } = response;
  const status = statusCode < 200 ? 502 : statusCode;
  const redirect = status >= 300 && status < 400;
  const type = response.headers['content-type'] ?? 'text/plain';
  if (redirect) {
    endUpgrade(
      socket,
      new ApiError('BadGateway', `${destination} returned a redirect (${status}), which is not followed`),
    );
    return;
  }
  endSocket(
    socket,
    Buffer.concat([
      Buffer.from(
        `HTTP/1.1 ${status} ${response.statusMessage ?? ''}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]),
  );
}

/** Responds to an upgrade request with a Status and closes the connection. */
export function endUpgrade(socket: Duplex, error: unknown): void {
  const { failure } = failureOf(error);
  const body = Buffer.from(JSON.stringify(failure.toStatus()));
  endSocket(
    socket,
    Buffer.concat([
      Buffer.from(
        `HTTP/1.1 ${failure.httpCode} ${failure.reason}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]),
  );
}

/** Returns at most `limit` characters of the body, and closes the connection if the body is longer. */
export async function textOf(answer: IncomingMessage, limit: number): Promise<string> {
  let text = '';
  // A character may be divided between two chunks, so the stream decodes them.
  for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > limit) break;
  }
  answer.destroy();
  return text.slice(0, limit);
}
