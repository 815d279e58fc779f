import type { Socket } from 'node:net';

/**
 * Ends the socket with RST. One that was ended already is only destroyed: libuv refuses to reset a socket that shuts
 * down, and Node then leaks its handle.
 */
export function resetSocket(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.writableEnded || socket.connecting) socket.destroy();
  else socket.resetAndDestroy();
}
