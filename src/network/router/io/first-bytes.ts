/** Inspects the first bytes of a connection and leaves them for the next reader. */
import type { Socket } from 'node:net';

export type ParseResult<T> =
  | { readonly kind: 'more' }
  | { readonly kind: 'bad' }
  | { readonly kind: 'done'; readonly value: T };

/**
 * Calls `done` once `read` returns a result for the bytes received so far. `done` must unshift the bytes that it does
 * not use. The socket is destroyed if the result is `bad` or there is no result within `limit` bytes.
 */
export function firstBytes<T>(
  socket: Socket,
  limit: number,
  read: (bytes: Buffer) => ParseResult<T>,
  done: (value: T, bytes: Buffer) => void,
): void {
  let bytes: Buffer = Buffer.alloc(0);
  const onError = (): void => void socket.destroy();
  const onReadable = (): void => {
    for (;;) {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const result = read(bytes);
      if (result.kind === 'done') {
        socket.off('readable', onReadable);
        socket.off('end', onError);
        done(result.value, bytes);
        socket.off('error', onError);
        return;
      }
      if (result.kind === 'bad' || bytes.length > limit) {
        socket.destroy();
        return;
      }
    }
  };
  socket.on('error', onError);
  socket.once('end', onError);
  socket.on('readable', onReadable);
}
