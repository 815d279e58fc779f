/**
 * Checks a connection before it is forwarded. Clients that send no TLS client hello are not connected to an API server,
 * because the server would count their connections like those of regular clients of this host.
 */
import type { Socket } from 'node:net';
import { resetSocket } from '../../../wire/connections/reset.ts';

const HANDSHAKE = 0x16;
const HEADER_BYTES = 5;
/** Longest TLS record. Source: RFC 8446 §5.1. */
const MAX_RECORD_BYTES = 16_384 + 256;

/**
 * Whether `bytes` contain the whole first TLS record. True for other protocols too: their connections are forwarded,
 * and the server rejects them.
 */
function isComplete(bytes: Buffer): boolean {
  if (bytes.length === 0) return false;
  if (bytes[0] !== HANDSHAKE) return true;
  if (bytes.length < HEADER_BYTES) return false;
  return bytes.length >= HEADER_BYTES + Math.min(bytes.readUInt16BE(3), MAX_RECORD_BYTES);
}

/**
 * Reads the first record of a paused socket, puts the bytes back as unread, pauses the socket and calls `received`.
 * Resets a socket that ends before the record is complete or needs longer than `limitMs` for it.
 */
export function awaitClientHello(client: Socket, limitMs: number, received: () => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => resetSocket(client), limitMs).unref();
  const onData = (piece: Buffer): void => {
    bytes = bytes.length === 0 ? piece : Buffer.concat([bytes, piece]);
    if (!isComplete(bytes)) return;
    finish();
    client.pause();
    client.unshift(bytes);
    received();
  };
  const onEnd = (): void => resetSocket(client);
  const finish = (): void => {
    clearTimeout(timer);
    client.off('data', onData).off('end', onEnd).off('error', onEnd).off('close', finish);
  };
  client.on('data', onData).on('end', onEnd).on('error', onEnd).on('close', finish);
  client.resume();
}
