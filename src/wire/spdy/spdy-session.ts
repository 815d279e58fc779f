/**
 * The server side of one SPDY/3.1 connection (SPDY protocol draft 3.1) as Kubernetes clients use it: only the client
 * opens streams.
 *
 * Flow control: the server sends WINDOW_UPDATE for consumed data. Kubernetes' own client library never sends
 * WINDOW_UPDATE, so windows limit sending only after the peer has shown support by SETTINGS or WINDOW_UPDATE; before
 * that, TCP's back-pressure limits sending. Receiving is limited by the queue of each stream: while any queue is full,
 * the socket is not read.
 */
import type { Duplex } from 'node:stream';
import { CodedError, ignore } from '../../base/errors.ts';
import { type ByteQueue, createByteQueue } from './byte-queue.ts';
import { CHANNEL_HIGH_WATER_BYTES, type Channel } from './channel.ts';
import { createHeaderInflate } from './inflate.ts';
import { createSocketWriter, type SocketWriter } from './socket-writer.ts';
import {
  createStoredDeflate,
  decodeFrameHeader,
  decodeHeaderBlock,
  encodeControlFrame,
  encodeDataHeader,
  encodeHeaderBlock,
  encodeWords,
  FLAG_FIN,
  FRAME_HEADER_BYTES,
  type FrameHeader,
  FrameType,
  MAX_CONTROL_FRAME_BYTES,
  RstStatus,
  SETTING_INITIAL_WINDOW,
  SPDY_VERSION,
  type SpdyHeaders,
} from './spdy-frames.ts';

const DEFAULT_WINDOW_BYTES = 64 * 1024;
const MAX_STREAMS = 1024;
const MAX_DATA_FRAME_BYTES = 32 * 1024;
const MAX_WINDOW_BYTES = 0x7fffffff;

export interface SpdyStream extends Channel {
  readonly id: number;
  readonly headers: SpdyHeaders;
  /** Ends both directions at once (RST_STREAM CANCEL). */
  reset(): void;
}

export interface SpdySession {
  /** Reads the connection until it ends; then resolves, never rejects. */
  run(): Promise<void>;
  /** Sends GOAWAY and closes after the queued data has been sent. */
  close(): void;
  destroy(): void;
}

interface StreamState {
  readonly id: number;
  readonly queue: ByteQueue;
  sendWindow: number;
  unacknowledged: number;
  localEnded: boolean;
  remoteEnded: boolean;
  windowWaiters: (() => void)[];
}

/**
 * `onStream` is called for every stream after its SYN_REPLY has been queued. `head` are bytes that arrived with the
 * upgrade request.
 */
export function createSpdySession(
  socket: Duplex,
  head: Uint8Array,
  onStream: (stream: SpdyStream) => void,
): SpdySession {
  return new ServerSpdySession(socket, head, onStream);
}

class ServerSpdySession implements SpdySession {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;
  readonly #onStream: (stream: SpdyStream) => void;
  readonly #writer: SocketWriter;
  readonly #inflater = createHeaderInflate();
  readonly #deflate = createStoredDeflate();
  readonly #streams = new Map<number, StreamState>();
  #lastStreamId = 0;
  #closed = false;
  #replied: Promise<void> | undefined;
  #peerKeepsWindows = false;
  #initialSendWindow = DEFAULT_WINDOW_BYTES;
  #sessionSendWindow = DEFAULT_WINDOW_BYTES;
  #sessionUnacknowledged = 0;

  constructor(socket: Duplex, head: Uint8Array, onStream: (stream: SpdyStream) => void) {
    this.#socket = socket;
    this.#head = head;
    this.#onStream = onStream;
    this.#writer = createSocketWriter(socket);
    // If no consumer reads the queue, the reader must not wait in `push` forever after the connection has closed.
    socket.on('close', this.#shut);
    socket.on('error', () => {});
  }

  async run(): Promise<void> {
    try {
      await this.#readFrames();
    } catch (error) {
      if (error instanceof CodedError && error.code === 'protocol' && !this.#closed) {
        this.#sendControl(encodeWords(FrameType.goAway, this.#lastStreamId, 1));
        this.#socket.end();
      }
    } finally {
      this.#shut();
      if (!this.#socket.destroyed) this.#socket.end(() => this.#socket.destroy());
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#sendControl(encodeWords(FrameType.goAway, this.#lastStreamId, 0));
    this.#socket.end(() => this.#socket.destroy());
  }

  destroy(): void {
    this.#socket.destroy();
    this.#shut();
  }

  /** A failed write is ignored: readers of data get the error of the lost connection. */
  #sendControl(frame: Buffer): void {
    this.#writer.write(frame).catch(ignore('readers of data get the error of the lost connection'));
  }

  #wakeSenders(state?: StreamState): void {
    for (const each of state === undefined ? this.#streams.values() : [state]) {
      const waiters = each.windowWaiters;
      each.windowWaiters = [];
      for (const resume of waiters) resume();
    }
  }

  #forget(state: StreamState): void {
    if (state.localEnded && state.remoteEnded) this.#streams.delete(state.id);
  }

