import type { Duplex } from 'node:stream';
import { ConnectionError, DEFAULT_WINDOW, ErrorCode, MAX_WINDOW } from './http2-frames.ts';

import { atTurnEnd } from './turn-end.ts';

/**
 * A pool of memory blocks for large writes. Fresh memory for every write would cost page faults, and the external
 * memory would make the garbage collector run constantly.
 */
const BLOCK_BYTES = 256 << 10;
/** Blocks kept in the pool; further blocks are released to the garbage collector. */
const KEPT = 8;

const free: Buffer[] = [];

function takeBlock(): Buffer {
  return free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

/** Returns `block` to the pool. It must not be read any more. */
function releaseBlock(block: Buffer): void {
  if (free.length < KEPT) free.push(block);
}

/** A stream with data to send. `pump` sends as much as the flow-control windows and one turn allow. */
export interface FrameSource {
  pump(): void;
}

/** Queued and unsent bytes above which streams must pause. */
const HIGH_WATER = 1 << 20;
/** Writes up to this size get their own buffer instead of a recycled block. */
const SMALL_WRITE = 16 << 10;
/**
 * Number of requests after which a flush happens before the event-loop turn ends, so that the peer works on them while
 * this process handles the rest of the turn. Without an early flush, both sides would alternate and wait for each
 * other. With a smaller number the extra writes cost more than the overlap gains.
 */
const EARLY_REQUESTS = 8;
/**
 * Window updates that the peer may send in response to one DATA frame (for the stream and the connection), and the
 * maximum number of outstanding updates.
 */
const UPDATES_PER_FRAME = 4;
const MAX_UPDATES = 1 << 16;
/** Maximum number of replies that may wait for a peer that does not read. */
const MAX_REPLIES = 10_000;

/**
 * The sending half of a connection: the queue of frames, the round-robin of streams, and the connection's send window.
 * Everything sent in one turn of the event loop leaves in one write; frames are collected while a write is in progress.
 */
export class FrameSender {
  readonly #socket: Duplex;
  /** Streams that have data, in round-robin order. */
  readonly #ready = new Set<FrameSource>();
  /** Streams that have data but no window. */
  readonly #stalled = new Set<FrameSource>();
  #out: Uint8Array[] = [];
  #outBytes = 0;
  /** Bytes passed to the socket and not yet written. */
  #leaving = 0;
  #flushQueued = false;
  /** Number of requests in the queue. */
  #requests = 0;
  /** Number of replies queued since the queue was last empty. */
  #replies = 0;
  #window = DEFAULT_WINDOW;
  #updatesExpected = 0;
  #closed = false;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  get congested(): boolean {
    return this.#outBytes + this.#leaving > HIGH_WATER;
  }

  /**
   * Queues a frame, in one or several pieces, for the end of this turn. The caller must not change the memory
   * afterwards.
   */
  write(bytes: Uint8Array): void {
    if (this.#closed) return;
    this.#out.push(bytes);
    this.#outBytes += bytes.length;
    this.#queueFlush();
  }

  /** Like `write`, for a complete request. */
  request(bytes: Uint8Array): void {
    this.write(bytes);
    this.#requests += 1;
    if (this.#requests === EARLY_REQUESTS) this.#flush();
  }

  /**
   * Like `write`, for the response to a frame that requires a response. Throws if the peer keeps sending such frames
   * and does not read.
   */
  reply(bytes: Uint8Array): void {
    this.#replies += 1;
    if (this.#replies > MAX_REPLIES)
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many replies are not read');
    this.write(bytes);
  }

  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    // All frames that result from the sockets that are readable in this turn are sent in one write.
    atTurnEnd(this.#flushAtTurnEnd);
  }

  /** Takes up to `wanted` bytes from the connection's send window; returns the number taken. */
  takeWindow(wanted: number): number {
    const granted = Math.min(wanted, this.#window);
    this.#window -= granted;
    this.#expectUpdates();
    return granted;
  }

  /** Takes `wanted` bytes from the send window, or none if it is too small. */
  takeWholeWindow(wanted: number): boolean {
    if (wanted > this.#window) return false;
    this.#window -= wanted;
    this.#expectUpdates();
    return true;
  }

  #expectUpdates(): void {
    if (this.#updatesExpected < MAX_UPDATES) this.#updatesExpected += UPDATES_PER_FRAME;
  }

  /** Applies a window update of the peer; returns false if the window exceeds its maximum. */
  widenWindow(increment: number): boolean {
    this.#window += increment;
    if (this.#window > MAX_WINDOW) return false;
    this.resume();
    return true;
  }

  /** Returns true if data sent earlier accounts for a window update of the peer. */
  takeExpectedUpdate(): boolean {
    if (this.#updatesExpected === 0) return false;
    this.#updatesExpected -= 1;
    return true;
  }

  /** Schedules a stream that has data. */
  enqueue(stream: FrameSource): void {
    this.#ready.add(stream);
    this.#queueFlush();
  }

  /** Parks a stream that has data until the send window is large enough. */
  stall(stream: FrameSource): void {
    this.#stalled.add(stream);
  }

  /** Schedules a parked stream whose own window has grown. */
  widened(stream: FrameSource): void {
    if (this.#stalled.delete(stream)) this.enqueue(stream);
  }

  /** Removes a stream that sends nothing any more. */
  release(stream: FrameSource): void {
    this.#ready.delete(stream);
    this.#stalled.delete(stream);
  }

  /** Discards everything that has not been written. */
  close(): void {
    this.#closed = true;
    this.#out = [];
    this.#outBytes = 0;
    this.#ready.clear();
    this.#stalled.clear();
  }

  readonly #flushAtTurnEnd = (): void => {
    this.#flushQueued = false;
    this.#flush();
  };

  /** Writes the queue, unless a write is in progress. The completion of that write calls this method again. */
  #flush(): void {
    if (this.#closed || this.#leaving > 0) return;
    for (const stream of this.#ready) {
      if (this.#outBytes >= BLOCK_BYTES) break;
      // A stream with more data is queued again behind the other streams.
      this.#ready.delete(stream);
      stream.pump();
    }
    if (this.#outBytes === 0) return;
    this.#requests = 0;
    const block = this.#outBytes > SMALL_WRITE ? takeBlock() : undefined;
    const bytes = block === undefined ? this.#takeAll() : this.#takeInto(block);
    this.#leaving = bytes.length;
    this.#socket.write(bytes, (error) => {
      this.#leaving = 0;
      // After an error the socket does not report completion.
      if (error !== null && error !== undefined) return;
      if (block !== undefined) releaseBlock(block);
      this.#flush();
    });
  }

  /** Writes the whole queue, even while another write is in progress. */
  flushAll(): void {
    if (this.#closed || this.#outBytes === 0) return;
    this.#socket.write(this.#takeAll());
  }

  #takeAll(): Uint8Array {
    const [first] = this.#out;
    const bytes = this.#out.length === 1 && first !== undefined ? first : Buffer.concat(this.#out, this.#outBytes);
    this.#out = [];
    this.#outBytes = 0;
    this.#replies = 0;
    return bytes;
  }

  /** Moves as many queued bytes as fit into `block`. */
  #takeInto(block: Buffer): Buffer {
    const pieces = this.#out;
    let at = 0;
    let used = 0;
    for (; used < pieces.length; used += 1) {
      const piece = pieces[used] as Uint8Array;
      const room = block.length - at;
      if (piece.length > room) {
        block.set(piece.subarray(0, room), at);
        at += room;
        pieces[used] = piece.subarray(room);
        break;
      }
      block.set(piece, at);
      at += piece.length;
    }
    this.#out = used === pieces.length ? [] : pieces.slice(used);
    this.#outBytes -= at;
    if (this.#outBytes === 0) this.#replies = 0;
    return block.subarray(0, at);
  }

  /** Schedules all parked streams. */
  resume(): void {
    for (const stream of this.#stalled) this.enqueue(stream);
    this.#stalled.clear();
  }
}
