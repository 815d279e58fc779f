/** A server on a socket that writes HTTP/2 frames itself, so that it can violate every rule. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeHeaders } from '../../../src/wire/http2/hpack.ts';
import { Flag, FrameType, frame, headersFrames, PREFACE, settingsFrame } from '../../../src/wire/http2/http2-frames.ts';

export const SETTINGS = settingsFrame([]);
const OK_HEADERS = encodeHeaders([
  { name: ':status', value: '200' },
  { name: 'content-type', value: 'application/grpc' },
]);

export function trailers(id: number, status: string, message?: string): Buffer {
  const fields = [{ name: 'grpc-status', value: status }];
  return headersFrames(
    id,
    encodeHeaders(message === undefined ? fields : [...fields, { name: 'grpc-message', value: message }]),
    { endStream: true },
  );
}

export const head = (id: number): Buffer => headersFrames(id, OK_HEADERS, { endStream: false });

export function prefixed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

export function data(id: number, bytes: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 16_384)
    frames.push(frame(FrameType.data, 0, id, bytes.subarray(at, at + 16_384)));
  return Buffer.concat(frames);
}

/** A complete response to a unary call. */
export const answer = (id: number, message: Buffer): Buffer =>
  Buffer.concat([head(id), data(id, prefixed(message)), trailers(id, '0')]);

export interface Conversation {
  readonly socket: Socket;
  /** Number of the connection, counted from the server's start. */
  readonly connection: number;
  /** Id of the request's stream. */
  readonly id: number;
  readonly path: string;
}

export interface HostilePeer {
  readonly path: string;
  readonly directory: string;
  /** Number of open connections. */
  readonly open: () => number;
  close(): Promise<void>;
}

/** Calls `greet` for each connection instead of sending settings, and `asked` for each request. */
export async function hostilePeer(behaviour: {
  greet?(socket: Socket): void;
  onRequest?(conversation: Conversation): void;
}): Promise<HostilePeer> {
  const directory = await mkdtemp(join(tmpdir(), 'peer-'));
  const path = join(directory, 'p.sock');
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    connections += 1;
    const connection = connections;
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
    if (behaviour.greet === undefined) socket.write(SETTINGS);
    else behaviour.greet(socket);
    let bytes = Buffer.alloc(0);
    let greeted = false;
    socket.on('data', (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!greeted && bytes.length >= PREFACE.length) {
        bytes = bytes.subarray(PREFACE.length);
        greeted = true;
      }
      while (greeted && bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3)) {
        const length = bytes.readUIntBE(0, 3);
        const id = bytes.readUInt32BE(5);
        const payload = bytes.subarray(9, 9 + length);
        // This client sends each request's headers as one block without Huffman codes, so the path is readable in it.
        if (bytes[3] === FrameType.headers && ((bytes[4] ?? 0) & Flag.endHeaders) !== 0) {
          const found = /\/[\w.]+\/\w+/.exec(payload.toString('latin1'));
          behaviour.onRequest?.({ socket, connection, id, path: found?.[0] ?? '' });
        }
        bytes = bytes.subarray(9 + length);
      }
    });
  });
  server.listen(path);
  await once(server, 'listening');
  return {
    path,
    directory,
    open: () => {
      // This side never closes first. Writing shows whether the client still has the connection.
      for (const socket of open) if (socket.readableEnded) socket.write(SETTINGS);
      return open.size;
    },
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(directory, { recursive: true, force: true });
    },
  };
}
