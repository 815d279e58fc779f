/** Streams response bodies with back-pressure: a slow client holds one chunk, not the whole body. */
import type { Writable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { acceptsGzip, type Exchange } from './exchange.ts';

const GZIP_FROM = 128 * 1024;
const PIECE = 64 * 1024;

/** Bytes that are made when there is memory for them. */
export interface ByteSource {
  /** Fills `target` from its beginning with what comes next. Returns how much that is; 0 at the end. */
  fill(target: Buffer): number;
}

/** Sends `length` bytes that `parts` yields. Resolves when all is written or the client is gone. */
export function streamBody(
  exchange: Exchange,
  length: number,
  parts: Iterable<Buffer>,
  contentType = 'application/json',
): Promise<void> {
  exchange.sentBytes = length;
  return stream(exchange, length, contentType, (target) => writeParts(target, parts));
}

/** As `streamBody`, for large JSON of unknown length. */
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
  // Head, items and tail of a short answer leave together.
  response.cork();
  process.nextTick(() => response.uncork());
  await write(response);
  response.end();
}

/**
 * Writes `parts` as fast as `target` takes them, small ones joined into pieces worth a system call each. Resolves when
 * all have been handed over, or `target` is gone.
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
    if (pieces.isGone) return;
    if (part.length < PIECE) {
      pending.push(part);
      length += part.length;
    } else await pieces.sendLarge(part);
  }
  if (length > 0 && !pieces.isGone) target.write(Buffer.concat(pending, length));
}

/** One is filled while the other one is sent. */
const BUFFERS = 2;
/** Emitted when a buffer is free again. */
const FREED = Symbol('freed');

/**
 * Pieces of one answer, in buffers that are used again: a new one for each would be left to the garbage collector,
 * which looks for them less often than a list of everything makes them. A buffer is free when the stream says that its
 * bytes have gone, not when it takes more: TLS and HTTP/2 may still have to read it.
 */
class Pieces {
  readonly #target: Writable;
  readonly #free: Buffer[] = [];
  #made = 0;
  #gone = false;

  constructor(target: Writable) {
    this.#target = target;
  }

  /** The client stopped reading. An HTTP/2 response reports it by its event only. */
  get isGone(): boolean {
    return this.#gone || this.#target.destroyed;
  }

  /** Sends what is in `parts`, `length` bytes in all, once there is a buffer for it. */
  async send(parts: readonly Buffer[], length: number): Promise<void> {
    const buffer = await this.#buffer();
    if (buffer === undefined) return;
    let at = 0;
    for (const part of parts) at += part.copy(buffer, at);
    this.#write(buffer, length);
  }

  /** Sends all that `source` gives; resolves when it has been handed over, or the target is gone. */
  async sendAll(source: ByteSource): Promise<void> {
    for (;;) {
      const buffer = await this.#buffer();
      const length = buffer === undefined ? 0 : source.fill(buffer);
      if (buffer === undefined || length === 0) return;
      this.#write(buffer, length);
    }
  }

  /** A free buffer; undefined when the client stopped reading. */
  async #buffer(): Promise<Buffer | undefined> {
    if (this.#free.length === 0 && this.#made === BUFFERS) await this.#until(FREED);
    return this.isGone ? undefined : (this.#free.pop() ?? this.#another());
  }

  #write(buffer: Buffer, length: number): void {
    this.#target.write(buffer.subarray(0, length), (error) => {
      // After a failure the transport may still read the buffer.
      if (error === undefined || error === null) this.#free.push(buffer);
      else this.#gone = true;
      this.#target.emit(FREED);
    });
  }

  /** Sends a part as it is: copying it would cost more than a system call. */
  async sendLarge(part: Buffer): Promise<void> {
    if (!this.#target.write(part)) await this.#until('drain');
  }

  #another(): Buffer {
    this.#made += 1;
    return Buffer.allocUnsafeSlow(PIECE);
  }

  /** Resolves when a buffer is free or the target drained, or is gone. */
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
        this.#gone = true;
        settle();
      };
      target.once(event, settle);
      target.once('close', close);
    });
  }
}
