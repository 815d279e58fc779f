import type { Socket } from 'node:net';
import { resetSocket } from './reset.ts';

const KEEP_ALIVE_MS = 15_000;
/** A peer that does not close after the other has. */
const HALF_CLOSED_MS = 30_000;

/** A paused socket still reads until its buffer is full; these bytes would be lost to another process. */
interface Readable {
  readonly _handle: { readStop(): void } | null;
}

export interface ConnectionEvents {
  /** The client sent something after an answer or at the beginning. */
  readonly waiting: () => void;
  /** The server ended the stream or broke it. */
  readonly failed: () => void;
  /** Both sockets are closed. */
  readonly ended: () => void;
}

/**
 * Two sockets joined in both directions, with what a balancer has to know of the stream: which side sent last, and
 * when.
 */
export class BalancedConnection {
  readonly target: string;
  /** Of this host, towards the server. */
  readonly sourceAddress: string;
  readonly #client: Socket;
  readonly #backend: Socket;
  readonly #ended: () => void;
  #closed = false;
  #lingering: NodeJS.Timeout | undefined;
  /** The client sent last: an answer may be due. */
  awaiting = false;
  /** Since when the client waits, or the stream is quiet. Monotonic milliseconds. */
  sinceMs = performance.now();
  /** Bytes of the client after the first answer: a TLS handshake got that far. */
  established = false;
  /** The silence of the present wait was reported. */
  reported = false;
  /** When a drain began. */
  drainingMs: number | undefined;

  constructor(
    target: string,
    sockets: { readonly client: Socket; readonly backend: Socket },
    events: ConnectionEvents,
  ) {
    this.target = target;
    this.#client = sockets.client;
    this.#backend = sockets.backend;
    this.sourceAddress = sockets.backend.localAddress ?? '';
    this.#ended = events.ended;
    let answered = false;
    this.#join(this.#client, this.#backend, () => {
      if (answered) this.established = true;
      if (this.awaiting) return;
      this.awaiting = true;
      this.sinceMs = performance.now();
      events.waiting();
    });
    this.#join(this.#backend, this.#client, () => {
      answered = true;
      this.awaiting = false;
      this.reported = false;
      this.sinceMs = performance.now();
    });
    this.#backend.on('error', events.failed);
    this.#backend.on('end', events.failed);
  }

  /** A timer has something to look for. */
  get watched(): boolean {
    return this.drainingMs !== undefined || (this.awaiting && !this.reported);
  }

  /** Closes both directions after what was received is sent. */
  end(): void {
    this.#client.end();
    this.#backend.end();
    this.#linger();
  }

  /**
   * The sockets, for another process: neither has bytes in this one, and nothing more is read here. Undefined: bytes
   * are under way, or one side has ended.
   */
  detach(): { readonly client: Socket; readonly backend: Socket } | undefined {
    const both = [this.#client, this.#backend];
    const isWhole = (socket: Socket): boolean =>
      !socket.destroyed && !socket.readableEnded && !socket.writableEnded && socket.readableLength === 0;
    if (this.#closed || !both.every((socket) => isWhole(socket) && socket.writableLength === 0)) return undefined;
    const handles = both.map((socket) => (socket as Partial<Readable>)._handle);
    if (handles.some((handle) => handle === undefined || handle === null)) return undefined;
    clearTimeout(this.#lingering);
    for (const [index, socket] of both.entries()) {
      socket.removeAllListeners();
      socket.on('error', () => {});
      handles[index]?.readStop();
    }
    return { client: this.#client, backend: this.#backend };
  }

  reset(): void {
    resetSocket(this.#client);
    resetSocket(this.#backend);
  }

  #join(from: Socket, to: Socket, received: () => void): void {
    from.setNoDelay(true);
    from.setKeepAlive(true, KEEP_ALIVE_MS);
    from.on('data', (bytes) => {
      received();
      // An end() of this side discards what arrives later: the peer must see it as not sent.
      if (to.writableEnded || to.write(bytes)) return;
      from.pause();
    });
    to.on('drain', () => from.resume());
    from.on('end', () => {
      to.end();
      this.#linger();
    });
    from.on('error', () => resetSocket(to));
    from.on('close', () => {
      to.destroySoon();
      this.#linger();
      if (this.#closed || !to.destroyed) return;
      this.#closed = true;
      clearTimeout(this.#lingering);
      this.awaiting = false;
      this.drainingMs = undefined;
      this.#ended();
    });
  }

  #linger(): void {
    if (!this.#closed) this.#lingering ??= setTimeout(() => this.reset(), HALF_CLOSED_MS).unref();
  }
}
