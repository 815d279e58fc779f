import type { Socket } from 'node:net';

/**
 * Closes the socket with RST. A socket that has been ended is only destroyed: libuv refuses to reset a socket that is
 * shutting down, and Node then leaks its handle.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded || socket.connecting) socket.destroy();
  else socket.resetAndDestroy();
}
