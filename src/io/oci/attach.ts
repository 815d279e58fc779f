/**
 * Attaching to a running container. Its output is followed in the log, so a stalled client never stalls the container. Input goes
 * to conmon's attach socket, which is of type SOCK_SEQPACKET; Node cannot open such a socket, `socat` can.
 */
import { spawn } from 'node:child_process';
import { type AttachOptions, type ProcessStreams, RuntimeError } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import { resizeTerminal } from './conmon.ts';
import { followLog } from './log-follow.ts';
import type { ContainerRecord } from './records.ts';
import { type InputSink, inputSink, outputPipe } from './streams.ts';

const SOCK_SEQPACKET = 5;

/** `ended` resolves when the container has exited. Throws RuntimeError 'internal' when input is wanted and cannot be had. */
export async function attachToContainer(
  socat: string,
  bundle: string,
  container: ContainerRecord,
  options: AttachOptions,
  ended: Promise<void>,
): Promise<ProcessStreams> {
  if (options.stdin && !container.stdin) {
    throw new RuntimeError(
      'internal',
      `container ${container.name} has no open standard input (stdin: true is not set)`,
    );
  }
  const follower = await followLog(container.logPath);
  const stdout = outputPipe();
  const stderr = outputPipe();
  let input: { readonly sink: InputSink; close(): void } | undefined;
  try {
    input = options.stdin ? await openInput(socat, bundle) : undefined;
  } catch (error) {
    follower.close();
    await follower.run(() => Promise.resolve());
    throw error;
  }
  const wantStderr = options.stderr && !options.tty;
  const reading = follower
    .run((stream, content) => {
      if (stream === 'stdout') return options.stdout ? stdout.push(content) : Promise.resolve();
      return wantStderr ? stderr.push(content) : Promise.resolve();
    })
    .finally(() => {
      stdout.end();
      stderr.end();
      input?.close();
    });
  void ended.then(() => follower.finish());
  return {
    stdin: input?.sink,
    stdout: options.stdout ? stdout.readable : undefined,
    stderr: wantStderr ? stderr.readable : undefined,
    resize: (columns, rows) => {
      if (container.tty) void resizeTerminal(bundle, columns, rows).catch(() => {});
    },
    exited: reading.then(() => 0),
    close: () => {
      follower.close();
      input?.close();
    },
  };
}

function openInput(socat: string, bundle: string): Promise<{ readonly sink: InputSink; close(): void }> {
  // The socket's path may be longer than a socket address: it is named relative to the bundle. Output that comes back the same way is
  // thrown away, but has to be read.
  const child = spawn(socat, ['-t', '1', '-', `UNIX-CONNECT:attach,type=${SOCK_SEQPACKET}`], {
    cwd: bundle,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...childEnvironment },
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(new RuntimeError('internal', `attaching standard input needs socat: ${error.message}`, { cause: error }));
    });
    child.on('spawn', () => {
      if (child.stdin === null) return;
      resolve({
        sink: inputSink(child.stdin),
        close: () => {
          child.kill('SIGKILL');
        },
      });
    });
  });
}
