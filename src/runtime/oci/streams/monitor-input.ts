/**
 * Input for a monitored process, through conmon's attach socket. The socket has the type SOCK_SEQPACKET, which Node
 * cannot open, so `socat` connects to it.
 */
import { spawn } from 'node:child_process';
import { RuntimeError } from '../../port.ts';
import { childEnvironment } from '../command.ts';
import { type InputSink, inputSink } from './streams.ts';

const SOCK_SEQPACKET = 5;

export interface MonitorInput {
  readonly sink: InputSink;
  /** Pid of the socat process. */
  readonly pid: number;
  close(): void;
}

/** Throws RuntimeError 'internal' if socat is missing. */
export function openMonitorInput(socat: string, bundle: string): Promise<MonitorInput> {
  // The socket's path may exceed the length of a socket address, so it is relative to the bundle. Output that the
  // socket sends is discarded, but must be read.
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
