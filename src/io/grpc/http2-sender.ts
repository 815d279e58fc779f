import type { Duplex } from 'node:stream';
import { ConnectionError, DEFAULT_WINDOW, ErrorCode, MAX_WINDOW } from './http2-frames.ts';
import { BLOCK_BYTES, giveBlock, takeBlock } from './send-blocks.ts';
import { atTurnEnd } from './turn-end.ts';

/** What has data to send: it sends what the windows allow, as much as one turn takes. */
export interface FrameSource {
  pump(): void;
}

/** Bytes that are ready to leave, or leaving, above which streams are asked to pause. */
const HIGH_WATER = 1 << 20;
/** Writes up to this size get memory of their own. */
const SMALL_WRITE = 16 << 10;
/**
 * Requests of one turn that are handed over before the turn is over, so that the peer works on them while we work on
 * what else has arrived: otherwise both take turns, and each waits for the other. Fewer would cost both more than that
 * gains: each write, flush and answer is for so many fewer.
 */
const EARLY_REQUESTS = 8;
/**
 * Window updates that a DATA frame of ours may be answered with, by its stream and the connection, and how many may be
 * outstanding.
 */
const UPDATES_PER_FRAME = 4;
const MAX_UPDATES = 1 << 16;
/** Replies that may wait for a peer that does not read. */
const MAX_REPLIES = 10_000;

/**
 * The sending half of a connection: frames that wait to leave, the streams that take turns, and the connection's send
 * window. What is sent in one turn of the event loop leaves in one write, put together from the pieces that it consists
 * of; while a write is under way the next one is gathered.
 */
export class FrameSender {
  readonly #socket: Duplex;
  /** Streams that have data, in the order of their turns. */
  readonly #ready = new Set<FrameSource>();
  /** Streams that have data and no window. */
  readonly #stalled = new Set<FrameSource>();
  #out: Uint8Array[] = [];
  #outBytes = 0;
  /** What the socket has been given and has not taken yet. */
  #leaving = 0;
  #flushQueued = false;
  /** Requests that have not left yet. */
  #requests = 0;
  /** Since what waited last left as a whole. */
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

  /** Queues a frame, or in pieces one after the other, for the end of this turn. Its memory is not changed any more. */
  write(bytes: Uint8Array): void {
    if (this.#closed) return;
    this.#out.push(bytes);
    this.#outBytes += bytes.length;
    this.#queueFlush();
  }

  /** As `write`, for a request that is complete. */
  request(bytes: Uint8Array): void {
    this.write(bytes);
    this.#requests += 1;
    if (this.#requests === EARLY_REQUESTS) this.#flush();
  }

  /** As `write`, for what the peer's frame has to be answered with. Throws when it sends them and does not read. */
  reply(bytes: Uint8Array): void {
    this.#replies += 1;
    if (this.#replies > MAX_REPLIES)
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many replies are not read');
    this.write(bytes);
  }

  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    // What the sockets that were ready have caused goes out in one write.
    atTurnEnd(this.#flushAtTurnEnd);
  }

  /** Takes up to `wanted` bytes out of the connection's send window. */
  takeWindow(wanted: number): number {
    const taken = Math.min(wanted, this.#window);
    this.#window -= taken;
    this.#expectUpdates();
    return taken;
  }

  /** Takes `wanted` bytes or nothing. */
  takeWholeWindow(wanted: number): boolean {
    if (wanted > this.#window) return false;
    this.#window -= wanted;
    this.#expectUpdates();
    return true;
  }

  #expectUpdates(): void {
    if (this.#updatesExpected < MAX_UPDATES) this.#updatesExpected += UPDATES_PER_FRAME;
  }

  /** The peer has opened the window further; false when it is too large now. */
  widenWindow(increment: number): boolean {
    this.#window += increment;
    if (this.#window > MAX_WINDOW) return false;
    this.resume();
    return true;
  }

  /** True when what we have sent accounts for a window update of the peer. */
  takeExpectedUpdate(): boolean {
    if (this.#updatesExpected === 0) return false;
    this.#updatesExpected -= 1;
    return true;
  }

  /** The stream has data: it is asked to send when its turn comes. */
  enqueue(stream: FrameSource): void {
    this.#ready.add(stream);
    this.#queueFlush();
  }

  /** The stream has data and no window: it is asked to send when there is one. */
  stall(stream: FrameSource): void {
    this.#stalled.add(stream);
  }

  /** A stream has a window again. */
  widened(stream: FrameSource): void {
    if (this.#stalled.delete(stream)) this.enqueue(stream);
  }

  /** The stream does not send any more. */
  release(stream: FrameSource): void {
    this.#ready.delete(stream);
    this.#stalled.delete(stream);
  }

  /** Drops what has not left. */
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

  /** Writes what there is, unless a write is under way: its end is the next occasion. */
  #flush(): void {
    if (this.#closed || this.#leaving > 0) return;
    for (const stream of this.#ready) {
      if (this.#outBytes >= BLOCK_BYTES) break;
      // A stream that is not done after this is queued again behind the others.
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
      if (block !== undefined) giveBlock(block);
      this.#flush();
    });
  }

  /** Writes everything that is ready to leave, whatever is under way. */
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

  /** As much as fits. */
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

  /** Streams that had no window look again. */
  resume(): void {
    for (const stream of this.#stalled) this.enqueue(stream);
    this.#stalled.clear();
  }
}
