/**
 * The part of a connection before it is forwarded. A client that sends no TLS client hello costs no connection to a
 * server, which would count it like a regular client of this host.
 */
import type { Socket } from 'node:net';
import { resetSocket } from '../../../wire/connections/reset.ts';

const HANDSHAKE = 0x16;
const HEADER_BYTES = 5;
/** Longest TLS record. Source: RFC 8446 §5.1. */
const MAX_RECORD_BYTES = 16_384 + 256;

/** Whether `bytes` contain the first record. Other protocols are left to the server, which rejects them. */
function isComplete(bytes: Buffer): boolean {
  if (bytes.length === 0) return false;
  if (bytes[0] !== HANDSHAKE) return true;
  if (bytes.length < HEADER_BYTES) return false;
  return bytes.length >= HEADER_BYTES + Math.min(bytes.readUInt16BE(3), MAX_RECORD_BYTES);
}

/**
 * Reads the first record of a paused socket and calls `received`; the socket is then paused and its bytes are unread.
 * Resets a socket that ends before or takes longer than `limitMs` for the whole record.
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
