import type { Duplex } from 'node:stream';

/** Time for a peer to read the last bytes and to close its side. */
const LINGER_MS = 1_000;

/**
 * Sends the last bytes on a connection and closes it: when the peer has closed its side, at the latest after a second.
 * `end` alone would keep the connection open for as long as the peer does not close its side.
 */
export function endSocket(socket: Duplex, bytes: string | Uint8Array = ''): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  // The end of the peer's side is visible only to a reader. A failed upgrade is followed by nothing that is served.
  socket.resume();
  socket.end(bytes);
}
