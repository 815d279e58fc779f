/**
 * Byte streams to a port on a pod's loopback interface: direct for the host's network, through `nsenter … socat` for a
 * pod's own.
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { type ByteStream, RuntimeError } from '../../port.ts';
import { childEnvironment } from '../command.ts';
import { inputSink } from './streams.ts';

const CONNECT_TIMEOUT_S = 10;
/**
 * Shuts the output down when the pod closes the connection. With a plain `-`, socat would keep the output open until
 * the client ends too.
 */
const STDIO = '-,shut-down';
/** Time for which one direction may stay open after the other has ended. */
const HALF_CLOSED_S = 3600;

/** Throws RuntimeError 'network' if no process listens. */
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

/** `started` is called with the pid of the connecting program. Throws RuntimeError 'network' if the port is closed. */
export async function connectInNamespace(
  socat: string,
  netns: string,
  port: number,
  started: (pid: number) => void,
): Promise<ByteStream> {
  // With `-d -d` socat reports when it is connected. Otherwise a refused connection would look like an empty response.
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
    let output = '';
    const refuse = (why: string): void => reject(new RuntimeError('network', why));
    child.on('error', (error) => refuse(`port forwarding needs nsenter and socat: ${error.message}`));
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      // Messages are read even after the connection is established, so that socat never blocks on writing them.
      if (output.length > 64 * 1024) return;
      output += text;
      if (output.includes('starting data transfer loop')) {
        resolve(byteStream(child.stdout, child.stdin, () => child.kill('SIGKILL')));
      }
    });
    child.on('close', () => refuse(complaint(output, port)));
  });
}

/** Open connections into sandboxes, which are closed with the sandbox. */
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

function complaint(output: string, port: number): string {
  const errors = output.split('\n').flatMap((line) => /\bE (.*)$/.exec(line)?.[1] ?? []);
  return errors.at(-1) ?? `connection to port ${port} failed: ${output.trim().split('\n').at(-1) ?? ''}`;
}

function byteStream(readable: Readable, writable: Writable | Duplex, destroy: () => void): ByteStream {
  const sink = inputSink(writable);
  readable.on('error', () => {});
  return { readable: keepWritable(readable), write: sink.write, end: sink.end, destroy };
}

/**
 * Iterates over a stream without destroying it. The plain iterator would destroy the stream at its end and close the
 * writing side too.
 */
async function* keepWritable(readable: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of readable.iterator({ destroyOnReturn: false })) yield chunk as Uint8Array;
}
