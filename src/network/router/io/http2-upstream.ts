/** Forwards requests to HTTP/2 servers. gRPC needs trailers and both directions at once. */
import type { ServerResponse } from 'node:http';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  Http2ServerResponse,
  type OutgoingHttpHeaders,
} from 'node:http2';
import type { Choice } from '../core/port.ts';
import { type Exchange, isHttp2, ownHeaders, sendResponse, writeHead } from './exchange.ts';
import { asObject, type RawHeaders, returned } from './headers.ts';
import type { RouteMetrics } from './metrics.ts';

export interface Http2Forwarding {
  readonly exchange: Exchange;
  readonly choice: Choice;
  readonly headers: RawHeaders;
  readonly session: ClientHttp2Session;
  readonly metrics: RouteMetrics;
  /** Called when the exchange has ended. */
  readonly settled: () => void;
}

export function forwardHttp2({ exchange, choice, headers, session, metrics, settled }: Http2Forwarding): void {
  const { request, response: answering, backend, path, target } = exchange;
  // The response types of HTTP/1 and HTTP/2 differ, but have the same methods.
  const response = answering as ServerResponse;
  const counters = metrics.of(backend);
  counters.sessions++;
  const { host, ...others } = asObject(headers);
  let stream: ClientHttp2Stream;
  try {
    stream = session.request({
      ...others,
      ':method': target.method,
      ':path': path,
      ':authority': String(host),
      ':scheme': backend.upstream.tls ? 'https' : 'http',
      ...(request.headers.te === 'trailers' ? { te: 'trailers' } : {}),
    });
  } catch {
    // A header is not allowed in HTTP/2, or the session has just ended.
    settled();
    metrics.responded(backend, 502);
    sendResponse(answering, 502, isHttp2(request) ? [] : ['Connection', 'close']);
    return;
  }
  let isAnswered = false;
  const fail = (status: number): void => {
    stream.close(constants.NGHTTP2_CANCEL);
    settled();
    if (isAnswered) response.destroy();
    else {
      isAnswered = true;
      metrics.responded(backend, status);
      sendResponse(answering, status);
    }
  };
  const connecting = setTimeout(() => fail(503), backend.options.connectTimeoutMs);
  if (!session.connecting) clearTimeout(connecting);
  else session.once('connect', () => clearTimeout(connecting));
  stream.setTimeout(backend.options.serverTimeoutMs, () => fail(504));
  stream.on('error', () => fail(session.connecting ? 503 : 502));
  stream.on('response', (found) => {
    const status = Number(found[':status'] ?? 502);
    const raw: RawHeaders = [];
    for (const [name, value] of Object.entries(found))
      for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) raw.push(name, String(each));
    const all = [...returned(raw, undefined), ...ownHeaders(exchange, choice)];
    if (!writeHead(answering, status, '', all)) return fail(502);
    isAnswered = true;
    metrics.responded(backend, status);
  });
  stream.on('trailers', (trailers) => {
    if (!(answering instanceof Http2ServerResponse)) return;
    try {
      response.addTrailers(trailers as OutgoingHttpHeaders);
    } catch {
      response.destroy();
    }
  });
  stream.on('data', (chunk: Buffer) => {
    counters.bytesOut += chunk.length;
    if (!response.write(chunk)) stream.pause();
  });
  response.on('drain', () => stream.resume());
  stream.on('end', () => {
    // The stream also ends when the server resets it before a response; the `close` handler detects this case.
    if (isAnswered) response.end();
  });
  stream.on('close', () => {
    clearTimeout(connecting);
    settled();
    if (!isAnswered) fail(502);
    else if (stream.rstCode !== constants.NGHTTP2_NO_ERROR && !response.writableEnded) response.destroy();
  });
  response.once('close', () => {
    if (!response.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
  });
  request.on('data', (chunk: Buffer) => {
    counters.bytesIn += chunk.length;
    if (!stream.write(chunk)) request.pause();
  });
  stream.on('drain', () => request.resume());
  request.once('end', () => stream.end());
}
