/**
 * Byte streams to a port on a pod's loopback: directly for the host's network, through `nsenter … socat` for a pod's
 * own.
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { type ByteStream, RuntimeError } from '../../core/podplan/port.ts';
import { childEnvironment } from './command.ts';
import { inputSink } from './streams.ts';

const CONNECT_TIMEOUT_S = 10;
/** With its output shut down when the pod closes: socat leaves that of a plain `-` open until the client ends, too. */
const STDIO = '-,shut-down';
/** How long the other direction may stay open after one has ended. */
const HALF_CLOSED_S = 3600;

/** Throws RuntimeError 'network' when no process listens. */
export function connectOnHost(port: number): Promise<ByteStream> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true, timeout: CONNECT_TIMEOUT_S * 1000 });
    socket.once('error', (error) => reject(new RuntimeError('network', error.message, { cause: error })));
    socket.once('timeout', () => socket.destroy(new Error(`connecting to port ${port} timed out`)));
    socket.once('connect', () => {
      socket.setTimeout(0);
      resolve(byteStream(socket, socket, () => socket.destroy()));
    });
  });
}

/**
 * `started` is called with the pid of the program that connects. Throws RuntimeError 'network' when the port is closed.
 */
export async function connectInNamespace(
  socat: string,
  netns: string,
  port: number,
  started: (pid: number) => void,
): Promise<ByteStream> {
  // `-d -d` makes socat say when it is connected; without that a refused connection would look like an empty answer.
  const address = `TCP4:127.0.0.1:${port},connect-timeout=${CONNECT_TIMEOUT_S}`;
  const child = spawn(
    'nsenter',
    [`--net=${netns}`, '--', socat, '-d', '-d', '-t', String(HALF_CLOSED_S), STDIO, address],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...childEnvironment },
    },
  );
  if (child.pid !== undefined) started(child.pid);
  return new Promise((resolve, reject) => {
    let said = '';
    const refuse = (why: string): void => reject(new RuntimeError('network', why));
    child.on('error', (error) => refuse(`port forwarding needs nsenter and socat: ${error.message}`));
    child.stderr.on('data', (part: Buffer) => {
      // Draining goes on after the connection stands, so that socat never blocks on its own messages.
      if (said.length > 64 * 1024) return;
      said += part.toString('utf8');
      if (said.includes('starting data transfer loop')) {
        resolve(byteStream(child.stdout, child.stdin, () => child.kill('SIGKILL')));
      }
    });
    child.on('close', () => refuse(complaint(said, port)));
  });
}

/** The open connections into sandboxes, which end with them. */
export interface Forwards {
  track(sandboxId: string, stream: ByteStream): ByteStream;
  end(sandboxId: string): void;
}

export function createForwards(): Forwards {
  const open = new Map<string, Set<ByteStream>>();
  return {
    track(sandboxId, stream) {
      const streams = open.get(sandboxId) ?? new Set();
      open.set(sandboxId, streams.add(stream));
      return {
        ...stream,
        destroy: () => {
          streams.delete(stream);
          if (streams.size === 0 && open.get(sandboxId) === streams) open.delete(sandboxId);
          stream.destroy();
        },
      };
    },
    end(sandboxId) {
      for (const stream of open.get(sandboxId) ?? []) stream.destroy();
      open.delete(sandboxId);
    },
  };
}

function complaint(said: string, port: number): string {
  const errors = said.split('\n').flatMap((line) => /\bE (.*)$/.exec(line)?.[1] ?? []);
  return errors.at(-1) ?? `connection to port ${port} failed: ${said.trim().split('\n').at(-1) ?? ''}`;
}

function byteStream(readable: Readable, writable: Writable | Duplex, destroy: () => void): ByteStream {
  const sink = inputSink(writable);
  readable.on('error', () => {});
  return { readable: keepWritable(readable), write: sink.write, end: sink.end, destroy };
}

/** Reading a duplex to its end must not close its writing side, as the plain iterator would. */
async function* keepWritable(readable: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of readable.iterator({ destroyOnReturn: false })) yield chunk as Uint8Array;
}
