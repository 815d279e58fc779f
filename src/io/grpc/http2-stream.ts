import type { HeaderField } from './hpack.ts';
import type { Http2Connection } from './http2-connection.ts';
import {
  ErrorCode,
  Flag,
  FRAME_HEADER,
  FrameType,
  headersFrames,
  MAX_FRAME,
  putFrameHeader,
  resetFrame,
} from './http2-frames.ts';

export interface StreamEvents {
  headers?(fields: readonly HeaderField[], endStream: boolean): void;
  data(bytes: Buffer, endStream: boolean): void;
  /** The stream ended early: reset by the peer, or the connection is gone. Not called after both sides ended. */
  lost(reason: string, code: number): void;
  /** Everything queued has been handed to the connection. */
  drained?(): void;
}

/** What one stream may have waiting before it asks its writer to pause. */
const HIGH_WATER = 512 << 10;
/** How much one stream sends before others get their turn. */
const TURN = 256 << 10;

const NOBODY: StreamEvents = { data: () => {}, lost: () => {} };

/** One stream of an HTTP/2 connection. */
export class Http2Stream {
  readonly id: number;
  readonly #connection: Http2Connection;
  events: StreamEvents = NOBODY;
  sendWindow: number;
  receiveWindow = 4 << 20;
  #queue: Buffer[] = [];
  #queueBytes = 0;
  #firstOffset = 0;
  #trailers: Buffer | undefined;
  #endAfterData = false;
  #sentEnd = false;
  #receivedEnd = false;
  #gone = false;

  constructor(connection: Http2Connection, id: number, sendWindow: number) {
    this.#connection = connection;
    this.id = id;
    this.sendWindow = sendWindow;
  }

  get open(): boolean {
    return !this.#gone && !this.#sentEnd;
  }

  sendHeaders(block: Buffer, endStream: boolean): void {
    if (!this.open) return;
    this.#connection.write(headersFrames(this.id, block, endStream));
    if (endStream) this.#ended();
  }

  /**
   * Everything of a short exchange at once: headers and data, and then trailers or the end. One buffer where the windows allow
   * it, which is nearly always.
   */
  sendAll(headers: Buffer, prefix: Buffer, message: Uint8Array, trailers: Buffer | undefined): void {
    if (!this.open) return;
    const length = prefix.length + message.length;
    const fits = length <= MAX_FRAME && length <= this.sendWindow && !this.#connection.congested;
    if (!fits || !this.#connection.takeWholeWindow(length)) {
      this.sendHeaders(headers, false);
      this.sendData([prefix, message]);
      this.end(trailers);
      return;
    }
    this.sendWindow -= length;
    const tail = trailers === undefined ? 0 : FRAME_HEADER + trailers.length;
    const out = Buffer.allocUnsafe(FRAME_HEADER + headers.length + FRAME_HEADER + length + tail);
    let at = putFrameHeader(out, 0, headers.length, FrameType.headers, Flag.endHeaders, this.id);
    out.set(headers, at);
    at += headers.length;
    at = putFrameHeader(out, at, length, FrameType.data, trailers === undefined ? Flag.endStream : 0, this.id);
    out.set(prefix, at);
    out.set(message, at + prefix.length);
    at += length;
    if (trailers !== undefined) {
      at = putFrameHeader(out, at, trailers.length, FrameType.headers, Flag.endHeaders | Flag.endStream, this.id);
      out.set(trailers, at);
    }
    this.#connection.write(out);
    this.#ended();
  }

  /** Queues data. False when enough is waiting: `drained` follows. */
  sendData(pieces: readonly Uint8Array[]): boolean {
    if (!this.open) return true;
    for (const piece of pieces) {
      if (piece.length === 0) continue;
      this.#queue.push(Buffer.isBuffer(piece) ? piece : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
      this.#queueBytes += piece.length;
    }
    this.pump();
    return this.#queueBytes < HIGH_WATER && !(this.#connection.congested && this.#queueBytes > 0);
  }

  /** Ends our side once the queue is empty, with trailers when given. */
  end(trailers?: Buffer): void {
    if (!this.open) return;
    this.#trailers = trailers;
    this.#endAfterData = true;
    if (this.#queueBytes === 0) this.#sendEnd();
  }

  reset(code: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#connection.write(resetFrame(this.id, code));
    this.#connection.release(this);
    this.#drop();
  }

  /** Sends what the windows and the socket allow. */
  pump(): void {
    if (this.#gone || this.#queueBytes === 0) return;
    let sent = 0;
    while (this.#queueBytes > 0) {
      if (this.#connection.congested || this.sendWindow <= 0 || sent >= TURN) break;
      const wanted = Math.min(this.#queueBytes, MAX_FRAME, this.sendWindow);
      const length = this.#connection.takeWindow(wanted);
      if (length === 0) break;
      this.sendWindow -= length;
      sent += length;
      const last = length === this.#queueBytes && this.#endAfterData && this.#trailers === undefined;
      this.#connection.write(this.#dataFrame(length, last ? Flag.endStream : 0));
      if (last) this.#ended();
    }
    if (this.#queueBytes > 0) {
      this.#connection.stall(this, sent >= TURN);
      return;
    }
    if (this.#endAfterData) this.#sendEnd();
    else this.events.drained?.();
  }

  receiveHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    if (this.#gone) return;
    if (endStream) this.#receivedEnd = true;
    this.events.headers?.(fields, endStream);
    this.#settle();
  }

  receiveData(bytes: Buffer, endStream: boolean): void {
    if (this.#gone) return;
    if (this.#receivedEnd) {
      this.reset(ErrorCode.streamClosed);
      return;
    }
    if (endStream) this.#receivedEnd = true;
    this.events.data(bytes, endStream);
    this.#settle();
  }

  receiveReset(code: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#connection.release(this);
    this.#drop();
    this.events.lost(`stream was reset by the peer (code ${code})`, code);
  }

  lost(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#drop();
    this.events.lost(reason, -1);
  }

  #sendEnd(): void {
    if (!this.open) return;
    if (this.#trailers !== undefined) this.#connection.write(headersFrames(this.id, this.#trailers, true));
    else this.#connection.write(this.#dataFrame(0, Flag.endStream));
    this.#ended();
  }

  #ended(): void {
    this.#sentEnd = true;
    if (!this.#connection.client && !this.#receivedEnd) {
      // An answer before the request has ended: the client need not send the rest (RFC 9113, 8.1).
      this.reset(ErrorCode.none);
      return;
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#gone || !this.#sentEnd || !this.#receivedEnd) return;
    this.#gone = true;
    this.#connection.release(this);
  }

  #drop(): void {
    this.#queue = [];
    this.#queueBytes = 0;
  }

  #dataFrame(length: number, flags: number): Buffer {
    const out = Buffer.allocUnsafe(FRAME_HEADER + length);
    let at = putFrameHeader(out, 0, length, FrameType.data, flags, this.id);
    let left = length;
    let used = 0;
    while (left > 0) {
      const piece = this.#queue[used] as Buffer;
      const available = piece.length - this.#firstOffset;
      const part = Math.min(available, left);
      piece.copy(out, at, this.#firstOffset, this.#firstOffset + part);
      at += part;
      left -= part;
      if (part === available) {
        used += 1;
        this.#firstOffset = 0;
      } else this.#firstOffset += part;
    }
    if (used > 0) this.#queue.splice(0, used);
    this.#queueBytes -= length;
    return out;
  }
}
