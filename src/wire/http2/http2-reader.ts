import { ConnectionError, ErrorCode, Flag, FRAME_HEADER, FrameType, MAX_FRAME, PREFACE } from './http2-frames.ts';

/** Receiver of parsed frames. Each method may throw `ConnectionError`. */
export interface FrameHandler {
  /** Start of a DATA frame of `length` bytes, including padding. */
  dataBegins(id: number, length: number, endStream: boolean): void;
  /** Next bytes of the current DATA frame. `whole`: these are the last bytes of the frame. */
  data(bytes: Buffer, whole: boolean): void;
  /** A complete header block, still HPACK-encoded. */
  headers(id: number, block: Buffer, endStream: boolean): void;
  control(type: number, flags: number, id: number, payload: Buffer): void;
  /** Reports a frame that costs the peer nothing, to be counted. */
  idle(): void;
}

/** Limit for one header block; also announced to the peer. */
export const MAX_HEADER_BLOCK = 64 << 10;

/**
 * Splits the received bytes into frames (RFC 9113 §4 to §6.10) and validates their order: client preface, settings
 * first, uninterrupted header blocks. DATA is delivered as it arrives, because waiting for a whole frame would copy
 * most of the bytes.
 */
export class FrameReader {
  readonly #handler: FrameHandler;
  #prefaceLeft: number;
  #partial: Buffer | undefined;
  /** Bytes of the current DATA frame that have not arrived yet. */
  #dataLeft = 0;
  #settingsSeen = false;
  #closed = false;
  #headerBlock: { readonly id: number; readonly endStream: boolean; pieces: Buffer[]; bytes: number } | undefined;

  /** `preface`: the peer is a client, so its connection starts with the preface. */
  constructor(handler: FrameHandler, preface: boolean) {
    this.#handler = handler;
    this.#prefaceLeft = preface ? PREFACE.length : 0;
  }

  /** Ignores all further bytes, including the rest of the chunk that is being parsed. */
  close(): void {
    this.#closed = true;
  }

  /** Parses the next bytes of the connection. Throws `ConnectionError`; it must not be called after that. */
  read(chunk: Buffer): void {
    this.#parse(this.#partial === undefined ? chunk : Buffer.concat([this.#partial, chunk]));
  }

  #parse(bytes: Buffer): void {
    let at = 0;
    if (this.#prefaceLeft > 0) {
      const part = Math.min(this.#prefaceLeft, bytes.length);
      const from = PREFACE.length - this.#prefaceLeft;
      if (bytes.compare(PREFACE, from, from + part, 0, part) !== 0) {
        throw new ConnectionError(ErrorCode.protocol, 'not an HTTP/2 client');
      }
      this.#prefaceLeft -= part;
      at = part;
    }
    if (this.#dataLeft > 0) at = this.#dataPart(bytes, at);
    if (this.#closed) return;
    while (bytes.length - at >= FRAME_HEADER) {
      const length = bytes.readUIntBE(at, 3);
      if (length > MAX_FRAME) throw new ConnectionError(ErrorCode.frameSize, 'frame is too large');
      const end = at + FRAME_HEADER + length;
      const type = bytes[at + 3] as number;
      const flags = bytes[at + 4] as number;
      const id = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      if (type === FrameType.data && (flags & Flag.padded) === 0) {
        this.#checkOrder(type, id);
        this.#beginData(id, flags, length);
        at = this.#dataPart(bytes, at + FRAME_HEADER);
        if (this.#closed) return;
        continue;
      }
      if (end > bytes.length) break;
      this.#frame(type, flags, id, bytes.subarray(at + FRAME_HEADER, end));
      if (this.#closed) return;
      at = end;
    }
    this.#partial = at < bytes.length ? bytes.subarray(at) : undefined;
  }

  #checkOrder(type: number, id: number): void {
    if (this.#headerBlock !== undefined && (type !== FrameType.continuation || id !== this.#headerBlock.id)) {
      throw new ConnectionError(ErrorCode.protocol, 'header block is interrupted');
    }
    if (!this.#settingsSeen && type !== FrameType.settings) {
      throw new ConnectionError(ErrorCode.protocol, 'the first frame is not SETTINGS');
    }
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#checkOrder(type, id);
    switch (type) {
      case FrameType.data:
        this.#beginData(id, flags, payload.length);
        this.#dataPart(unpad(payload, 0), 0, { all: true });
        return;
      case FrameType.headers:
        this.#headers(id, flags, payload);
        return;
      case FrameType.continuation:
        this.#continuation(flags, payload);
        return;
      case FrameType.settings:
        this.#settingsSeen = true;
        this.#handler.control(type, flags, id, payload);
        return;
      case FrameType.pushPromise:
        throw new ConnectionError(ErrorCode.protocol, 'PUSH_PROMISE although push is disabled');
      default:
        this.#handler.control(type, flags, id, payload);
    }
  }

  #beginData(id: number, flags: number, length: number): void {
    if (id === 0) throw new ConnectionError(ErrorCode.protocol, 'DATA on stream 0');
    this.#dataLeft = length;
    this.#handler.dataBegins(id, length, (flags & Flag.endStream) !== 0);
  }

  /**
   * Delivers the bytes of the current DATA frame in `bytes` from `at` (all of `bytes`, or as many as belong to the
   * frame) and returns the end position.
   */
  #dataPart(bytes: Buffer, at: number, { all = false }: { readonly all?: boolean } = {}): number {
    const end = all ? bytes.length : Math.min(bytes.length, at + this.#dataLeft);
    this.#dataLeft = all ? 0 : this.#dataLeft - (end - at);
    const whole = this.#dataLeft === 0;
    if (end > at || whole) this.#handler.data(bytes.subarray(at, end), whole);
    return end;
  }

  #headers(id: number, flags: number, payload: Buffer): void {
    if (id === 0) throw new ConnectionError(ErrorCode.protocol, 'HEADERS on stream 0');
    const skip = (flags & Flag.priority) === 0 ? 0 : 5;
    let block = payload;
    if ((flags & Flag.padded) !== 0) block = unpad(payload, skip);
    else if (skip > 0) {
      if (payload.length < skip) throw new ConnectionError(ErrorCode.frameSize, 'headers are cut short');
      block = payload.subarray(skip);
    }
    const endStream = (flags & Flag.endStream) !== 0;
    if ((flags & Flag.endHeaders) !== 0) this.#handler.headers(id, block, endStream);
    else this.#headerBlock = { id, endStream, pieces: [block], bytes: block.length };
  }

  #continuation(flags: number, payload: Buffer): void {
    const block = this.#headerBlock;
    if (block === undefined) throw new ConnectionError(ErrorCode.protocol, 'CONTINUATION without HEADERS');
    if (payload.length > 0) block.pieces.push(payload);
    block.bytes += payload.length;
    this.#handler.idle();
    if (block.bytes > MAX_HEADER_BLOCK) throw new ConnectionError(ErrorCode.enhanceYourCalm, 'headers are too large');
    if ((flags & Flag.endHeaders) === 0) return;
    this.#headerBlock = undefined;
    this.#handler.headers(block.id, Buffer.concat(block.pieces), block.endStream);
  }
}

function unpad(payload: Buffer, skip: number): Buffer {
  const padding = payload[0];
  if (padding === undefined || 1 + skip + padding > payload.length) {
    throw new ConnectionError(ErrorCode.protocol, 'padding is longer than the frame');
  }
  return payload.subarray(1 + skip, payload.length - padding);
}
