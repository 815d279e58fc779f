/**
 * Pipes of an exec without a terminal. The process gets them directly, so no program has to stay in between. They are
 * fifos, because Node's own pipes are sockets, which a process cannot reopen as `/dev/stdout`.
 */

import { execFile } from 'node:child_process';
import { close, constants, open } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ignore } from '../../../base/errors.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AttachOptions } from '../../port.ts';
import { childEnvironment } from '../command.ts';
import { type InputSink, inputSink, outputPipe } from '../streams/streams.ts';

const run = promisify(execFile);
/**
 * Opens plain descriptors. A file handle would close its descriptor when the handle is garbage-collected, although a
 * socket owns the descriptor.
 */
const openFd = promisify(open);
const closeFd = promisify(close);

/**
 * A background process may hold the pipe open after the command's exit. After this time without data, the output counts
 * as complete.
 */
const SILENCE_MS = 250;
/** Limit for output after the exit: the largest content of a pipe (fcntl F_SETPIPE_SZ). */
const MAX_AFTER_EXIT_BYTES = 1024 * 1024;

export interface ExecOutput {
  readonly readable: AsyncIterable<Uint8Array>;
  /** Reports that the command has exited: the stream ends after its remaining output. */
  finish(): void;
  /** Closes the pipe: further writes of the process fail. */
  close(): void;
}

export interface ExecPipes {
  /** Descriptors for the process's standard streams. */
  readonly ends: readonly (number | 'ignore')[];
  readonly stdin: InputSink | undefined;
  readonly stdout: ExecOutput | undefined;
  readonly stderr: ExecOutput | undefined;
  /** Closes this process's copies of the descriptors after the child has inherited them. */
  release(): Promise<void>;
  close(): void;
}

/** Creates the fifos in the directory `work`. */
export async function openPipes(work: string, wanted: AttachOptions, clock: Clock): Promise<ExecPipes> {
  const names = (['stdin', 'stdout', 'stderr'] as const).filter((name) => wanted[name]);
  const paths = names.map((name) => join(work, name));
  if (paths.length > 0) await run('mkfifo', ['-m', '600', ...paths], { env: { ...childEnvironment } });
  const open = new Map<(typeof names)[number], { readonly theirs: number; readonly ours: Socket }>();
  const release = (): Promise<void> =>
    Promise.all(
      [...open.values()].map(({ theirs }) => closeFd(theirs).catch(ignore('the descriptor is closed already'))),
    ).then(() => {});
  try {
    for (const name of names) open.set(name, await openEnds(join(work, name), name === 'stdin'));
  } catch (error) {
    await release();
    for (const { ours } of open.values()) ours.destroy();
    throw error;
  }
  const output = (name: 'stdout' | 'stderr'): ExecOutput | undefined => {
    const found = open.get(name);
    return found === undefined ? undefined : readOutput(found.ours, clock);
  };
  const input = open.get('stdin')?.ours;
  const stdout = output('stdout');
  const stderr = output('stderr');
  return {
    ends: (['stdin', 'stdout', 'stderr'] as const).map((name) => open.get(name)?.theirs ?? 'ignore'),
    stdin: input === undefined ? undefined : inputSink(input),
    stdout,
    stderr,
    release,
    close: () => {
      input?.destroy();
      stdout?.close();
      stderr?.close();
    },
  };
}

/** Opens both ends of a fifo. The command's end is blocking, as programs expect; this process's end is not. */
async function openEnds(path: string, input: boolean): Promise<{ readonly theirs: number; readonly ours: Socket }> {
  const { O_RDONLY, O_WRONLY, O_RDWR, O_NONBLOCK } = constants;
  // Opening for both directions does not wait, and prevents the next two opens from waiting for each other.
  const both = await openFd(path, O_RDWR | O_NONBLOCK);
  try {
    const theirs = await openFd(path, input ? O_RDONLY : O_WRONLY);
    const fd = await openFd(path, (input ? O_WRONLY : O_RDONLY) | O_NONBLOCK);
    const ours = new Socket({ fd, readable: !input, writable: input });
    ours.on('error', () => {});
    return { theirs, ours };
  } finally {
    await closeFd(both);
  }
}

function readOutput(socket: Socket, clock: Clock): ExecOutput {
  const pipe = outputPipe();
  let waitingSinceMs = clock.monotonicMs();
  let reading = true;
  let ended = false;
  let afterExit: number | undefined;
  const read = async (): Promise<void> => {
    for await (const chunk of socket) {
      reading = false;
      if (afterExit !== undefined) afterExit += chunk.length;
      await pipe.push(chunk);
      if (afterExit !== undefined && afterExit > MAX_AFTER_EXIT_BYTES) break;
      waitingSinceMs = clock.monotonicMs();
      reading = true;
    }
  };
  void read()
    .catch(ignore('an unreadable pipe ends the output'))
    .finally(() => {
      ended = true;
      socket.destroy();
      pipe.end();
    });
  const look = (): void => {
    if (ended) return;
    if (reading && clock.monotonicMs() - waitingSinceMs >= SILENCE_MS) socket.destroy();
    else clock.setTimer(SILENCE_MS, look);
  };
  return {
    readable: pipe.readable,
    finish: () => {
      if (afterExit !== undefined) return;
      afterExit = 0;
      waitingSinceMs = clock.monotonicMs();
      clock.setTimer(SILENCE_MS, look);
    },
    close: () => {
      socket.destroy();
      pipe.abandon();
    },
  };
}