  #acknowledge(state: StreamState, bytes: number): void {
    if (this.#closed) return;
    this.#sessionUnacknowledged += bytes;
    if (this.#sessionUnacknowledged >= DEFAULT_WINDOW_BYTES / 2) {
      this.#sendControl(encodeWords(FrameType.windowUpdate, 0, this.#sessionUnacknowledged));
      this.#sessionUnacknowledged = 0;
    }
    state.unacknowledged += bytes;
    if (!state.remoteEnded && state.unacknowledged >= DEFAULT_WINDOW_BYTES / 2) {
      this.#sendControl(encodeWords(FrameType.windowUpdate, state.id, state.unacknowledged));
      state.unacknowledged = 0;
    }
  }

  #lost(): CodedError {
    return new CodedError('closed', 'the client closed the connection');
  }

  async #sendData(state: StreamState, chunk: Uint8Array): Promise<void> {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#closed || state.localEnded) throw this.#lost();
      const room = this.#peerKeepsWindows ? Math.min(state.sendWindow, this.#sessionSendWindow) : MAX_DATA_FRAME_BYTES;
      if (room <= 0) {
        await new Promise<void>((resolve) => {
          state.windowWaiters.push(resolve);
        });
        continue;
      }
      const piece = chunk.subarray(offset, offset + Math.min(room, MAX_DATA_FRAME_BYTES));
      offset += piece.length;
      state.sendWindow -= piece.length;
      this.#sessionSendWindow -= piece.length;
      await this.#writer.write(encodeDataHeader(state.id, 0, piece.length), piece);
    }
  }

  #endLocal(state: StreamState): void {
    if (state.localEnded || this.#closed) return;
    state.localEnded = true;
    this.#sendControl(encodeDataHeader(state.id, FLAG_FIN, 0));
    this.#forget(state);
  }

  #endRemote(state: StreamState): void {
    state.remoteEnded = true;
    state.queue.end();
    this.#forget(state);
  }

  #abort(state: StreamState): void {
    state.localEnded = true;
    state.remoteEnded = true;
    state.queue.fail(new CodedError('closed', 'the client reset the stream'));
    this.#wakeSenders(state);
    this.#streams.delete(state.id);
  }

  #resetStream(id: number, status: number): void {
    this.#reply(encodeWords(FrameType.rstStream, id, status));
  }

  /** Sends a response. No more frames are read until the client has taken it. */
  #reply(frame: Buffer): void {
    this.#replied = this.#writer.write(frame).catch(ignore('readers of data get the error of the lost connection'));
  }

  #openStream(payload: Buffer, headers: SpdyHeaders, flags: number): void {
    const id = payload.readUInt32BE(0) & 0x7fffffff;
    if (id % 2 === 0 || id <= this.#lastStreamId)
      throw new CodedError('protocol', `SPDY stream id ${id} is out of order`);
    this.#lastStreamId = id;
    if (this.#streams.size >= MAX_STREAMS) {
      this.#resetStream(id, RstStatus.refusedStream);
      return;
    }
    const state: StreamState = {
      id,
      queue: createByteQueue(CHANNEL_HIGH_WATER_BYTES, (bytes) => this.#acknowledge(state, bytes)),
      sendWindow: this.#initialSendWindow,
      unacknowledged: 0,
      localEnded: false,
      remoteEnded: false,
      windowWaiters: [],
    };
    this.#streams.set(id, state);
    const replyId = Buffer.alloc(4);
    replyId.writeUInt32BE(id);
    this.#reply(
      encodeControlFrame(FrameType.synReply, 0, Buffer.concat([replyId, this.#deflate(encodeHeaderBlock(new Map()))])),
    );
    if ((flags & FLAG_FIN) !== 0) this.#endRemote(state);
    this.#onStream({
      id,
      headers,
      readable: state.queue,
      write: (chunk) => this.#sendData(state, chunk),
      end: () => this.#endLocal(state),
      reset: () => {
        if (!this.#streams.has(id)) return;
        this.#resetStream(id, RstStatus.cancel);
        this.#abort(state);
      },
    });
  }

  #applySettings(payload: Buffer): void {
    const count = payload.length >= 4 ? payload.readUInt32BE(0) : 0;
    if (count * 8 + 4 > payload.length) throw new CodedError('protocol', 'SPDY SETTINGS frame is cut short');
    let window = this.#initialSendWindow;
    for (let index = 0; index < count; index++) {
      const id = payload.readUInt32BE(4 + index * 8) & 0xffffff;
      const value = payload.readUInt32BE(8 + index * 8);
      if (id !== SETTING_INITIAL_WINDOW || value > MAX_WINDOW_BYTES) continue;
      this.#peerKeepsWindows = true;
      window = value;
    }
    // The window is applied once per frame, because a frame may repeat the setting thousands of times while hundreds of
    // streams are open.
    if (window === this.#initialSendWindow) return;
    for (const state of this.#streams.values()) state.sendWindow += window - this.#initialSendWindow;
    this.#initialSendWindow = window;
    this.#wakeSenders();
  }

  #growWindow(payload: Buffer): void {
    const id = payload.readUInt32BE(0) & 0x7fffffff;
    const delta = payload.readUInt32BE(4) & 0x7fffffff;
    this.#peerKeepsWindows = true;
    if (id === 0) {
      this.#sessionSendWindow += delta;
      if (this.#sessionSendWindow > MAX_WINDOW_BYTES) throw new CodedError('protocol', 'SPDY session window overflows');
      this.#wakeSenders();
      return;
    }
    const state = this.#streams.get(id);
    if (state === undefined) return;
    state.sendWindow += delta;
    if (state.sendWindow > MAX_WINDOW_BYTES) {
      this.#resetStream(id, RstStatus.flowControlError);
      this.#abort(state);
      return;
    }
    this.#wakeSenders(state);
  }

  async #onControl(header: FrameHeader, payload: Buffer): Promise<boolean> {
    if (header.version !== SPDY_VERSION) throw new CodedError('protocol', `SPDY version ${header.version} is not 3`);
    const need = (bytes: number): void => {
      if (payload.length < bytes) throw new CodedError('protocol', 'SPDY control frame is cut short');
    };
    switch (header.type) {
      case FrameType.synStream: {
        need(10);
        const block = await this.#inflater.inflate(payload.subarray(10));
        this.#openStream(payload, decodeHeaderBlock(block), header.flags);
        return true;
      }
      case FrameType.synReply:
      case FrameType.headers: {
        need(4);
        // The headers are not used, but the shared compression state must process every block.
        await this.#inflater.inflate(payload.subarray(4));
        const state = this.#streams.get(payload.readUInt32BE(0) & 0x7fffffff);
        if (state !== undefined && (header.flags & FLAG_FIN) !== 0) this.#endRemote(state);
        return true;
      }
      case FrameType.rstStream: {
        need(8);
        const state = this.#streams.get(payload.readUInt32BE(0) & 0x7fffffff);
        if (state !== undefined) this.#abort(state);
        return true;
      }
      case FrameType.settings:
        this.#applySettings(payload);
        return true;
      case FrameType.ping:
        need(4);
        // Odd ids are pings of the client. Even ids would belong to pings of the server, which sends no pings.
        if (payload.readUInt32BE(0) % 2 === 1)
          await this.#writer.write(encodeWords(FrameType.ping, payload.readUInt32BE(0)));
        return true;
      case FrameType.goAway:
        // The client opens no more streams; the existing ones continue until the connection ends.
        return true;
      case FrameType.windowUpdate:
        need(8);
        this.#growWindow(payload);
        return true;
      default:
        return true;
    }
  }

  async #readFrames(): Promise<void> {
    let buffered: Buffer = Buffer.from(this.#head);
    let data: { state: StreamState | undefined; remaining: number; fin: boolean } | undefined;
    const consume = async (): Promise<void> => {
      for (;;) {
        await this.#replied;
        if (data !== undefined) {
          const piece = buffered.subarray(0, data.remaining);
          if (piece.length > 0) {
            buffered = buffered.subarray(piece.length);
            data.remaining -= piece.length;
            if (data.state === undefined) this.#sessionUnacknowledged += piece.length;
            else await data.state.queue.push(piece);
          }
          if (data.remaining > 0) return;
          if (data.fin && data.state !== undefined) this.#endRemote(data.state);
          data = undefined;
        }
        if (buffered.length < FRAME_HEADER_BYTES) return;
        const header = decodeFrameHeader(buffered);
        if (!header.control) {
          buffered = buffered.subarray(FRAME_HEADER_BYTES);
          const state = this.#streams.get(header.streamId);
          const open = state !== undefined && !state.remoteEnded;
          if (!open && header.streamId > this.#lastStreamId)
            this.#resetStream(header.streamId, RstStatus.invalidStream);
          data = { state: open ? state : undefined, remaining: header.length, fin: (header.flags & FLAG_FIN) !== 0 };
          continue;
        }
        if (header.length > MAX_CONTROL_FRAME_BYTES)
          throw new CodedError('protocol', 'SPDY control frame is too large');
        if (buffered.length < FRAME_HEADER_BYTES + header.length) return;
        const payload = buffered.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + header.length);
        buffered = buffered.subarray(FRAME_HEADER_BYTES + header.length);
        await this.#onControl(header, payload);
      }
    };
    await consume();
    // Leaving the loop must not destroy the socket, because a GOAWAY may still have to be sent.
    for await (const chunk of this.#socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
      await consume();
    }
  }

  readonly #shut = (): void => {
    if (this.#closed) return;
    this.#closed = true;
    this.#inflater.close();
    for (const state of this.#streams.values()) {
      state.localEnded = true;
      state.queue.fail(this.#lost());
    }
    this.#wakeSenders();
    this.#streams.clear();
  };
}
