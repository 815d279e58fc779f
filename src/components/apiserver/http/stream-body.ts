/** Bodies in pieces, with back-pressure: a slow client holds one piece, not the whole answer. */
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip, type Exchange } from './exchange.ts';

const GZIP_FROM = 128 * 1024;
const PIECE = 64 * 1024;

/** Joins small buffers into pieces worth a system call each. */
export function* pieces(parts: Iterable<Buffer>): Generator<Buffer> {
  let pending: Buffer[] = [];
  let length = 0;
  for (const part of parts) {
    if (part.length >= PIECE) {
      // Large parts go as they are: copying them would cost more than a system call.
      if (length > 0) yield Buffer.concat(pending, length);
      pending = [];
      length = 0;
      yield part;
      continue;
    }
    pending.push(part);
    length += part.length;
    if (length >= PIECE) {
      yield Buffer.concat(pending, length);
      pending = [];
      length = 0;
    }
  }
  if (length > 0) yield Buffer.concat(pending, length);
}

/** Sends `length` bytes that `parts` yields. Resolves when all is written or the client is gone. */
export async function streamBody(
  exchange: Exchange,
  length: number,
  parts: Iterable<Buffer>,
  contentType = 'application/json',
): Promise<void> {
  const { response } = exchange;
  if (response.destroyed) return;
  const headers = exchange.headers(contentType);
  if (exchange.request.method === 'HEAD') {
    headers['content-length'] = length;
    response.writeHead(200, headers);
    response.end();
    return;
  }
  if (length >= GZIP_FROM && acceptsGzip(exchange.request)) {
    headers['content-encoding'] = 'gzip';
    headers['vary'] = 'Accept-Encoding';
    response.writeHead(200, headers);
    const gzip = createGzip({ level: 1 });
    response.once('close', () => gzip.destroy());
    gzip.on('error', () => response.destroy());
    gzip.pipe(response);
    await writeAll(gzip, parts);
    return;
  }
  headers['content-length'] = length;
  response.writeHead(200, headers);
  // Head, items and tail of a short answer leave together.
  response.cork();
  process.nextTick(() => response.uncork());
  await writeAll(response, parts);
}

async function writeAll(target: Writable, parts: Iterable<Buffer>): Promise<void> {
  for (const piece of pieces(parts)) {
    if (target.destroyed) return;
    if (!target.write(piece)) await drained(target);
  }
  target.end();
}

/** Resolves when `target` takes more, or never will: then it is destroyed. */
export function drained(target: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      target.removeListener('drain', done);
      target.removeListener('close', done);
      resolve();
    };
    target.once('drain', done);
    target.once('close', done);
  });
}
