/**
 * One HTTP/2 connection (RFC 9113), either side, over a socket that is already open. It does what gRPC needs and
 * answers for what a peer may send: multiplexed streams, flow control both ways, settings, pings, orderly goodbye; no
 * server push and no priorities. What is sent in one turn of the event loop leaves in one write, put together from the
 * pieces that it consists of; while a write is under way the next one is gathered.
 *
 * `node:http2` does the same for about 50 µs of CPU a request on each side; here it is a few.
 */
import type { Duplex } from 'node:stream';
import { type HeaderField, HpackDecoder, HpackError } from './hpack.ts';
import {
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FRAME_HEADER,
  FrameType,
  frame,
  goAwayFrame,
  MAX_FRAME,
  MAX_WINDOW,
  PREFACE,
  resetFrame,
  Setting,
  settingsFrame,
  windowUpdateFrame,
} from './http2-frames.ts';
import { Http2Stream, type StreamEvents } from './http2-stream.ts';
import { BLOCK_BYTES, giveBlock, takeBlock } from './send-blocks.ts';
import { atTurnEnd } from './turn-end.ts';

export interface ConnectionEvents {
  /** A peer has opened a stream; returns who hears about it. Servers only. */
  opened?(stream: Http2Stream, fields: readonly HeaderField[], endStream: boolean): StreamEvents;
  /** The peer will not take new streams (clients), or the connection is closing. Streams under way may still finish. */
  goingAway(): void;
  /** The connection is closed and so are its streams; each has been notified. */
  closed(reason: string): void;
}

export interface ConnectionOptions {
  readonly client: boolean;
  readonly events: ConnectionEvents;
  /** Streams a peer may have open at once. */
  readonly maxStreams?: number;
}

/** What a peer may send before we say that we have taken it: whole connection and each stream. */
const CONNECTION_WINDOW = 16 << 20;
const STREAM_WINDOW = 4 << 20;
const MAX_HEADER_BLOCK = 64 << 10;
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
 * Frames that cost us something and the peer nothing (pings, settings, resets, empty data, frames of closed streams),
 * in a window of time.
 */
const MAX_IDLE_FRAMES = 2000;
const IDLE_FRAME_WINDOW_MS = 10_000;
const GOODBYE_MS = 1000;
/**
 * Window updates that a DATA frame of ours may be answered with, by its stream and the connection, and how many may be
 * outstanding.
 */
const UPDATES_PER_FRAME = 4;
const MAX_UPDATES = 1 << 16;

class ConnectionError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export class Http2Connection {
  /** Settles when the peer has sent its settings; rejects when the connection ends before that. */
  readonly ready: Promise<void>;
  readonly #greeted: PromiseWithResolvers<void>;
  readonly #socket: Duplex;
  /** Which side we are. */
  readonly client: boolean;
  readonly #events: ConnectionEvents;
  readonly #maxStreams: number;
  readonly #streams = new Map<number, Http2Stream>();
  readonly #decoder = new HpackDecoder();
  /** Streams that have data, in the order of their turns. */
  readonly #ready = new Set<Http2Stream>();
  /** Streams that have data and no window. */
  readonly #stalled = new Set<Http2Stream>();
  #out: Uint8Array[] = [];
  #outBytes = 0;
  /** What the socket has been given and has not taken yet. */
  #leaving = 0;
  #flushQueued = false;
  /** Requests that have not left yet. */
  #requests = 0;
  #partial: Buffer | undefined;
  /** Of the DATA frame that has begun to arrive. */
  #dataLeft = 0;
  #dataStream: Http2Stream | undefined;
  #dataEnds = false;
  #prefaceLeft: number;
  #settingsSeen = false;
  #headerBlock: { readonly id: number; readonly endStream: boolean; pieces: Buffer[]; bytes: number } | undefined;
  #lastPeerId = 0;
  #nextId = 1;
  #sendWindow = DEFAULT_WINDOW;
  #receiveWindow = CONNECTION_WINDOW;
  #peerInitialWindow = DEFAULT_WINDOW;
  #peerMaxStreams = Number.POSITIVE_INFINITY;
  #goneAway = false;
  #closed = false;
  #idleFrames = 0;
  #idleSince = 0;
  #updatesExpected = 0;
  #pingAnswered = true;

