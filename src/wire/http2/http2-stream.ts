import type { HeaderField } from './hpack.ts';
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
import type { FrameSender, FrameSource } from './http2-sender.ts';

export interface StreamEvents {
  headers?(fields: readonly HeaderField[], endStream: boolean): void;
  data(bytes: Buffer, endStream: boolean): void;
  /** The stream ended early: the peer reset it or the connection closed. Not called after both sides have ended. */
  lost(reason: string, code: number): void;
  /** All queued data has been passed to the connection. */
  drained?(): void;
  /** The stream does not end by itself, for example a watch. */
  readonly lasting?: boolean;
}

export interface StreamOwner {
  readonly client: boolean;
  /** Removes a stream that has ended on both sides or was reset. */
  release(stream: Http2Stream): void;
  /** Gives the peer a new receive window if the present one is small. */
  widen(stream: Http2Stream): void;
  /** Counts a stream reset that the peer has provoked (CVE-2025-8671). Throws when there are too many. */
  provoked(): void;
}

/** Queued bytes of one stream above which its writer must pause. */
const HIGH_WATER = 4 << 20;
/** Bytes that one stream sends per turn of the round-robin. */
const TURN = 64 << 10;

/** Number of sent pieces after which the queue is compacted. */
const MANY_PIECES = 1024;

const NO_EVENTS: StreamEvents = { data: () => {}, lost: () => {} };

export class Http2Stream implements FrameSource {
  readonly id: number;
  readonly #owner: StreamOwner;
  readonly #sender: FrameSender;
  events: StreamEvents = NO_EVENTS;
  sendWindow: number;
  receiveWindow = 4 << 20;
  /** Pieces to send from index `#first`. The sent pieces before `#first` are removed from time to time. */
  #queue: Uint8Array[] = [];
  #first = 0;
  #firstOffset = 0;
  #queueBytes = 0;
  #trailers: Buffer | undefined;
  #endAfterData = false;
  #sentEnd = false;
  #receivedEnd = false;
  #gone = false;
  #paused = false;

  constructor(owner: StreamOwner, sender: FrameSender, id: number, sendWindow: number) {
    this.#owner = owner;
    this.#sender = sender;
    this.id = id;
    this.sendWindow = sendWindow;
  }

  get open(): boolean {
    return !this.#gone && !this.#sentEnd;
  }

  /** True while the peer gets no new receive window. */
  get paused(): boolean {
    return this.#paused;
  }

