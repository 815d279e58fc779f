/**
 * Input for what a monitor watches: conmon's attach socket, which is of type SOCK_SEQPACKET; Node cannot open such a
 * socket, `socat` can.
 */
import { spawn } from 'node:child_process';
import { RuntimeError } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import { type InputSink, inputSink } from './streams.ts';

const SOCK_SEQPACKET = 5;

export interface MonitorInput {
  readonly sink: InputSink;
  /** Of the program that connects. */
  readonly pid: number;
  close(): void;
}

/** Throws RuntimeError 'internal' when socat is missing. */
export function openMonitorInput(socat: string, bundle: string): Promise<MonitorInput> {
  // The socket's path may be longer than a socket address: it is named relative to the bundle. Output that comes back
  // the same way is thrown away, but has to be read.
  const child = spawn(socat, ['-t', '1', '-', `UNIX-CONNECT:attach,type=${SOCK_SEQPACKET}`], {
    cwd: bundle,
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...childEnvironment },
  });
  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      reject(
        new RuntimeError('internal', `standard input of containers with a monitor needs socat: ${error.message}`, {
          cause: error,
        }),
      );
    });
    child.on('spawn', () => {
      if (child.stdin === null) return;
      resolve({
        sink: inputSink(child.stdin),
        pid: child.pid ?? 0,
        close: () => {
          child.kill('SIGKILL');
        },
      });
    });
  });
}
