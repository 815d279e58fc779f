/**
 * HTTP server of `kubectl proxy`. It forwards requests and upgrades to the API server with the credentials of the
 * client.
 */

import { createReadStream } from 'node:fs';
import { lstat, realpath, rm, stat } from 'node:fs/promises';
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as plainRequest,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { type Agent, request as tlsRequest } from 'node:https';
import { extname, join, normalize, sep } from 'node:path';
import type { Duplex } from 'node:stream';
import { hostOfUrl, portOfUrl } from '../../base/addresses/url-endpoint.ts';
import { messageOf } from '../../base/errors.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import type { ApiProxyOptions, LocalListener } from '../../kubectl/port.ts';

export interface Upstream {
  readonly server: string;
  /** Returns the agent and headers for a request. Called before each request, because credentials may change. */
  access(): Promise<UpstreamAccess>;
}

export interface UpstreamAccess {
  /** Agent with the TLS credentials; undefined for plain HTTP. */
  readonly agent: Agent | undefined;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.txt': 'text/plain; charset=utf-8',
};
/** Headers that are valid for one connection only and are not forwarded (RFC 9110 §7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

/** Listens until `close` is called. Rejects with ClientError if the server cannot listen. */
export async function serveApiProxy(upstream: Upstream, options: ApiProxyOptions): Promise<LocalListener> {
  if (options.unixSocket !== undefined) await removeSocket(options.unixSocket);
  const base = new URL(upstream.server);
  const send = base.protocol === 'http:' ? plainRequest : tlsRequest;
  const call = async (request: IncomingMessage, path: string, headers: IncomingMessage['headers']) => {
    const { agent, headers: own } = await upstream.access();
    return send({
      method: request.method,
      host: hostOfUrl(base),
      port: portOfUrl(base),
      path: (options.appendServerPath ? base.pathname.replace(/\/+$/, '') : '') + path,
      headers: { ...headers, host: base.host, ...own },
      ...(agent === undefined ? {} : { agent }),
    });
  };
  const routeOf = (request: IncomingMessage): Route => route(request, options);
  const server = createServer((request, response) => {
    const chosen = routeOf(request);
    if (chosen.to === 'nowhere') return void response.writeHead(chosen.code, chosen.headers).end(chosen.text);
    if (chosen.to === 'file') return void sendFile(chosen.directory, chosen.path, response);
    const headers = { ...request.headers };
    for (const name of HOP_BY_HOP) delete headers[name];
    // A body without a length must be sent chunked. node:http adds no framing to a GET or DELETE, so the API server
    // would read the body as the next request.
    if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
    const fail = (error: unknown): void => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { 'content-type': 'text/plain' }).end(`${messageOf(error)}\n`);
    };
    call(request, chosen.path, headers).then((out) => {
      out.once('response', (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on('error', () => response.destroy()).pipe(response);
      });
      out.on('error', fail);
      response.on('close', () => out.destroy());
      if (response.destroyed) out.destroy();
      else request.on('error', () => out.destroy()).pipe(out);
    }, fail);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const chosen = routeOf(request);
    if (chosen.to !== 'server') {
      const text = chosen.to === 'file' ? '403 Forbidden' : `${chosen.code} ${STATUS_CODES[chosen.code]}`;
      return void socket.end(`HTTP/1.1 ${text}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    }
    socket.on('error', () => socket.destroy());
    // An upgrade has no body, so headers that declare one are removed. Otherwise the API server would read the next
    // bytes as the body.
    const { 'content-length': _, 'transfer-encoding': __, ...headers } = request.headers;
    call(request, chosen.path, headers).then(
      (out) => connectUpgrade(out, socket, head),
      () => socket.destroy(),
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new ClientError(`listen ${options.unixSocket ?? `${options.address}:${options.port}`}: ${messageOf(error)}`),
      ),
    );
    const listening = (): void => {
      const bound = server.address();
      resolve({
        port: typeof bound === 'object' && bound !== null ? bound.port : 0,
        close: () => {
          server.close();
          server.closeAllConnections();
        },
      });
    };
    if (options.unixSocket === undefined) server.listen(options.port, options.address, listening);
    else {
      // The umask gives the socket its mode when it is created, so only this user can ever connect.
      const before = process.umask(0o077);
      server.listen(options.unixSocket, listening);
      process.umask(before);
    }
  });
}

/** Sends the request. When the server agrees to the upgrade, connects both sides. */
function connectUpgrade(out: ClientRequest, socket: Duplex, head: Buffer): void {
  out.once('upgrade', (answer, peer: Duplex, first: Buffer) => {
    const lines = answer.rawHeaders.flatMap((name, index, all) =>
      index % 2 === 0 ? [`${name}: ${all[index + 1]}`] : [],
    );
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
    if (first.length > 0) socket.write(first);
    if (head.length > 0) peer.write(head);
    for (const [from, to] of [
      [socket, peer],
      [peer, socket],
    ] as const)
      from
        .on('error', () => to.destroy())
        .on('close', () => to.destroy())
        .pipe(to);
  });
  out.once('response', (answer) => {
    socket.end(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\nConnection: close\r\n\r\n`);
    answer.resume();
  });
  out.once('error', () => socket.destroy());
  socket.once('close', () => out.destroy());
  if (socket.destroyed) out.destroy();
  else out.end();
}

