/** Streams response bodies with back-pressure, so that a slow client holds one chunk in memory, not the whole body. */
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip, type Exchange } from './exchange.ts';

const GZIP_FROM = 128 * 1024;
const PIECE = 64 * 1024;

/** Produces bytes on demand. */
export interface ByteSource {
  /** Writes the next bytes at the beginning of `target` and returns their number; 0 at the end. */
  fill(target: Buffer): number;
}

/** Sends `parts`, `length` bytes in total. Resolves when all bytes are written or the client has disconnected. */
export function streamBody(
  exchange: Exchange,
  length: number,
  parts: Iterable<Buffer>,
  contentType = 'application/json',
): Promise<void> {
  exchange.sentBytes = length;
  return stream(exchange, length, contentType, (target) => writeParts(target, parts));
}

/** Like `streamBody`, for large JSON of unknown length. */
export function streamSource(exchange: Exchange, source: ByteSource): Promise<void> {
  let bytes = 0;
  const fill = (target: Buffer): number => {
    const filled = source.fill(target);
    bytes += filled;
    exchange.sentBytes = bytes;
    return filled;
  };
  return stream(exchange, undefined, 'application/json', (target) => new Pieces(target).sendAll({ fill }));
}

async function stream(
  exchange: Exchange,
  length: number | undefined,
  contentType: string,
  write: (target: Writable) => Promise<void>,
): Promise<void> {
  const { response } = exchange;
  if (response.destroyed) return;
  const recorded = exchange.recordedFirst(200);
  if (recorded !== undefined) {
    await recorded;
    if (response.destroyed || response.headersSent) return;
  }
  const headers = exchange.headers(contentType);
  if (exchange.request.method === 'HEAD') {
    if (length !== undefined) headers['content-length'] = length;
    response.writeHead(200, headers);
    response.end();
    return;
  }
  if ((length === undefined || length >= GZIP_FROM) && acceptsGzip(exchange.request)) {
    headers['content-encoding'] = 'gzip';
    headers['vary'] = 'Accept-Encoding';
    response.writeHead(200, headers);
    const gzip = createGzip({ level: 1 });
    response.once('close', () => gzip.destroy());
    gzip.on('error', () => response.destroy());
    let bytes = 0;
    gzip.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    exchange.compressedBytes = new Promise((resolve) => gzip.once('end', () => resolve(bytes)));
    gzip.pipe(response);
    await write(gzip);
    gzip.end();
    return;
  }
  if (length !== undefined) headers['content-length'] = length;
  response.writeHead(200, headers);
  // Corking joins header, items and end of a short response into one write.
  response.cork();
  process.nextTick(() => response.uncork());
  await write(response);
  response.end();
}

/**
 * Writes `parts` at the speed of `target`, and joins small parts to reduce system calls. Resolves when all parts have
 * been written to the stream or `target` is closed.
 */
export async function writeParts(target: Writable, parts: Iterable<Buffer>): Promise<void> {
  const pieces = new Pieces(target);
  let pending: Buffer[] = [];
  let length = 0;
  for (const part of parts) {
    if (length > 0 && length + part.length > PIECE) {
      await pieces.send(pending, length);
      pending = [];
      length = 0;
    }
    if (pieces.isDisconnected) return;
    if (part.length < PIECE) {
      pending.push(part);
      length += part.length;
    } else await pieces.sendLarge(part);
  }
  if (length > 0 && !pieces.isDisconnected) target.write(Buffer.concat(pending, length));
}

/** Number of buffers: one is filled while the other is being sent. */
const BUFFERS = 2;
/** Emitted when a buffer is free again. */
const FREED = Symbol('freed');

/**
 * Sends pieces of a response from reused buffers, because new buffers for every large list would grow the heap faster
 * than the garbage collector frees them. A buffer is reused only when the write callback reports that its bytes were
 * sent: after `drain`, TLS and HTTP/2 may still read it.
 */
class Pieces {
  readonly #target: Writable;
  readonly #free: Buffer[] = [];
  #made = 0;
  #disconnected = false;

  constructor(target: Writable) {
    this.#target = target;
  }

  /** True if the client has disconnected. HTTP/2 responses report a disconnect only by an event. */
  get isDisconnected(): boolean {
    return this.#disconnected || this.#target.destroyed;
  }

  /** Copies `parts`, `length` bytes in total, into a free buffer and sends it. */
  async send(parts: readonly Buffer[], length: number): Promise<void> {
    const buffer = await this.#buffer();
    if (buffer === undefined) return;
    let at = 0;
    for (const part of parts) at += part.copy(buffer, at);
    this.#write(buffer, length);
  }

  /**
   * Sends everything from `source`. Resolves when all bytes have been written to the stream or the target is closed.
   */
  async sendAll(source: ByteSource): Promise<void> {
    for (;;) {
      const buffer = await this.#buffer();
      const length = buffer === undefined ? 0 : source.fill(buffer);
      if (buffer === undefined || length === 0) return;
      this.#write(buffer, length);
    }
  }

  /** A free buffer. Undefined if the client has disconnected. */
  async #buffer(): Promise<Buffer | undefined> {
    if (this.#free.length === 0 && this.#made === BUFFERS) await this.#until(FREED);
    return this.isDisconnected ? undefined : (this.#free.pop() ?? this.#another());
  }

  #write(buffer: Buffer, length: number): void {
    this.#target.write(buffer.subarray(0, length), (error) => {
      // After a failure the buffer is not reused, because the transport may still read it.
      if (error === undefined || error === null) this.#free.push(buffer);
      else this.#disconnected = true;
      this.#target.emit(FREED);
    });
  }

  /** Sends a large part without copying it. */
  async sendLarge(part: Buffer): Promise<void> {
    if (!this.#target.write(part)) await this.#until('drain');
  }

  #another(): Buffer {
    this.#made += 1;
    return Buffer.allocUnsafeSlow(PIECE);
  }

  /** Resolves when the event is emitted, or when the target is closed. */
  #until(event: 'drain' | typeof FREED): Promise<void> {
    const target = this.#target;
    if (target.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const settle = (): void => {
        target.removeListener(event, settle);
        target.removeListener('close', close);
        resolve();
      };
      const close = (): void => {
        this.#disconnected = true;
        settle();
      };
      target.once(event, settle);
      target.once('close', close);
    });
  }
}
