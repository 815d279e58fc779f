/**
 * Channels over one WebSocket: every message starts with its channel number (a byte, or a digit before base64 text).
 * Version 5 adds the message `255, channel`, by which the client half-closes that channel (KEP-4006).
 */
import type { RawData, WebSocket } from 'ws';
import { CodedError } from '../../base/errors.ts';
import { type ByteQueue, createByteQueue } from '../spdy/byte-queue.ts';
import { CHANNEL_HIGH_WATER_BYTES, type Channel } from '../spdy/channel.ts';

const CLOSE_CHANNEL = 255;
/** Time limit for the client to answer a close frame. */
const CLOSE_TIMEOUT_MS = 5_000;

export interface WebSocketChannels {
  channel(id: number): Channel;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Closes after the queued data has been sent. */
  close(): void;
  destroy(): void;
}

/** The client may write only to the channels in `readableIds`; bytes for other channels are dropped. */
export function createWebSocketChannels(
  socket: WebSocket,
  options: { readonly base64: boolean; readonly closeSignal: boolean; readonly readableIds: readonly number[] },
): WebSocketChannels {
  const queues = new Map<number, ByteQueue>();
  let paused = false;
  for (const id of options.readableIds) {
    queues.set(
      id,
      createByteQueue(CHANNEL_HIGH_WATER_BYTES, () => {
        if (!paused) return;
        for (const queue of queues.values()) if (queue.queuedBytes >= CHANNEL_HIGH_WATER_BYTES) return;
        paused = false;
        socket.resume();
      }),
    );
  }

  const lost = (): CodedError => new CodedError('closed', 'the client closed the connection');
  const gone = new Promise<void>((resolve) => {
    socket.once('close', () => {
      for (const queue of queues.values()) queue.fail(lost());
      resolve();
    });
  });
  socket.on('error', () => socket.terminate());
  socket.on('message', (raw: RawData, isBinary: boolean) => {
    const message = decode(raw, isBinary, options.base64);
    if (message === undefined) return;
    if (options.closeSignal && message.channel === CLOSE_CHANNEL) {
      const target = message.bytes[0];
      if (target !== undefined) queues.get(target)?.end();
      return;
    }
    const queue = queues.get(message.channel);
    if (queue === undefined) return;
    void queue.push(message.bytes);
    if (queue.queuedBytes >= CHANNEL_HIGH_WATER_BYTES && !paused) {
      paused = true;
      socket.pause();
    }
  });

  const send = (id: number, chunk: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      if (socket.readyState !== socket.OPEN) {
        reject(lost());
        return;
      }
      const done = (error?: Error | null): void => {
        if (error === undefined || error === null) resolve();
        else reject(lost());
      };
      if (options.base64) socket.send(`${id}${Buffer.from(chunk).toString('base64')}`, { binary: false }, done);
      else socket.send(Buffer.concat([Buffer.from([id]), chunk]), { binary: true }, done);
    });

  return {
    closed: gone,
    channel(id) {
      let ended = false;
      const queue = queues.get(id) ?? createByteQueue(0);
      return {
        readable: queue,
        write: (chunk) => (ended ? Promise.reject(lost()) : send(id, chunk)),
        end: () => {
          ended = true;
        },
      };
    },
    close() {
      if (paused) socket.resume();
      socket.close(1000);
      const timer = setTimeout(() => socket.terminate(), CLOSE_TIMEOUT_MS);
      timer.unref();
      void gone.then(() => clearTimeout(timer));
    },
    destroy: () => socket.terminate(),
  };
}

function decode(raw: RawData, isBinary: boolean, base64: boolean): { channel: number; bytes: Uint8Array } | undefined {
  const message = Buffer.isBuffer(raw) ? raw : Array.isArray(raw) ? Buffer.concat(raw) : Buffer.from(raw);
  const first = message[0];
  if (first === undefined) return undefined;
  if (!base64 || isBinary) return { channel: first, bytes: message.subarray(1) };
  return { channel: first - 0x30, bytes: Buffer.from(message.toString('latin1', 1), 'base64') };
}
