import type { Duplex } from 'node:stream';

/** Time for a peer to close its side after it has received the last bytes. */
const LINGER_MS = 1_000;
/** Time for the last bytes to be sent. Without a limit, a peer that does not read them keeps the connection open. */
const SEND_MS = 30_000;

/**
 * Sends the last bytes on a connection and closes it: when the peer has closed its side, at the latest a second after
 * the bytes were sent. `end` alone would keep the connection open for as long as the peer does not close its side.
 */
export function endSocket(socket: Duplex, bytes: string | Uint8Array = ''): void {
  const destroy = (): void => void socket.destroy();
  let timer = setTimeout(destroy, SEND_MS).unref();
  socket.once('close', () => clearTimeout(timer));
  // The end of the peer's side is visible only to a reader. A failed upgrade is followed by nothing that is served.
  socket.resume();
  socket.end(bytes, () => {
    clearTimeout(timer);
    if (!socket.destroyed) timer = setTimeout(destroy, LINGER_MS).unref();
  });
}
