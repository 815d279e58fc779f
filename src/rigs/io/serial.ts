import { execFile } from 'node:child_process';
import { close as closeFd, constants, open as openFd } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { ReadStream } from 'node:tty';
import { promisify } from 'node:util';
import { CodedError, ignore, messageOf } from '../../base/errors.ts';
import type { ByteStream } from '../../runtime/port.ts';

const run = promisify(execFile);
const openDescriptor = promisify(openFd);
const { O_RDWR, O_WRONLY, O_NOCTTY, O_NONBLOCK } = constants;
const STTY_MS = 5_000;
/**
 * Raw mode, eight data bits, no parity, one stop bit, no flow control. `raw` does not include the latter four, and an
 * earlier user of the line, such as the pod of another claim, may have changed them.
 */
const SETTINGS = ['raw', '-echo', 'clocal', 'cread', 'cs8', '-parenb', '-cstopb', '-crtscts'];
/** Delay before writing is retried while the line's buffer is full or flow control blocks the line. */
const FULL_MS = 10;

/**
 * Opens a serial line in raw mode at this speed, regardless of its earlier settings. Reads use the event loop, so a
 * silent line occupies no thread of the pool.
 */
export async function openSerial(path: string, baudRate: number): Promise<ByteStream> {
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  try {
    await run('stty', ['-F', path, ...SETTINGS, String(baudRate)], { env, timeout: STTY_MS });
  } catch (error) {
    throw new CodedError('failed', `${path} at ${baudRate} baud: ${messageOf(error)}`);
  }
  const output = await open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
  let input: ReadStream;
  try {
    const descriptor = await openDescriptor(path, O_RDWR | O_NOCTTY | O_NONBLOCK);
    try {
      input = new ReadStream(descriptor);
    } catch (error) {
      closeFd(descriptor, () => {});
      throw error;
    }
  } catch (error) {
    await output.close();
    throw error;
  }
  // Unplugging the device causes a read error. It is handled as the end of the stream.
  input.on('error', () => input.destroy());
  const closed = new AbortController();
  return {
    readable: chunksOf(input),
    write: (chunk) => writeAll(output, chunk, closed.signal),
    end: () => {},
    destroy() {
      if (closed.signal.aborted) return;
      closed.abort();
      input.destroy();
      void output.close().catch(ignore('the line is closed in any case'));
    },
  };
}

async function* chunksOf(input: ReadStream): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of input) yield chunk as Uint8Array;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}

async function writeAll(output: FileHandle, chunk: Uint8Array, signal: AbortSignal): Promise<void> {
  let offset = 0;
  while (offset < chunk.length && !signal.aborted) {
    try {
      const { bytesWritten } = await output.write(chunk, offset);
      offset += bytesWritten;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await delay(FULL_MS);
    }
  }
}