/** Removes a socket file, even if a process uses it, as kubectl does. Files of other types are kept. */
async function removeSocket(path: string): Promise<void> {
  const facts = await lstat(path).catch(() => undefined);
  if (facts?.isSocket() === true) await rm(path, { force: true });
}

type Route =
  | { readonly to: 'server'; readonly path: string }
  | { readonly to: 'file'; readonly directory: string; readonly path: string }
  | {
      readonly to: 'nowhere';
      readonly code: 307 | 400 | 403 | 404;
      readonly headers: Readonly<Record<string, string>>;
      readonly text: string;
    };

const nowhere = (code: 307 | 400 | 403 | 404, text: string, more: Readonly<Record<string, string>> = {}): Route => ({
  to: 'nowhere',
  code,
  headers: { 'content-type': 'text/plain; charset=utf-8', ...more },
  text: `${text}\n`,
});

/**
 * Destination of a request. The filter receives the decoded path, so that an escaped path cannot bypass it. A path with
 * `.`, `..` or empty segments is redirected to its short form, as Go's ServeMux does. If these segments are escaped,
 * the path is rejected.
 */
function route(
  { method = 'GET', url = '/', headers, headersDistinct }: IncomingMessage,
  options: ApiProxyOptions,
): Route {
  const { apiPrefix, www } = options;
  const [path = '/'] = url.split('?', 1);
  const query = url.slice(path.length);
  const accepts = (decoded: string): boolean => options.accepts(method, headers.host ?? '', decoded);
  if ((headersDistinct['host']?.length ?? 0) > 1) return nowhere(400, '400 Bad Request: too many Host headers');
  if (!path.startsWith('/')) return nowhere(404, '404 page not found');
  const short = normalize(path);
  if (short !== path) {
    if (!accepts(short)) return nowhere(403, 'Forbidden');
    return nowhere(307, 'Temporary Redirect', { location: short + query });
  }
  const decoded = decodedPath(path);
  if (decoded === undefined || /^\/\/|\/\.\.?(?:\/|$)/.test(decoded)) return nowhere(400, '400 Bad Request');
  if (www !== undefined && decoded.startsWith(www.prefix))
    return accepts(decoded)
      ? { to: 'file', directory: www.directory, path: decoded.slice(www.prefix.length) }
      : nowhere(403, 'Forbidden');
  if (!path.startsWith(apiPrefix)) return nowhere(404, '404 page not found');
  // With the prefix `/custom/`, the path `/custom/api/v1` becomes `/api/v1` at the API server.
  const strip = (text: string): string => (apiPrefix.startsWith('/api') ? text : text.slice(apiPrefix.length - 1));
  return accepts(strip(decoded)) ? { to: 'server', path: strip(path) + query } : nowhere(403, 'Forbidden');
}

function decodedPath(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    // The path contains an invalid escape sequence. Go's server rejects it too.
    return undefined;
  }
}

/** Sends a file below the directory. Links that lead out of the directory are not followed. */
async function sendFile(directory: string, path: string, response: ServerResponse): Promise<void> {
  try {
    const root = await realpath(directory);
    let file = await realpath(join(root, path));
    if ((await stat(file)).isDirectory()) file = await realpath(join(file, 'index.html'));
    if (!file.startsWith(root === sep ? sep : root + sep)) throw new Error('outside of the directory');
    if (!(await stat(file)).isFile()) throw new Error('not a regular file');
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  } catch {
    // The response does not reveal whether a file outside of the directory exists.
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
  }
}
