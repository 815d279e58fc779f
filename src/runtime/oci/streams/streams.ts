/** Bridges between Node's streams and the byte streams of the runtime port. */
import type { Writable } from 'node:stream';
import { PassThrough } from 'node:stream';
import { CodedError } from '../../../base/errors.ts';

export interface InputSink {
  write(chunk: Uint8Array): Promise<void>;
  end(): void;
}

/** Writes resolve when the stream accepts more, and reject with CodedError 'closed' after it has closed. */
export function inputSink(stream: Writable): InputSink {
  stream.on('error', () => {});
  return {
    write: (chunk) =>
      new Promise((resolve, reject) => {
        const closed = (): void => reject(new CodedError('closed', 'the process closed its input'));
        if (!stream.writable) return closed();
        stream.write(chunk, (error) => {
          if (error === null || error === undefined) resolve();
          else closed();
        });
      }),
    end: () => {
      stream.end();
    },
  };
}

/**
 * A pipe with a buffer of 64 KiB: `push` resolves when there is room; data pushed after the reader has left is dropped.
 */
export interface OutputPipe {
  readonly readable: AsyncIterable<Uint8Array>;
  push(chunk: Uint8Array): Promise<void>;
  end(): void;
  /** Reports that the reader has left: waiting and later pushes resolve. */
  abandon(): void;
}

export function outputPipe(): OutputPipe {
  const stream = new PassThrough({ highWaterMark: 64 * 1024 });
  stream.on('error', () => {});
  return {
    readable: stream,
    push: (chunk) => {
      if (stream.destroyed || stream.write(chunk)) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          stream.off('drain', done).off('close', done);
          resolve();
        };
        stream.on('drain', done).on('close', done);
      });
    },
    end: () => {
      stream.end();
    },
    abandon: () => {
      stream.destroy();
    },
  };
}
