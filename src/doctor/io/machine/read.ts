/** Reads files and directories and runs programs, with limits of size and time. */
import { execFile } from 'node:child_process';
import { open, readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { CodedError } from '../../../base/errors.ts';

const MAX_FILE_BYTES = 1 << 20;
const MAX_ENTRIES = 20_000;
const MAX_OUTPUT_BYTES = 8 << 20;

/** The first `maxBytes` of a file (default 1 MiB); '' if it cannot be read. */
export async function textOf(path: string, maxBytes = MAX_FILE_BYTES): Promise<string> {
  return (await textIfPresent(path, maxBytes)) ?? '';
}

/**
 * The first `maxBytes` of a file; undefined if it cannot be read. Files in /proc report no size, so the file is read in
 * pieces.
 */
export async function textIfPresent(path: string, maxBytes = MAX_FILE_BYTES): Promise<string | undefined> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const pieces: Buffer[] = [];
    let length = 0;
    while (length < maxBytes) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(65_536, maxBytes - length)));
      if (bytesRead === 0) break;
      pieces.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
    }
    return Buffer.concat(pieces).toString('utf8');
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}

/** Sorted names of the entries in a directory; empty if it cannot be read. */
export async function entriesOf(path: string): Promise<string[]> {
  const names = await readdir(path).catch(() => []);
  return names.slice(0, MAX_ENTRIES).sort();
}

/** Integer in a file; NaN if it cannot be read or contains no integer. */
export async function numberOf(path: string): Promise<number> {
  const text = (await textOf(path, 64)).trim();
  return /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program with a time limit. A process that waits for a hung device is killed but not awaited. Throws CodedError
 * 'absent' if the program does not exist, and 'timeout' after the time limit.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  timeoutMs: number,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      file,
      args,
      { maxBuffer: MAX_OUTPUT_BYTES, env: { ...env, LC_ALL: 'C' }, killSignal: 'SIGKILL' },
      (error, stdout, stderr) => {
        clearTimeout(timer);
        if (error === null) return resolve({ code: 0, stdout, stderr });
        if (error.code === 'ENOENT')
          return reject(new CodedError('absent', `the program ${file} is not installed`, { cause: error }));
        resolve({ code: typeof error.code === 'number' ? error.code : 255, stdout, stderr });
      },
    );
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      child.stdout?.destroy();
      child.stderr?.destroy();
      child.unref();
      reject(
        new CodedError('timeout', `${basename(file)} ${args.at(-1) ?? ''}: no answer within ${timeoutMs / 1000} s`),
      );
    }, timeoutMs);
  });
}
