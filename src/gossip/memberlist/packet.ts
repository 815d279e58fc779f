/**
 * Encodes messages to datagrams (compound, checksum or encryption, label) and decodes datagrams. Invalid datagrams are
 * dropped.
 */
import { crc32 } from 'node:zlib';
import { decodeFields, MsgpackError } from '../../wire/msgpack.ts';
import type { GossipMessage } from '../core/port.ts';
import { ENCRYPTION_OVERHEAD, type Keyring } from './keyring.ts';
import { labelHeader, withoutLabel } from './label.ts';
import { decompressLzw } from './lzw.ts';
import { decodeMessage, messageType } from './messages.ts';

/** Maximum size of a decompressed datagram. Valid content fits into a datagram even without compression. */
const MAX_DECOMPRESSED = 65_536;
const CRC_BYTES = 5;
/** First protocol version with checksums. */
const CRC_PROTOCOL = 5;

/** Properties of the ring that determine the wire format. */
export interface Sealing {
  readonly keyring: Keyring | undefined;
  /** See {@link labelBytes}. */
  readonly label: Uint8Array;
}

/** Bytes that encryption and label add to a datagram. */
export function packetOverhead(sealing: Sealing): number {
  const label = sealing.label.length === 0 ? 0 : 2 + sealing.label.length;
  return label + (sealing.keyring === undefined ? CRC_BYTES : ENCRYPTION_OVERHEAD);
}

/**
 * Combines encoded messages into one datagram: at most 255 messages of less than 64 KiB each. `peerProtocol`: highest
 * version of the receiver; 0 if unknown.
 */
export function sealPacket(parts: readonly Uint8Array[], peerProtocol: number, sealing: Sealing): Uint8Array {
  const [first] = parts;
  let bytes = parts.length === 1 && first !== undefined ? first : compound(parts);
  if (sealing.keyring !== undefined) bytes = sealing.keyring.encrypt(bytes, sealing.label);
  else if (peerProtocol >= CRC_PROTOCOL) bytes = withCrc(bytes);
  return sealing.label.length === 0 ? bytes : Buffer.concat([labelHeader(sealing.label), bytes]);
}

/** Messages of a datagram; undefined if it is damaged or belongs to another ring. Damaged messages are omitted. */
export function openPacket(datagram: Uint8Array, sealing: Sealing): GossipMessage[] | undefined {
  const body = withoutLabel(datagram, sealing.label);
  if (typeof body === 'string') return undefined;
  let bytes: Uint8Array = body;
  if (sealing.keyring !== undefined) {
    const plain = sealing.keyring.decrypt(bytes, sealing.label);
    if (plain === undefined) return undefined;
    bytes = plain;
  }
  if (bytes[0] === messageType.hasCrc) {
    if (bytes.length <= CRC_BYTES) return undefined;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const content = bytes.subarray(CRC_BYTES);
    if (view.getUint32(1) !== crc32(content)) return undefined;
    bytes = content;
  }
  if (bytes[0] === messageType.compress) {
    const plain = decompressed(bytes.subarray(1), MAX_DECOMPRESSED);
    // Valid messages are compressed once. Only a decompression bomb is compressed repeatedly.
    if (plain === undefined || plain[0] === messageType.compress) return undefined;
    bytes = plain;
  }
  if (bytes.length === 0) return undefined;
  const messages: GossipMessage[] = [];
  for (const part of bytes[0] === messageType.compound ? split(bytes) : [bytes]) {
    const message = tryDecode(part);
    if (message !== undefined) messages.push(message);
  }
  return messages;
}

/** Content of a compressed message (`Algo`, `Buf`); undefined if it is damaged or too large. */
export function decompressed(body: Uint8Array, limit: number): Uint8Array | undefined {
  try {
    const fields = decodeFields(body);
    if (fields.uint('Algo', 0) !== 0) return undefined;
    return decompressLzw(fields.bytes('Buf', limit), limit);
  } catch (error) {
    if (error instanceof MsgpackError) return undefined;
    throw error;
  }
}

function tryDecode(part: Uint8Array): GossipMessage | undefined {
  try {
    return decodeMessage(part);
  } catch (error) {
    if (error instanceof MsgpackError) return undefined;
    throw error;
  }
}

function compound(parts: readonly Uint8Array[]): Uint8Array {
  const head = Buffer.alloc(2 + 2 * parts.length);
  head[0] = messageType.compound;
  head[1] = parts.length;
  parts.forEach((part, index) => {
    head.writeUInt16BE(part.length, 2 + 2 * index);
  });
  return Buffer.concat([head, ...parts]);
}

/** Complete messages in a compound message. The list ends at a truncated message. */
function split(bytes: Uint8Array): Uint8Array[] {
  const count = bytes[1] ?? 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 2 + 2 * count;
  const parts: Uint8Array[] = [];
  for (let i = 0; i < count && 4 + 2 * i <= bytes.length; i++) {
    const length = view.getUint16(2 + 2 * i);
    if (at + length > bytes.length) break;
    if (length > 0) parts.push(bytes.subarray(at, at + length));
    at += length;
  }
  return parts;
}

function withCrc(bytes: Uint8Array): Uint8Array {
  const head = Buffer.alloc(CRC_BYTES);
  head[0] = messageType.hasCrc;
  head.writeUInt32BE(crc32(bytes), 1);
  return Buffer.concat([head, bytes]);
}