  constructor(socket: Duplex, options: ConnectionOptions) {
    this.#greeted = Promise.withResolvers();
    this.ready = this.#greeted.promise;
    this.ready.catch(() => {});
    this.#socket = socket;
    this.client = options.client;
    this.#events = options.events;
    this.#maxStreams = options.maxStreams ?? 4096;
    this.#prefaceLeft = options.client ? 0 : PREFACE.length;
  }

  /** Says hello and begins to read. `head`: bytes that have already been read from the socket. */
  start(head?: Buffer): void {
    const settings: Array<readonly [number, number]> = [
      [Setting.initialWindowSize, STREAM_WINDOW],
      [Setting.maxHeaderListSize, MAX_HEADER_BLOCK],
    ];
    if (this.client) {
      this.write(PREFACE);
      settings.push([Setting.enablePush, 0]);
    } else settings.push([Setting.maxConcurrentStreams, this.#maxStreams]);
    this.write(settingsFrame(settings));
    this.write(windowUpdateFrame(0, CONNECTION_WINDOW - DEFAULT_WINDOW));
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on('error', (error: Error) => this.#end(error.message));
    this.#socket.on('close', () => this.#end('connection closed'));
    this.#socket.on('end', () => this.#end('connection closed by peer'));
    if (head !== undefined && head.length > 0) this.#receive(head);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** True while a client may open another stream. */
  get available(): boolean {
    return (
      !this.#goneAway && !this.#closed && this.#streams.size < this.#peerMaxStreams && this.#nextId < MAX_WINDOW - 2
    );
  }

  get congested(): boolean {
    return this.#outBytes + this.#leaving > HIGH_WATER;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Opens a stream; the caller sends headers at once. Clients only, while `available`. */
  open(events: StreamEvents): Http2Stream {
    const stream = new Http2Stream(this, this.#nextId, this.#peerInitialWindow);
    this.#nextId += 2;
    stream.events = events;
    this.#streams.set(stream.id, stream);
    return stream;
  }

  /** Asks the peer for a sign of life; false when the last one has not been answered. */
  ping(): boolean {
    if (!this.#pingAnswered) return false;
    this.#pingAnswered = false;
    this.write(frame(FrameType.ping, 0, 0, Buffer.alloc(8)));
    return true;
  }

  /** No new streams from the peer; those under way may finish. */
  goAway(reason: string): void {
    if (this.#closed || this.#goneAway) return;
    this.#goneAway = true;
    this.write(goAwayFrame(this.#lastPeerId, ErrorCode.none, reason));
    if (this.#streams.size === 0) this.#finish();
  }

  destroy(reason: string): void {
    this.#end(reason);
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

  #queueFlush(): void {
    if (this.#flushQueued) return;
    this.#flushQueued = true;
    // What the sockets that were ready have caused goes out in one write.
    atTurnEnd(this.#flushAtTurnEnd);
  }

  /** Takes up to `wanted` bytes out of the connection's send window. */
  takeWindow(wanted: number): number {
    const taken = Math.min(wanted, this.#sendWindow);
    this.#sendWindow -= taken;
    this.#expectUpdates();
    return taken;
  }

  /** Takes `wanted` bytes or nothing. */
  takeWholeWindow(wanted: number): boolean {
    if (wanted > this.#sendWindow) return false;
    this.#sendWindow -= wanted;
    this.#expectUpdates();
    return true;
  }

  #expectUpdates(): void {
    if (this.#updatesExpected < MAX_UPDATES) this.#updatesExpected += UPDATES_PER_FRAME;
  }

  /** The peer has caused a stream to be reset (CVE-2025-8671). Throws when it does so too often. */
  provoked(): void {
    this.#idle();
  }

  /** The stream has data: it is asked to send when its turn comes. */
  enqueue(stream: Http2Stream): void {
    this.#ready.add(stream);
    this.#queueFlush();
  }

  /** The stream has data and no window: it is asked to send when there is one. */
  stall(stream: Http2Stream): void {
    this.#stalled.add(stream);
  }

  /** The stream is finished on both sides or has been reset. */
  release(stream: Http2Stream): void {
    this.#ready.delete(stream);
    this.#stalled.delete(stream);
    if (this.#streams.delete(stream.id) && this.#goneAway && this.#streams.size === 0) this.#finish();
  }

  #finish(): void {
    this.#flushAll();
    this.#socket.end();
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
  #flushAll(): void {
    if (this.#closed || this.#outBytes === 0) return;
    this.#socket.write(this.#takeAll());
  }

  #takeAll(): Uint8Array {
    const [first] = this.#out;
    const bytes = this.#out.length === 1 && first !== undefined ? first : Buffer.concat(this.#out, this.#outBytes);
    this.#out = [];
    this.#outBytes = 0;
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
    return block.subarray(0, at);
  }

  /** Streams that had no window look again. */
  #resume(): void {
    for (const stream of this.#stalled) this.enqueue(stream);
    this.#stalled.clear();
  }

  #receive(chunk: Buffer): void {
    if (this.#closed) return;
    try {
      this.#parse(this.#partial === undefined ? chunk : Buffer.concat([this.#partial, chunk]));
    } catch (error) {
      if (error instanceof ConnectionError) this.#abort(error.code, error.message);
      else if (error instanceof HpackError) this.#abort(ErrorCode.compression, error.message);
      else this.#abort(ErrorCode.internal, error instanceof Error ? error.message : String(error));
    }
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
        // Handed on as it comes: waiting for the whole frame would copy most of what arrives.
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
      throw new ConnectionError(ErrorCode.protocol, 'settings come first');
    }
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    this.#checkOrder(type, id);
    switch (type) {
      case FrameType.data:
        this.#beginData(id, flags, payload.length);
        this.#dataPart(unpad(payload, 0), 0, true);
        return;
      case FrameType.headers:
        this.#headers(id, flags, payload);
        return;
      case FrameType.continuation:
        this.#continuation(flags, payload);
        return;
      case FrameType.resetStream:
        this.#reset(id, payload);
        return;
      case FrameType.settings:
        this.#settings(id, flags, payload);
        return;
      case FrameType.ping:
        this.#ping(id, flags, payload);
        return;
      case FrameType.goAway:
        this.#peerGoesAway(payload);
        return;
      case FrameType.windowUpdate:
        this.#windowUpdate(id, payload);
        return;
      case FrameType.pushPromise:
        throw new ConnectionError(ErrorCode.protocol, 'push was not enabled');
      default:
        // PRIORITY and whatever is not known are ignored.
        this.#idle();
    }
  }

  #beginData(id: number, flags: number, length: number): void {
    if (id === 0) throw new ConnectionError(ErrorCode.protocol, 'data without a stream');
    if (length === 0 && (flags & Flag.endStream) === 0) this.#idle();
    this.#dataLeft = length;
    this.#dataEnds = (flags & Flag.endStream) !== 0;
    this.#dataStream = this.#streams.get(id);
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) throw new ConnectionError(ErrorCode.flowControl, 'connection window is exceeded');
    if (this.#receiveWindow < CONNECTION_WINDOW / 2) {
      this.write(windowUpdateFrame(0, CONNECTION_WINDOW - this.#receiveWindow));
      this.#receiveWindow = CONNECTION_WINDOW;
    }
    const stream = this.#dataStream;
    if (stream === undefined) {
      this.#mustHaveBeen(id);
      return;
    }
    stream.receiveWindow -= length;
    if (stream.receiveWindow < 0) throw new ConnectionError(ErrorCode.flowControl, 'stream window is exceeded');
    if (!this.#dataEnds && stream.receiveWindow < STREAM_WINDOW / 2) {
      this.write(windowUpdateFrame(id, STREAM_WINDOW - stream.receiveWindow));
      stream.receiveWindow = STREAM_WINDOW;
    }
  }

  /**
   * Hands on what of the current DATA frame is in `bytes` from `at` on, `all` or as much as is there; returns where
   * that ends.
   */
  #dataPart(bytes: Buffer, at: number, all = false): number {
    const end = all ? bytes.length : Math.min(bytes.length, at + this.#dataLeft);
    this.#dataLeft = all ? 0 : this.#dataLeft - (end - at);
    const whole = this.#dataLeft === 0;
    if (end > at || whole) this.#dataStream?.receiveData(bytes.subarray(at, end), whole && this.#dataEnds);
    if (whole) this.#dataStream = undefined;
    return end;
  }

  #headers(id: number, flags: number, payload: Buffer): void {
    if (id === 0) throw new ConnectionError(ErrorCode.protocol, 'headers without a stream');
    const skip = (flags & Flag.priority) === 0 ? 0 : 5;
    let block = payload;
    if ((flags & Flag.padded) !== 0) block = unpad(payload, skip);
    else if (skip > 0) {
      if (payload.length < skip) throw new ConnectionError(ErrorCode.frameSize, 'headers are cut short');
      block = payload.subarray(skip);
    }
    const endStream = (flags & Flag.endStream) !== 0;
    if ((flags & Flag.endHeaders) !== 0) this.#fields(id, block, endStream);
    else this.#headerBlock = { id, endStream, pieces: [block], bytes: block.length };
  }

  #continuation(flags: number, payload: Buffer): void {
    const block = this.#headerBlock;
    if (block === undefined) throw new ConnectionError(ErrorCode.protocol, 'continuation of nothing');
    block.pieces.push(payload);
    block.bytes += payload.length;
    this.#idle();
    if (block.bytes > MAX_HEADER_BLOCK) throw new ConnectionError(ErrorCode.enhanceYourCalm, 'headers are too large');
    if ((flags & Flag.endHeaders) === 0) return;
    this.#headerBlock = undefined;
    this.#fields(block.id, Buffer.concat(block.pieces), block.endStream);
  }

  #fields(id: number, block: Buffer, endStream: boolean): void {
    // Decoded in any case: the table has to stay in step with the peer's.
    const fields = this.#decoder.decode(block);
    const known = this.#streams.get(id);
    if (known !== undefined) {
      if (endStream || this.client) known.receiveHeaders(fields, endStream);
      else known.refuse(ErrorCode.protocol);
      return;
    }
    if (this.client || id <= this.#lastPeerId) {
      this.#mustHaveBeen(id);
      this.#idle();
      return;
    }
    if (id % 2 === 0) throw new ConnectionError(ErrorCode.protocol, 'clients use odd stream numbers');
    this.#lastPeerId = id;
    const { opened } = this.#events;
    if (this.#goneAway || opened === undefined || this.#streams.size >= this.#maxStreams) {
      this.write(resetFrame(id, ErrorCode.refusedStream));
      this.#idle();
      return;
    }
    const stream = new Http2Stream(this, id, this.#peerInitialWindow);
    this.#streams.set(id, stream);
    stream.events = opened(stream, fields, endStream);
    if (endStream) stream.receiveData(EMPTY, true);
  }

  #reset(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw new ConnectionError(ErrorCode.frameSize, 'reset has a wrong size');
    this.#idle();
    const stream = this.#streams.get(id);
    if (stream === undefined) this.#mustHaveBeen(id);
    else stream.receiveReset(payload.readUInt32BE());
  }

  #settings(id: number, flags: number, payload: Buffer): void {
    if (id !== 0) throw new ConnectionError(ErrorCode.protocol, 'settings of a stream');
    this.#settingsSeen = true;
    this.#greeted.resolve();
    if ((flags & Flag.ack) !== 0) return;
    if (payload.length % 6 !== 0) throw new ConnectionError(ErrorCode.frameSize, 'settings have a wrong size');
    this.#idle();
    for (let at = 0; at < payload.length; at += 6) {
      const setting = payload.readUInt16BE(at);
      const value = payload.readUInt32BE(at + 2);
      if (setting === Setting.maxConcurrentStreams) this.#peerMaxStreams = value;
      else if (setting === Setting.initialWindowSize) {
        if (value > MAX_WINDOW) throw new ConnectionError(ErrorCode.flowControl, 'initial window is too large');
        for (const stream of this.#streams.values()) stream.sendWindow += value - this.#peerInitialWindow;
        this.#peerInitialWindow = value;
      }
    }
    this.write(frame(FrameType.settings, Flag.ack, 0, EMPTY));
    this.#resume();
  }

  #ping(id: number, flags: number, payload: Buffer): void {
    if (id !== 0) throw new ConnectionError(ErrorCode.protocol, 'ping of a stream');
    if (payload.length !== 8) throw new ConnectionError(ErrorCode.frameSize, 'ping has a wrong size');
    if ((flags & Flag.ack) !== 0) {
      this.#pingAnswered = true;
      return;
    }
    this.#idle();
    this.write(frame(FrameType.ping, Flag.ack, 0, payload));
  }

  #peerGoesAway(payload: Buffer): void {
    if (payload.length < 8) throw new ConnectionError(ErrorCode.frameSize, 'goodbye has a wrong size');
    const lastId = payload.readUInt32BE() & 0x7fff_ffff;
    this.#goneAway = true;
    this.#events.goingAway();
    if (this.client) {
      for (const stream of [...this.#streams.values()]) {
        if (stream.id > lastId) stream.receiveReset(ErrorCode.refusedStream);
      }
    }
    if (this.#streams.size === 0) this.#finish();
  }

  #windowUpdate(id: number, payload: Buffer): void {
    if (payload.length !== 4) throw new ConnectionError(ErrorCode.frameSize, 'window update has a wrong size');
    if (this.#updatesExpected > 0) this.#updatesExpected -= 1;
    else this.#idle();
    const increment = payload.readUInt32BE() & 0x7fff_ffff;
    if (increment === 0) throw new ConnectionError(ErrorCode.protocol, 'window update of zero');
    if (id === 0) {
      this.#sendWindow += increment;
      if (this.#sendWindow > MAX_WINDOW) throw new ConnectionError(ErrorCode.flowControl, 'window is too large');
      this.#resume();
      return;
    }
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#mustHaveBeen(id);
      return;
    }
    stream.sendWindow += increment;
    if (stream.sendWindow > MAX_WINDOW) throw new ConnectionError(ErrorCode.flowControl, 'window is too large');
    if (this.#stalled.delete(stream)) this.enqueue(stream);
  }

  /** A frame for a stream that we do not have is fine when we had it. */
  #mustHaveBeen(id: number): void {
    const used = id % 2 === 1 ? (this.client ? id < this.#nextId : id <= this.#lastPeerId) : false;
    if (!used) throw new ConnectionError(ErrorCode.protocol, `stream ${id} was never opened`);
  }

  #idle(): void {
    const now = performance.now();
    if (now - this.#idleSince > IDLE_FRAME_WINDOW_MS) {
      this.#idleSince = now;
      this.#idleFrames = 0;
    }
    this.#idleFrames += 1;
    if (this.#idleFrames > MAX_IDLE_FRAMES && !this.client) {
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames without work');
    }
  }

  #abort(code: number, reason: string): void {
    if (this.#closed) return;
    this.write(goAwayFrame(this.#lastPeerId, code, reason));
    this.#flushAll();
    this.#end(reason, true);
  }

  #end(reason: string, saidGoodbye = false): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#goneAway = true;
    if (saidGoodbye) {
      // The goodbye gets out unless the peer does not read.
      this.#socket.end();
      setTimeout(() => this.#socket.destroy(), GOODBYE_MS).unref();
    } else this.#socket.destroy();
    this.#out = [];
    this.#outBytes = 0;
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    this.#ready.clear();
    this.#stalled.clear();
    for (const stream of streams) stream.lost(reason);
    this.#greeted.reject(new Error(reason));
    this.#events.closed(reason);
  }
}

const EMPTY = Buffer.alloc(0);

function unpad(payload: Buffer, skip: number): Buffer {
  const padding = payload[0];
  if (padding === undefined || 1 + skip + padding > payload.length) {
    throw new ConnectionError(ErrorCode.protocol, 'padding is longer than the frame');
  }
  return payload.subarray(1 + skip, payload.length - padding);
}
