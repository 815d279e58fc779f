/**
 * Passing requests on. Ordinary ones are piped; upgrades are spliced byte for byte once the back end has answered 101. Anything else
 * the back end says to an upgrade is returned and both connections are closed, so that no second request rides on a failed upgrade.
 */
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream';
import { ApiError, errors } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Exchange } from '../http/exchange.ts';
import { failureOf } from '../http/failures.ts';
import { isTrue, type ResourceRequestInfo } from '../http/request-info.ts';
import type { BackendRequest } from '../port.ts';
import type { RestContext } from '../rest/context.ts';
import { admitConnect } from './connect.ts';
import { kubeletTarget, proxyTarget, type Target } from './targets.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** Meant for the next hop only, or for us (RFC 9110 §7.6.1). */
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

function forwardedHeaders(headers: IncomingHttpHeaders, target: Target): OutgoingHttpHeaders {
  const forwarded: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers)) {
    if (
      name.startsWith(':') ||
      NOT_FORWARDED.has(name) ||
      name.startsWith('impersonate-') ||
      name.startsWith('x-remote-')
    )
      continue;
    if (value !== undefined) forwarded[name] = value;
  }
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  forwarded['host'] = `${host}:${target.port}`;
  return forwarded;
}

function backendRequest(
  target: Target,
  method: string,
  headers: OutgoingHttpHeaders,
  signal: AbortSignal,
): BackendRequest {
  return {
    scheme: target.scheme,
    host: target.host,
    port: target.port,
    method,
    path: target.path,
    headers,
    ...(target.tls === undefined ? {} : { tls: target.tls }),
    allowAddress: target.allowAddress,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    signal,
  };
}

async function targetOf(context: RestContext, info: ResourceRequestInfo): Promise<Target> {
  await context.cache.freshen();
  return info.subresource === 'proxy' ? proxyTarget(context, info) : kubeletTarget(context, info);
}

/** Ordinary requests: logs, proxied HTTP. exec, attach and portforward must be upgraded. */
export async function stream(context: RestContext, exchange: Exchange, info: ResourceRequestInfo): Promise<void> {
  if (info.subresource !== 'log' && info.subresource !== 'proxy') throw errors.badRequest('Upgrade request required');
  exchange.longRunning = info.subresource === 'proxy' || isTrue(info.query.get('follow'));
  if (info.subresource === 'proxy') await admitConnect(context, info, exchange.user, exchange.warnings);
  const target = await targetOf(context, info);
  const { request, response } = exchange;
  const headers = forwardedHeaders(request.headers, target);
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD' && info.subresource === 'proxy';
  if (!hasBody) delete headers['content-length'];
  const answer = await context.backends.request(
    backendRequest(target, request.method ?? 'GET', headers, exchange.signal),
    hasBody ? request : undefined,
  );
  if (info.subresource === 'log') {
    const status = answer.statusCode ?? 502;
    if (status !== 200) throw await kubeletFailure(answer, status, info);
    response.writeHead(200, exchange.headers('text/plain'));
  } else {
    const status = answer.statusCode ?? 502;
    if (status >= 300 && status < 400 && status !== 304) {
      answer.destroy();
      throw new ApiError('BadGateway', `the back end answered with a redirect (${status}), which is not followed`);
    }
    response.writeHead(status, answerHeaders(answer));
  }
  response.flushHeaders();
  await new Promise<void>((resolve) => {
    pipeline(answer, response, () => resolve());
  });
}

const MAX_FAILURE_TEXT = 8 * 1024;

/** What a kubelet says in plain text, as a Status. */
async function kubeletFailure(answer: IncomingMessage, status: number, info: ResourceRequestInfo): Promise<ApiError> {
  let text = '';
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MAX_FAILURE_TEXT) break;
  }
  answer.destroy();
  const message = text.trim().slice(0, MAX_FAILURE_TEXT);
  if (status === 404) return new ApiError('NotFound', message === '' ? `log of pod ${info.name} not found` : message);
  if (status === 400) return errors.badRequest(message);
  if (status === 401 || status === 403) {
    return new ApiError('InternalError', `the kubelet refused the API server's certificate: ${message}`);
  }
  return new ApiError('InternalError', message === '' ? `the kubelet answered ${status}` : message);
}

function answerHeaders(answer: IncomingMessage): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(answer.headers)) {
    if (NOT_FORWARDED.has(name) || value === undefined) continue;
    headers[name] = value;
  }
  return headers;
}

/** Upgrades: the client's socket and the kubelet's become one. The request has been authorised. */
export async function streamUpgrade(
  context: RestContext,
  request: IncomingMessage,
  info: ResourceRequestInfo,
  user: UserInfo,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  const abort = new AbortController();
  const onClose = (): void => abort.abort();
  socket.once('close', onClose);
  await admitConnect(context, info, user, []);
  const target = await targetOf(context, info);
  const headers = forwardedHeaders(request.headers, target);
  headers['connection'] = 'Upgrade';
  headers['upgrade'] = request.headers.upgrade ?? '';
  delete headers['content-length'];
  const answer = await context.backends.upgrade(backendRequest(target, request.method ?? 'GET', headers, abort.signal));
  if (!answer.upgraded) {
    await returnFailure(socket, answer.response);
    return;
  }
  const { response, socket: backend, head: first } = answer;
  const lines = [`HTTP/1.1 101 ${response.statusMessage ?? 'Switching Protocols'}`];
  for (let index = 0; index + 1 < response.rawHeaders.length; index += 2) {
    lines.push(`${response.rawHeaders[index]}: ${response.rawHeaders[index + 1]}`);
  }
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
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
      // What the other side has yet to read is delivered before it is closed.
      to.end();
      setTimeout(close, 1_000).unref();
    });
    from.pipe(to);
  }
  stopping.addEventListener('abort', close, { once: true });
}

/** A refusal goes to the client as it is, and the connection ends with it. */
async function returnFailure(socket: Duplex, response: IncomingMessage): Promise<void> {
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
  const status = response.statusCode ?? 502;
  const redirect = status >= 300 && status < 400;
  const type = response.headers['content-type'] ?? 'text/plain';
  if (redirect) {
    endUpgrade(
      socket,
      new ApiError('BadGateway', `the kubelet answered with a redirect (${status}), which is not followed`),
    );
    return;
  }
  socket.end(
    Buffer.concat([
      Buffer.from(
        `HTTP/1.1 ${status} ${response.statusMessage ?? ''}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]),
  );
}

/** Answers an upgrade request with a Status and closes the connection. */
export function endUpgrade(socket: Duplex, error: unknown): void {
  const { failure } = failureOf(error);
  const body = Buffer.from(JSON.stringify(failure.toStatus()));
  socket.end(
    Buffer.concat([
      Buffer.from(
        `HTTP/1.1 ${failure.httpCode} ${failure.reason}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n`,
      ),
      body,
    ]),
  );
}
