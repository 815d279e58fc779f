/**
 * Processes with a terminal in a container. conmon makes the terminal (Node has no pseudo-terminals): it writes the output, in log format,
 * to a fifo that we read, which holds the process up when the client is slow; input and window size go the same ways as a container's.
 */
import { execFile } from 'node:child_process';
import { close, constants, open } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ProcessStreams } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import { execMonitored, resizeTerminal } from './conmon.ts';
import { createLogParser } from './log-follow.ts';
import { openMonitorInput } from './monitor-input.ts';
import type { Runc } from './runc.ts';
import { outputPipe } from './streams.ts';

const run = promisify(execFile);
/** Plain descriptors: a file handle would close its own when it is collected, although a socket has taken it over. */
const openFd = promisify(open);
const closeFd = promisify(close);

export interface TerminalExecDeps {
  readonly runc: Runc;
  readonly conmon: string;
  readonly socat: string;
}

/** `work` holds `process.json`. Throws RuntimeError 'start-failed' in the runtime's words. */
export async function execWithTerminal(
  deps: TerminalExecDeps,
  containerId: string,
  work: string,
  stdin: boolean,
): Promise<ProcessStreams> {
  const fifo = join(work, 'output');
  await run('mkfifo', ['-m', '600', fifo], { env: { ...childEnvironment } });
  const reader = await openFd(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  // Until the monitor has opened its end, this one keeps the reader from seeing an end of file.
  const placeholder = await openFd(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  const output = readOutput(reader);
  let started: Awaited<ReturnType<typeof execMonitored>>;
  try {
    started = await execMonitored({ ...deps, id: containerId, bundle: work, logPath: fifo });
  } catch (error) {
    output.close();
    throw error;
  } finally {
    await closeFd(placeholder);
  }
  let over = false;
  const exited = started.exitCode.finally(() => {
    over = true;
  });
  const kill = (): void => {
    // While its monitor waits for it, the pid cannot have passed to another process.
    if (!over) killQuietly(started.pid);
  };
  const input = stdin
    ? await openMonitorInput(deps.socat, work).catch((error: unknown) => {
        kill();
        output.close();
        throw error;
      })
    : undefined;
  void exited.then(() => input?.close());
  return {
    stdin: input?.sink,
    stdout: output.readable,
    stderr: undefined,
    resize: (columns, rows) => {
      if (!over) void resizeTerminal(work, columns, rows).catch(() => {});
    },
    exited,
    close: () => {
      kill();
      input?.close();
      // The monitor must not wait for a reader that has gone.
      void exited.then(output.close);
      output.discard();
    },
  };
}

/** The socket owns the descriptor. */
function readOutput(fd: number): {
  readonly readable: AsyncIterable<Uint8Array>;
  discard(): void;
  close(): void;
} {
  const socket = new Socket({ fd, readable: true, writable: false });
  const pipe = outputPipe();
  const parse = createLogParser();
  let discarding = false;
  const read = async (): Promise<void> => {
    for await (const chunk of socket) {
      for (const { content } of parse(chunk)) if (!discarding) await pipe.push(content);
    }
  };
  void read()
    .catch(() => {})
    .finally(() => pipe.end());
  return {
    readable: pipe.readable,
    discard: () => {
      discarding = true;
      pipe.abandon();
    },
    close: () => {
      socket.destroy();
      pipe.end();
    },
  };
}

export function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}
