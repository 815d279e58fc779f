/**
 * Processes with a terminal in a container. conmon creates the terminal, because Node has no pseudo-terminals. conmon
 * writes the output in log format to a fifo that this process reads, so a slow client blocks the command. Input and
 * window size are sent as for a container.
 */

import { execFile } from 'node:child_process';
import { close, constants, open } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ignore } from '../../../base/errors.ts';
import { childEnvironment } from '../command.ts';
import type { Runc } from '../runc.ts';
import {
  type ExecStart,
  execMonitored,
  type MonitoredExec,
  resizeTerminal,
  type StartedExec,
} from '../streams/conmon.ts';
import { createLogParser } from '../streams/log-follow.ts';
import { type MonitorInput, openMonitorInput } from '../streams/monitor-input.ts';
import { outputPipe } from '../streams/streams.ts';

const run = promisify(execFile);
/**
 * Opens plain descriptors. A file handle would close its descriptor when the handle is garbage-collected, although a
 * socket owns the descriptor.
 */
const openFd = promisify(open);
const closeFd = promisify(close);

export interface TerminalExecDeps {
  readonly runc: Runc;
  readonly conmon: string;
  readonly socat: string;
}

/** `start.bundle` contains `process.json`. Throws RuntimeError 'start-failed' with the runtime's message. */
export async function execWithTerminal(deps: TerminalExecDeps, start: ExecStart, stdin: boolean): Promise<StartedExec> {
  const { bundle } = start;
  const fifo = join(bundle, 'output');
  await run('mkfifo', ['-m', '600', fifo], { env: { ...childEnvironment } });
  const reader = await openFd(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  // An open writer keeps the reader from seeing an end of file before the monitor has opened the fifo.
  const placeholder = await openFd(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
  const output = readOutput(reader);
  let input: MonitorInput | undefined;
  let monitored: MonitoredExec;
  try {
    monitored = await execMonitored({ ...deps, ...start, output: { logPath: fifo } });
    input = stdin ? await openMonitorInput(deps.socat, bundle) : undefined;
  } catch (error) {
    output.close();
    throw error;
  } finally {
    await closeFd(placeholder);
  }
  let over = false;
  return {
    streams: {
      stdin: input?.sink,
      stdout: output.readable,
      stderr: undefined,
      resize: async (columns, rows) => {
        if (!over) await resizeTerminal(bundle, columns, rows);
      },
    },
    monitored,
    servingPids: input === undefined ? [] : [input.pid],
    finish: () => {
      over = true;
      input?.close();
    },
    close: () => {
      input?.close();
      output.close();
    },
  };
}

/** Reads the command's output from `fd`, which then belongs to a socket. */
function readOutput(fd: number): { readonly readable: AsyncIterable<Uint8Array>; close(): void } {
  const socket = new Socket({ fd, readable: true, writable: false });
  const pipe = outputPipe();
  const parse = createLogParser();
  const read = async (): Promise<void> => {
    for await (const chunk of socket) await pipe.push(Buffer.concat(parse(chunk).map(({ content }) => content)));
  };
  void read()
    .catch(ignore('a lost connection ends the output'))
    .finally(() => pipe.end());
  return {
    readable: pipe.readable,
    close: () => {
      socket.destroy();
      pipe.abandon();
    },
  };
}
