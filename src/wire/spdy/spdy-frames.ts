/** Encodes and decodes SPDY/3.1 frames and name/value blocks (SPDY protocol draft 3.1, section 2). No state, no I/O. */
import { CodedError } from '../../base/errors.ts';
import { SPDY_DICTIONARY_ID } from './dictionary.ts';

export const SPDY_VERSION = 3;
export const FRAME_HEADER_BYTES = 8;
/** Larger control frames are a protocol error. Kubernetes clients send a few hundred bytes. */
export const MAX_CONTROL_FRAME_BYTES = 64 * 1024;

export const FrameType = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  headers: 8,
  windowUpdate: 9,
} as const;

export const FLAG_FIN = 0x01;

export const RstStatus = {
  protocolError: 1,
  invalidStream: 2,
  refusedStream: 3,
  cancel: 5,
  internalError: 6,
  flowControlError: 7,
  streamInUse: 8,
} as const;

export const SETTING_INITIAL_WINDOW = 7;

export interface FrameHeader {
  readonly control: boolean;
  /** Only in control frames. */
  readonly version: number;
  readonly type: number;
  /** Only in data frames. */
  readonly streamId: number;
  readonly flags: number;
  readonly length: number;
}

export type SpdyHeaders = ReadonlyMap<string, string>;

export function decodeFrameHeader(bytes: Buffer): FrameHeader {
  const first = bytes.readUInt32BE(0);
  const second = bytes.readUInt32BE(4);
  const control = first >>> 31 === 1;
  return {
    control,
    version: control ? (first >>> 16) & 0x7fff : SPDY_VERSION,
    type: control ? first & 0xffff : 0,
    streamId: control ? 0 : first & 0x7fffffff,
    flags: second >>> 24,
    length: second & 0xffffff,
  };
}

export function encodeControlFrame(type: number, flags: number, payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(FRAME_HEADER_BYTES + payload.length);
  frame.writeUInt32BE((0x80000000 | (SPDY_VERSION << 16) | type) >>> 0, 0);
  frame.writeUInt32BE(((flags << 24) | payload.length) >>> 0, 4);
  frame.set(payload, FRAME_HEADER_BYTES);
  return frame;
}

export function encodeDataHeader(streamId: number, flags: number, length: number): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUInt32BE(streamId, 0);
  header.writeUInt32BE(((flags << 24) | length) >>> 0, 4);
  return header;
}

/** Encodes a control frame of 32-bit words: RST_STREAM, PING, GOAWAY, WINDOW_UPDATE. */
export function encodeWords(type: number, ...words: number[]): Buffer {
  const payload = Buffer.alloc(words.length * 4);
  words.forEach((word, index) => {
    payload.writeUInt32BE(word >>> 0, index * 4);
  });
  return encodeControlFrame(type, 0, payload);
}

/**
 * Parses a name/value block. Names are lower case by the protocol; repeated values are joined by NUL in the block and
 * in the result. Throws CodedError 'protocol' for a malformed block.
 */
export function decodeHeaderBlock(block: Buffer): SpdyHeaders {
  const headers = new Map<string, string>();
  let offset = 0;
  const word = (): number => {
    if (offset + 4 > block.length) throw new CodedError('protocol', 'SPDY header block is cut short');
    const value = block.readUInt32BE(offset);
    offset += 4;
    return value;
  };
  const text = (): string => {
    const length = word();
    if (length > block.length - offset) throw new CodedError('protocol', 'SPDY header block is cut short');
    const value = block.toString('utf8', offset, offset + length);
    offset += length;
    return value;
  };
  const count = word();
  if (count > 256) throw new CodedError('protocol', 'SPDY header block has more than 256 entries');
  for (let index = 0; index < count; index++) headers.set(text().toLowerCase(), text());
  return headers;
}

export function encodeHeaderBlock(headers: SpdyHeaders): Buffer {
  const parts: Buffer[] = [];
  const word = (value: number): void => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value);
    parts.push(bytes);
  };
  word(headers.size);
  for (const [name, value] of headers) {
    for (const text of [name, value]) {
      const bytes = Buffer.from(text, 'utf8');
      word(bytes.length);
      parts.push(bytes);
    }
  }
  return Buffer.concat(parts);
}

const EMPTY_BLOCK = Buffer.from([0, 0, 0, 0xff, 0xff]);

/**
 * Wraps header blocks into one endless zlib stream of stored (uncompressed) deflate blocks. That is valid zlib data,
 * every block ends on a byte boundary, and no compressor state is kept for the few bytes that a server sends.
 */
export function createStoredDeflate(): (block: Buffer) => Buffer {
  let first = true;
  return (block) => {
    const parts: Buffer[] = [];
    if (first) {
      // CMF 0x78 (deflate, 32 KiB window); FLG with FDICT, level 2 and check bits that make the pair a multiple of 31.
      const header = Buffer.from([0x78, 0xbb, 0, 0, 0, 0]);
      header.writeUInt32BE(SPDY_DICTIONARY_ID, 2);
      parts.push(header);
      first = false;
    }
    for (let offset = 0; offset < block.length; offset += 0xffff) {
      const piece = block.subarray(offset, offset + 0xffff);
      const header = Buffer.alloc(5);
      header.writeUInt16LE(piece.length, 1);
      header.writeUInt16LE(~piece.length & 0xffff, 3);
      parts.push(header, piece);
    }
    // An empty stored block ends a sync flush. Go's inflater returns its output only when it reads an empty stored
    // block.
    parts.push(EMPTY_BLOCK);
    return Buffer.concat(parts);
  };
}
