/** HTTP server of `kubectl proxy`: passes requests and upgrades on with the credentials of the client. */

import { createReadStream } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, request as plainRequest, type ServerResponse } from 'node:http';
import { type Agent, request as tlsRequest } from 'node:https';
import { extname, join, sep } from 'node:path';
import type { Duplex } from 'node:stream';
import { messageOf } from '../../base/errors.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import type { ApiProxyOptions, LocalListener } from '../../kubectl/port.ts';

export interface Upstream {
  readonly server: string;
  /** Has the credentials of TLS; undefined for plain HTTP. */
  readonly agent: Agent | undefined;
  readonly headers: Readonly<Record<string, string | string[]>>;
}

const TYPES: Readonly<Record<string, string>> = {
  ...{
    '.html': 'text/html; charset=utf-8',
    '.css': 'text/css; charset=utf-8',
    '.js': 'text/javascript; charset=utf-8',
  },
  ...{ '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.txt': 'text/plain; charset=utf-8' },
};
/** Headers of one connection, which are not passed on (RFC 9110 §7.6.1). */
const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authorization', 'te', 'trailer', 'transfer-encoding', 'upgrade'];

/** Listens until `close`. Rejects with ClientError if the address is in use. */
export function serveApiProxy(upstream: Upstream, options: ApiProxyOptions): Promise<LocalListener> {
  const base = new URL(upstream.server);
  const send = base.protocol === 'http:' ? plainRequest : tlsRequest;
  const call = (request: IncomingMessage, path: string, headers: IncomingMessage['headers']) =>
    send({
      method: request.method,
      host: base.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: base.port === '' ? (base.protocol === 'http:' ? 80 : 443) : Number(base.port),
      path: (options.appendServerPath ? base.pathname.replace(/\/+$/, '') : '') + path,
      headers: { ...headers, host: base.host, ...upstream.headers },
      ...(upstream.agent === undefined ? {} : { agent: upstream.agent }),
    });
  const pathFor = (request: IncomingMessage): string | undefined => {
    const url = request.url ?? '/';
    if (!url.startsWith(options.apiPrefix)) return undefined;
    // `/custom/api/v1` of the prefix `/custom/` is `/api/v1` of the server.
    return options.apiPrefix === '/' ? url : `/${url.slice(options.apiPrefix.length)}`;
  };
  const server = createServer((request, response) => {
    if (!options.accepts(request.method ?? 'GET', request.headers.host ?? '', pathOnly(request)))
      return refuse(response);
    const { www } = options;
    if (www !== undefined && pathOnly(request).startsWith(www.prefix))
      return void sendFile(www.directory, pathOnly(request).slice(www.prefix.length), response);
    const path = pathFor(request);
    if (path === undefined)
      return void response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
    const headers = { ...request.headers };
    for (const name of HOP_BY_HOP) delete headers[name];
    const out = call(request, path, headers);
    out.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy()).pipe(response);
    });
    out.on('error', (error) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { 'content-type': 'text/plain' }).end(`${messageOf(error)}\n`);
    });
    response.on('close', () => out.destroy());
    request.on('error', () => out.destroy()).pipe(out);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const path = pathFor(request);
    if (!options.accepts(request.method ?? 'GET', request.headers.host ?? '', pathOnly(request)) || path === undefined)
      return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\nConnection: close\r\n\r\nForbidden');
    const out = call(request, path, request.headers);
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
    out.end();
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
    else server.listen(options.unixSocket, listening);
  });
}

const pathOnly = ({ url = '/' }: IncomingMessage): string => url.split('?')[0] ?? '/';

function refuse(response: ServerResponse): void {
  response.writeHead(403, { 'content-type': 'text/plain; charset=utf-8' }).end('Forbidden');
}

/** A file below the directory; links that lead out of it are not followed. */
async function sendFile(directory: string, path: string, response: ServerResponse): Promise<void> {
  try {
    const root = await realpath(directory);
    let file = await realpath(join(root, decodeURIComponent(path)));
    if ((await stat(file)).isDirectory()) file = await realpath(join(file, 'index.html'));
    if (!file.startsWith(root + sep)) throw new Error('outside of the directory');
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
  } catch {
    // A missing file and one outside of the directory are answered alike.
    response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
  }
}
