/** Writes to a duplex with back-pressure: `write` resolves when the socket can take more. */
import type { Duplex } from 'node:stream';
import { CodedError } from '../../base/errors.ts';

export interface SocketWriter {
  /** Queues the parts contiguously. Rejects with CodedError 'closed' after the socket has closed. */
  write(...parts: readonly Uint8Array[]): Promise<void>;
}

export function createSocketWriter(socket: Duplex): SocketWriter {
  let waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  socket.on('drain', () => {
    const resumed = waiting;
    waiting = [];
    for (const { resolve } of resumed) resolve();
  });
  socket.on('close', () => {
    const lost = waiting;
    waiting = [];
    for (const { reject } of lost) reject(new CodedError('closed', 'the client closed the connection'));
  });
  return {
    write(...parts) {
      if (!socket.writable) return Promise.reject(new CodedError('closed', 'the client closed the connection'));
      let room = true;
      if (parts.length > 1) socket.cork();
      for (const part of parts) room = socket.write(part);
      if (parts.length > 1) socket.uncork();
      if (room) return Promise.resolve();
      return new Promise((resolve, reject) => {
        waiting.push({ resolve, reject });
      });
    },
  };
}
