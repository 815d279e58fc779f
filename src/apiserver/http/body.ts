/** Reads request bodies within a size limit. */
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ApiError } from '../../api/meta/status.ts';
import type { HttpRequest } from '../port.ts';

const tooLarge = (limit: number): ApiError =>
  new ApiError('RequestEntityTooLarge', `Request entity too large: limit is ${limit}`);

const EMPTY = Buffer.alloc(0);

/**
 * Reads and decompresses the whole body. Throws or rejects with 'RequestEntityTooLarge'; the limit also applies to the
 * decompressed size.
 */
export function readBody(request: HttpRequest, limit: number): Promise<Buffer> {
  // An HTTP/1.1 request that announces no body has no body, and emits no 'end' event (`optimizeEmptyRequests`).
  if (request.readableEnded) return Promise.resolve(EMPTY);
  const announced = request.headers['content-length'];
  if (announced !== undefined && Number(announced) > limit) throw tooLarge(limit);
  const encoding = request.headers['content-encoding'];
  const zipped = encoding === 'gzip' || encoding === 'x-gzip';
  if (!zipped && encoding !== undefined && encoding !== '' && encoding !== 'identity') {
    throw new ApiError('UnsupportedMediaType', `content encoding ${JSON.stringify(encoding)} is not supported`);
  }
  return zipped ? readZipped(request, limit) : collect(request, limit);
}

function collect(source: Readable & Pick<HttpRequest, 'takeBody'>, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    // The listeners are not removed, because removing them costs more than reading the rest of a usual body.
    let settled = false;
    // The error is created only when it is needed, because its stack costs as much as a small request. Every request
    // emits 'close' after its body.
    const fail = (error: () => ApiError): void => {
      if (settled) return;
      settled = true;
      reject(error());
    };
    const take = (chunk: Buffer | null): boolean => {
      if (settled) return false;
      if (chunk === null) {
        settled = true;
        const [first] = chunks;
        resolve(first === undefined ? EMPTY : chunks.length === 1 ? first : Buffer.concat(chunks, length));
        return true;
      }
      length += chunk.length;
      chunks.push(chunk);
      if (length > limit) fail(() => tooLarge(limit));
      return !settled;
    };
    if (source.takeBody?.(take) !== true) {
      source.on('data', (chunk: Buffer) => {
        if (!settled && !take(chunk)) source.pause();
      });
      source.on('end', () => take(null));
    }
    source.on('close', () => fail(() => new ApiError('BadRequest', 'the request body ended early')));
    source.on('error', () => fail(() => new ApiError('BadRequest', 'the request body cannot be read')));
  });
}

async function readZipped(request: HttpRequest, limit: number): Promise<Buffer> {
  const gunzip = createGunzip();
  request.on('error', () => gunzip.destroy());
  request.pipe(gunzip);
  try {
    return await collect(gunzip, limit);
  } finally {
    request.unpipe(gunzip);
    gunzip.destroy();
  }
}
