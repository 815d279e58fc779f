/** Implements the streaming port with real host processes and sockets. */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import type { Writable } from 'node:stream';
import type { AttachOptions, ByteStream, ProcessStreams } from '../../../../src/runtime/port.ts';

const sink = (stream: Writable) => ({
  write: (chunk: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      stream.write(chunk, (error) => (error ? reject(error) : resolve()));
    }),
  end: () => {
    stream.end();
  },
});

export interface SpawnedProcess extends ProcessStreams {
  readonly pid: number;
  readonly sizes: string[];
  readonly closed: () => boolean;
}

export function spawnProcess(command: readonly string[], streams: AttachOptions): SpawnedProcess {
  const [file = '', ...args] = command;
  const child = spawn(file, args, { stdio: [streams.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'] });
  child.stdin?.on('error', () => {});
  const sizes: string[] = [];
  let closed = false;
  return {
    pid: child.pid ?? 0,
    sizes,
    closed: () => closed,
    stdin: child.stdin === null ? undefined : sink(child.stdin),
    stdout: streams.stdout ? (child.stdout ?? undefined) : undefined,
    stderr: streams.stderr ? (child.stderr ?? undefined) : undefined,
    resize: async (columns, rows) => {
      sizes.push(`${columns}x${rows}`);
    },
    exited: new Promise((resolve) => {
      child.on('exit', (code) => resolve(code ?? 137));
    }),
    close: () => {
      closed = true;
      child.kill('SIGKILL');
    },
  };
}

export function openSocket(port: number): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      socket.on('error', () => {});
      resolve({
        readable: socket.iterator({ destroyOnReturn: false }),
        ...sink(socket),
        destroy: () => {
          socket.destroy();
        },
      });
    });
  });
}
