/** Stores the output of programs, with limits of time and size. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { Readable } from 'node:stream';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { EntryOptions, SectionSink } from '../../support-bundle/port.ts';

export interface Program {
  /** Path in the bundle. */
  readonly to: string;
  readonly command: readonly string[];
  readonly options?: EntryOptions;
  /** Exit codes other than 0 that count as success if the program has printed output. */
  readonly codes?: readonly number[];
}

const LATE = 'the program did not exit within the time limit';
const MAX_STDERR = 2000;
const PROGRAM_MS = 20_000;
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Runs each program and stores its output. If a program fails or is missing, this is a problem of the section. */
export async function collectPrograms(
  sink: SectionSink,
  programs: readonly Program[],
  signal: AbortSignal,
  timeoutMs = PROGRAM_MS,
): Promise<void> {
  for (const { to, command, options, codes = [] } of programs) {
    if (signal.aborted) return;
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      await sink.stream(to, outputOf(command, limited, codes), options);
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      sink.missing(command.map((each) => basename(each) || each).join(' '), error.message);
    }
  }
}

/**
 * Output of a program. After the output, throws CodedError 'program' if the program does not exist, fails, or exceeds
 * the time limit.
 */
export async function* outputOf(
  [file = '', ...args]: readonly string[],
  signal: AbortSignal,
  codes: readonly number[] = [],
): AsyncGenerator<string> {
  const child = start(file, args);
  let stderr = '';
  let isEmpty = true;
  // A child that could not be started for lack of file descriptors has no streams.
  const isStarted = child.pid !== undefined;
  if (isStarted)
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR);
    });
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ENOENT' ? `the program ${file} is not installed` : error.message),
    );
    child.once('close', (code, killed) => {
      if (signal.aborted) return resolve(LATE);
      if (code === 0 || (code !== null && codes.includes(code) && !isEmpty)) resolve(undefined);
      else
        resolve(
          `${killed === null ? `exit code ${code}` : `ended by ${killed}`}: ${stderr.trim().split('\n').at(-1) ?? ''}`,
        );
    });
  });
  if (!isStarted) throw new CodedError('program', (await ended) ?? LATE);
  // At the time limit, the program is killed but not awaited: a process that waits for a device does not exit.
  const late = new Promise<string>((resolve) => {
    const stop = (): void => {
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      resolve(LATE);
    };
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  try {
    for await (const text of textOf(child.stdout)) {
      isEmpty = false;
      yield text;
    }
    const problem = await Promise.race([ended, late]);
    if (problem !== undefined) throw new CodedError('program', problem);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Throws CodedError 'program' for errors that Node.js does not emit as events, such as ENOMEM. */
function start(file: string, args: readonly string[]): ChildProcessByStdio<null, Readable, Readable> {
  try {
    return spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? DEFAULT_PATH, HOME: '/root', LC_ALL: 'C', NO_COLOR: '1' },
    });
  } catch (error) {
    throw new CodedError('program', messageOf(error), { cause: error });
  }
}

async function* textOf(stream: NodeJS.ReadableStream): AsyncGenerator<string> {
  stream.setEncoding('utf8');
  try {
    for await (const text of stream) yield String(text);
  } catch {
    // The stream was closed at the time limit, which the caller reports.
  }
}
