/**
 * Exec and attach streams from the streaming server of a container runtime, over a WebSocket. Source:
 * k8s.io/kubelet/pkg/cri/streaming; k8s.io/apimachinery remotecommand v4 and v5.
 */

import { PassThrough } from 'node:stream';
import { WebSocket } from 'ws';
import { decodeJson, list, nullable, object, optional, text } from '../../base/decode.ts';
import { ignore, messageOf } from '../../base/errors.ts';
import { type AttachOptions, type ProcessStreams, RuntimeError } from '../port.ts';

const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
const CHANNEL = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
const KILLED = 137;
const HANDSHAKE_MS = 10_000;
/** Limit for one message. A runtime sends one message per read of a pipe. */
const MAX_MESSAGE_BYTES = 4 << 20;

/** Throws RuntimeError 'internal' when the server refuses. */
export async function openStreams(url: string, options: AttachOptions): Promise<ProcessStreams> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), PROTOCOLS, {
    perMessageDeflate: false,
    handshakeTimeout: HANDSHAKE_MS,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  const outputs = new Map<number, PassThrough>();
  if (options.stdout) outputs.set(CHANNEL.stdout, new PassThrough());
  if (options.stderr) outputs.set(CHANNEL.stderr, new PassThrough());
  const exited = Promise.withResolvers<number>();
  exited.promise.catch(ignore('the caller that waits for the exit gets the error'));
  let exitStatus: number | undefined;
  socket.on('message', (data: Buffer) => {
    const channel = data[0] ?? 0;
    const bytes = data.subarray(1);
    if (channel === CHANNEL.error) {
      exitStatus = exitCodeIn(bytes.toString('utf8'));
      return;
    }
    const output = outputs.get(channel);
    if (output === undefined || output.destroyed || output.write(bytes)) return;
    socket.pause();
    output.once('drain', () => socket.resume());
  });
  socket.on('close', () => {
    for (const output of outputs.values()) output.end();
    exited.resolve(exitStatus ?? 0);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', (error) => reject(new RuntimeError('internal', `container runtime: ${messageOf(error)}`)));
  });
  socket.on('error', () => socket.terminate());
  const send = (channel: number, bytes: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      socket.send(Buffer.concat([Buffer.from([channel]), bytes]), (error) =>
        error === undefined || error === null ? resolve() : reject(error),
      );
    });
  return {
    stdin: options.stdin
      ? {
          write: (chunk) => send(CHANNEL.stdin, chunk),
          // The v4 protocol has no message for the end of the input.
          end: () => {
            if (socket.protocol === PROTOCOLS[0])
              void send(CHANNEL.close, Buffer.from([CHANNEL.stdin])).catch(
                ignore('the close event of the socket ends the session'),
              );
          },
        }
      : undefined,
    stdout: outputs.get(CHANNEL.stdout),
    stderr: outputs.get(CHANNEL.stderr),
    resize: (columns, rows) => send(CHANNEL.resize, Buffer.from(JSON.stringify({ Width: columns, Height: rows }))),
    exited: exited.promise,
    close: () => {
      exitStatus ??= KILLED;
      socket.terminate();
    },
  };
}

const EXIT_STATUS = object({
  status: optional(text),
  details: optional(
    nullable(object({ causes: optional(nullable(list(object({ reason: optional(text), message: optional(text) })))) })),
  ),
});

/** Exit code in the runtime's final status; 1 if the status is a failure without a code or cannot be parsed. */
function exitCodeIn(status: string): number {
  try {
    const { status: exitStatus, details } = decodeJson(EXIT_STATUS, status, 'status');
    if (exitStatus === 'Success') return 0;
    const code = Number(details?.causes?.find(({ reason }) => reason === 'ExitCode')?.message ?? 1);
    return Number.isInteger(code) ? code : 1;
  } catch {
    return 1;
  }
}