  /** Limits what the peer can send to the rest of its receive window. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.#gone && !this.#receivedEnd) this.#owner.widen(this);
  }

  sendHeaders(block: Buffer, { endStream }: { readonly endStream: boolean }): void {
    if (!this.open) return;
    this.#sender.write(headersFrames(this.id, block, { endStream }));
    if (endStream) this.#ended();
  }

  /**
   * Sends a complete short exchange: headers, data, and trailers or the end of the stream. It uses one buffer if the
   * windows allow it, which is the usual case.
   */
  sendAll(headers: Buffer, prefix: Buffer, message: Uint8Array, trailers: Buffer | undefined): void {
    if (!this.open) return;
    const length = prefix.length + message.length;
    const fits = length <= MAX_FRAME && length <= this.sendWindow && !this.#sender.congested;
    if (!fits || !this.#sender.takeWholeWindow(length)) {
      this.sendPieces(headers, [prefix, message], trailers);
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
    if (this.#owner.client) this.#sender.request(out);
    else this.#sender.write(out);
    this.#ended();
  }

  /** Like `sendAll`, for any size. */
  sendPieces(headers: Buffer, pieces: readonly Uint8Array[], trailers: Buffer | undefined): void {
    this.sendHeaders(headers, { endStream: false });
    this.sendData(pieces);
    this.end(trailers);
  }

  /**
   * Queues data; the caller must not change the pieces afterwards. Small consecutive pieces share frames. Returns false
   * when the queue is full; `drained` follows.
   */
  sendData(pieces: readonly Uint8Array[]): boolean {
    if (!this.open) return true;
    const wasEmpty = this.#queueBytes === 0;
    for (const piece of pieces) {
      if (piece.length === 0) continue;
      this.#queue.push(piece);
      this.#queueBytes += piece.length;
    }
    if (wasEmpty && this.#queueBytes > 0) this.#sender.enqueue(this);
    return this.#queueBytes < HIGH_WATER && !this.#sender.congested;
  }

  /** Ends the sending side once the queue is empty, with trailers if given. */
  end(trailers?: Buffer): void {
    if (!this.open) return;
    this.#trailers = trailers;
    this.#endAfterData = true;
    if (this.#queueBytes === 0) this.#sendEnd();
  }

  reset(code: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#sender.write(resetFrame(this.id, code));
    this.#owner.release(this);
    this.#drop();
    this.events = NO_EVENTS;
  }

  /** Resets the stream because of what the peer sent on it. */
  refuse(code: number): void {
    if (this.#gone) return;
    const { events } = this;
    this.reset(code);
    events.lost('stream was reset for a violation of the protocol', code);
    this.#owner.provoked();
  }

  /** Sends as much as the windows and one turn allow. */
  pump(): void {
    if (this.#gone || this.#queueBytes === 0) return;
    for (let left = TURN; this.#queueBytes > 0 && left > 0; ) {
      const wanted = Math.min(this.#queueBytes, MAX_FRAME, this.sendWindow);
      const length = wanted <= 0 ? 0 : this.#sender.takeWindow(wanted);
      if (length <= 0) {
        this.#sender.stall(this);
        return;
      }
      this.sendWindow -= length;
      left -= length;
      const last = length === this.#queueBytes && this.#endAfterData && this.#trailers === undefined;
      this.#sendFrame(length, last ? Flag.endStream : 0);
      if (last) this.#ended();
    }
    if (this.#queueBytes > 0) this.#sender.enqueue(this);
    else if (this.#endAfterData) this.#sendEnd();
    else this.events.drained?.();
  }

  receiveHeaders(fields: readonly HeaderField[], endStream: boolean): void {
    if (this.#gone) return;
    if (this.#receivedEnd) {
      this.refuse(ErrorCode.streamClosed);
      return;
    }
    if (endStream) this.#receivedEnd = true;
    this.events.headers?.(fields, endStream);
    this.#settle();
  }

  receiveData(bytes: Buffer, endStream: boolean): void {
    if (this.#gone) return;
    if (this.#receivedEnd) {
      this.refuse(ErrorCode.streamClosed);
      return;
    }
    if (endStream) this.#receivedEnd = true;
    this.events.data(bytes, endStream);
    this.#settle();
  }

  receiveReset(code: number): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#owner.release(this);
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
    if (this.#trailers !== undefined) this.#sender.write(headersFrames(this.id, this.#trailers, { endStream: true }));
    else this.#sendFrame(0, Flag.endStream);
    this.#ended();
  }

  #ended(): void {
    this.#sentEnd = true;
    if (!this.#owner.client && !this.#receivedEnd) {
      // The response was complete before the request: the client need not send the rest (RFC 9113 §8.1).
      this.reset(ErrorCode.none);
      return;
    }
    this.#settle();
  }

  #settle(): void {
    if (this.#gone || !this.#receivedEnd) return;
    if (!this.#sentEnd) {
      // The response is complete. The server will not read the rest of the request, which may never get a send window.
      if (this.#owner.client) this.reset(ErrorCode.cancel);
      return;
    }
    this.#gone = true;
    this.#owner.release(this);
    // The connection's tables may keep a reference to the stream for a while, so release the listeners.
    this.events = NO_EVENTS;
  }

  #drop(): void {
    this.#queue = [];
    this.#first = 0;
    this.#queueBytes = 0;
  }

  /** Sends a DATA frame with the next `length` bytes of the queue, without copying the pieces. */
  #sendFrame(length: number, flags: number): void {
    const header = Buffer.allocUnsafe(FRAME_HEADER);
    putFrameHeader(header, 0, length, FrameType.data, flags, this.id);
    this.#sender.write(header);
    for (let left = length; left > 0; ) {
      const piece = this.#queue[this.#first] as Uint8Array;
      const end = Math.min(piece.length, this.#firstOffset + left);
      const whole = this.#firstOffset === 0 && end === piece.length;
      this.#sender.write(whole ? piece : piece.subarray(this.#firstOffset, end));
      left -= end - this.#firstOffset;
      this.#firstOffset = end === piece.length ? 0 : end;
      if (end === piece.length) this.#first += 1;
    }
    this.#queueBytes -= length;
    if (this.#queueBytes === 0) this.#drop();
    else if (this.#first > MANY_PIECES) {
      this.#queue = this.#queue.slice(this.#first);
      this.#first = 0;
    }
  }
}
