/** Upgrades such as WebSocket: the request is forwarded to a server, and a response 101 joins both connections. */
import { type ClientRequest, type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { endSocket } from '../../../wire/connections/end-socket.ts';
import { type Exchange, ownHeaders } from './exchange.ts';
import { forwarded, type RawHeaders, returned } from './headers.ts';
import type { HttpProxy, ProxyParts } from './http-proxy.ts';
import { page, reasonOf } from './pages.ts';
import { splice } from './splice.ts';

/** Time for a client to close its side after a response other than 101. */
const LINGER_MS = 1_000;
/** Time limit for a client that stops to read such a response. */
const UNREAD_MS = 10_000;

export function upgrade(
  proxy: HttpProxy,
  { balancing, metrics, upstreams }: ProxyParts,
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  scheme: 'https' | 'http',
): void {
  client.on('error', () => client.destroy());
  if (proxy.isBusy(request.socket)) {
    client.destroy();
    return;
  }
  // Unlike `endSocket`, this waits for a slow client that still reads the response.
  const endResponse = (): void => {
    request.socket.setTimeout(UNREAD_MS, () => client.destroy());
    client.end(() => setTimeout(() => client.destroy(), LINGER_MS).unref());
  };
  const refuse = (status: number, more: RawHeaders = []): void => {
    const body = page(status);
    const headers: RawHeaders = ['Content-Type', 'text/html; charset=utf-8', 'Content-Length', String(body.length)];
    endSocket(client, `${headText(status, reasonOf(status), [...headers, 'Connection', 'close', ...more])}${body}`);
  };
  const admitted = proxy.admit(request, scheme, (status, headers) =>
    refuse(status, headers[0] === 'Connection' ? [] : headers),
  );
  if (admitted === undefined) return;
  // An upgrade request has no body. A request that declares a body could hide a second request.
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (length !== '0' || coding !== undefined) {
    refuse(400);
    return;
  }
  const attempt = (exchange: Omit<Exchange, 'response'>): void => {
    const { backend, path, target } = exchange;
    const choice = proxy.choose(exchange);
    if (choice === undefined) {
      const unavailable = (): void => {
        metrics.responded(backend, 503);
        refuse(503);
      };
      if (!proxy.holdIdle(exchange, client, attempt, unavailable)) unavailable();
      return;
    }
    const headers = forwarded(request.rawHeaders, request.headers, proxy.forwardingOf(exchange));
    headers.push('Connection', 'Upgrade', 'Upgrade', request.headers.upgrade ?? '');
    let upstream: ClientRequest;
    try {
      upstream = upstreams.upgrade({ backend, choice, method: target.method, path, headers });
    } catch {
      refuse(400);
      return;
    }
    const counters = metrics.of(backend);
    let isConnected = false;
    let timedOut = false;
    let isAnswered = false;
    balancing.opened(choice);
    upstream.once('close', () => balancing.closed(choice));
    const connecting = setTimeout(
      () => upstream.destroy(new Error('connect timeout')),
      backend.options.connectTimeoutMs,
    );
    upstream.once('socket', (socket) =>
      socket.once(backend.upstream.tls ? 'secureConnect' : 'connect', () => {
        isConnected = true;
        clearTimeout(connecting);
      }),
    );
    upstream.setTimeout(backend.options.serverTimeoutMs, () => {
      timedOut = true;
      upstream.destroy(new Error('server timeout'));
    });
    upstream.once('upgrade', (incoming: IncomingMessage, server: Socket, first: Buffer) => {
      clearTimeout(connecting);
      counters.sessions++;
      metrics.responded(backend, 101);
      server.setTimeout(0);
      const passed = returned(incoming.rawHeaders, incoming.headers.connection);
      const upgraded = ['Connection', 'Upgrade', 'Upgrade', incoming.headers.upgrade ?? ''];
      const own = ownHeaders(exchange, choice);
      client.write(headText(101, incoming.statusMessage ?? '', [...upgraded, ...passed, ...own]), 'latin1');
      if (first.length > 0) client.write(first);
      if (head.length > 0) server.write(head);
      splice(client, server, backend.options.tunnelTimeoutMs);
    });
    upstream.once('response', (incoming) => {
      clearTimeout(connecting);
      const status = incoming.statusCode ?? 502;
      if (status < 200 || status > 599) return void upstream.destroy(new Error('invalid HTTP status'));
      metrics.responded(backend, status);
      const passed = returned(incoming.rawHeaders, incoming.headers.connection);
      isAnswered = true;
      client.write(headText(status, incoming.statusMessage ?? '', [...passed, 'Connection', 'close']), 'latin1');
      incoming.pipe(client, { end: false });
      incoming.once('end', endResponse);
      incoming.once('close', () => {
        if (!incoming.complete) client.destroy();
      });
    });
    upstream.on('error', () => {
      clearTimeout(connecting);
      // The listener of the response ends the client.
      if (isAnswered) return;
      if (!isConnected && !timedOut) attempt(exchange);
      else if (client.writable) refuse(timedOut ? 504 : 502);
    });
    client.once('close', () => upstream.destroy());
    upstream.end();
  };
  attempt(admitted);
}

/** Text of a response head. The values come from parsed messages or constants, so they cannot contain CR or LF. */
function headText(status: number, reason: string, headers: RawHeaders): string {
  const lines = [`HTTP/1.1 ${status} ${reason || (STATUS_CODES[status] ?? '')}`];
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  return `${lines.join('\r\n')}\r\n\r\n`;
}
