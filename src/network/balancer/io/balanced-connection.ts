import type { Socket } from 'node:net';
import { resetSocket } from '../../../wire/connections/reset.ts';

const KEEP_ALIVE_MS = 15_000;
/** Time limit for the second peer to close the connection after the first peer has closed it. */
const HALF_CLOSED_MS = 30_000;

/**
 * Internal handle of a Node socket, used to stop reading at once. A paused socket still reads until its buffer is full,
 * and those bytes would be lost when the socket is transferred to another process.
 */
interface Readable {
  readonly _handle: { readStop(): void } | null;
}

export interface ConnectionEvents {
  /** Called when the client sends the first data of the connection, or the first data after a response. */
  readonly waiting: () => void;
  /** Called when the server ends or breaks the stream. */
  readonly failed: () => void;
  /** Called when both sockets are closed. */
  readonly ended: () => void;
}

/** Two sockets joined in both directions, with the state that a balancer needs: which side sent last, and when. */
export class BalancedConnection {
  readonly target: string;
  /** Local address of the connection to the server. */
  readonly sourceAddress: string;
  readonly #client: Socket;
  readonly #backend: Socket;
  readonly #ended: () => void;
  #closed = false;
  #lingering: NodeJS.Timeout | undefined;
  /** True while the client has sent data after the last response, so that the server may owe a response. */
  awaiting = false;
  /** Start of the client's wait or of the silence, in monotonic milliseconds. */
  sinceMs = performance.now();
  /**
   * True once the client has sent data after the server's first response, so the TLS handshake has progressed that far.
   */
  established = false;
  /** True once the server's silence during the current wait has triggered a probe. */
  reported = false;
  /** Start of the drain, in monotonic milliseconds. */
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

  /** Whether a timer must check this connection. */
  get watched(): boolean {
    return this.drainingMs !== undefined || (this.awaiting && !this.reported);
  }

  /** Closes both directions after the received data has been sent. */
  end(): void {
    this.#client.end();
    this.#backend.end();
    this.#linger();
  }

  /**
   * Stops reading and returns the sockets for another process; neither socket has unsent data in this process. Returns
   * undefined if data is in transit or one side has ended.
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
      // After end(), data that a peer still sends is discarded. The peer gets no response, so it does not count the
      // data as delivered.
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
