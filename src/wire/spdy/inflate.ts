/** Decompresses SPDY header blocks: one zlib stream for the whole session, flushed at the end of every block. */
import { constants, createInflate } from 'node:zlib';
import { CodedError } from '../../base/errors.ts';
import { SPDY_DICTIONARY } from './dictionary.ts';

/** Limit for one inflated block; a larger block is an attack. */
const MAX_BLOCK_BYTES = 64 * 1024;

export interface HeaderInflate {
  /** Blocks must be passed in the order received, one at a time. Throws CodedError 'protocol'. */
  inflate(block: Uint8Array): Promise<Buffer>;
  close(): void;
}

export function createHeaderInflate(): HeaderInflate {
  const zlib = createInflate({
    dictionary: SPDY_DICTIONARY,
    flush: constants.Z_SYNC_FLUSH,
    finishFlush: constants.Z_SYNC_FLUSH,
  });
  let parts: Buffer[] = [];
  let size = 0;
  let reject: ((error: Error) => void) | undefined;
  zlib.on('data', (part: Buffer) => {
    size += part.length;
    if (size > MAX_BLOCK_BYTES) zlib.destroy(new CodedError('protocol', 'SPDY header block is too large'));
    else parts.push(part);
  });
  zlib.on('error', (error) => {
    reject?.(new CodedError('protocol', `SPDY header block: ${error.message}`, { cause: error }));
    reject = undefined;
  });
  zlib.on('close', () => {
    reject?.(new CodedError('protocol', 'SPDY header stream closed'));
    reject = undefined;
  });
  return {
    inflate: (block) =>
      new Promise((resolve, fail) => {
        if (zlib.destroyed) {
          fail(new CodedError('protocol', 'SPDY header stream closed'));
          return;
        }
        reject = fail;
        zlib.write(block, () => {
          if (reject === undefined) return;
          // The 'data' listener must get the buffered output before the block counts as complete.
          while (zlib.read() !== null);
          reject = undefined;
          const inflated = Buffer.concat(parts);
          parts = [];
          size = 0;
          resolve(inflated);
        });
      }),
    close: () => {
      zlib.destroy();
    },
  };
}
