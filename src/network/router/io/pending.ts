/**
 * Limits connections whose client has not yet sent a complete request or handshake, per source and in total. An idle
 * client keeps its slot until its deadline, or until the slots are exhausted.
 */
import type { Socket } from 'node:net';
import { peerNetwork } from '../../../base/addresses/addresses.ts';

const MAX_PENDING = 4_096;
const MAX_PENDING_OF_SOURCE = 256;
/** Time limit from the start of a connection to the last byte of the request header. */
export const HEADER_TIMEOUT_MS = 10_000;
const TICK_MS = 1_000;

export class PendingConnections {
  /** Pending connections, oldest first. */
  readonly #pending = new Map<Socket, { readonly source: string; readonly sinceMs: number }>();
  readonly #bySource = new Map<string, number>();
  readonly #nowMs: () => number;
  #timer: NodeJS.Timeout | undefined;
  refused = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Adds a connection. Returns false, and destroys the socket, if the source has too many connections. */
  add(socket: Socket, address: string): boolean {
    const source = peerNetwork(address);
    const count = this.#bySource.get(source) ?? 0;
    if (count >= MAX_PENDING_OF_SOURCE) {
      this.refused++;
      socket.destroy();
      return false;
    }
    if (this.#pending.size >= MAX_PENDING) {
      const [oldest] = this.#pending.keys();
      this.refused++;
      if (oldest !== undefined) this.#drop(oldest);
    }
    this.#pending.set(socket, { source, sinceMs: this.#nowMs() });
    this.#bySource.set(source, count + 1);
    socket.once('close', () => this.done(socket));
    this.#timer ??= setInterval(() => this.#expire(), TICK_MS).unref();
    return true;
  }

  /** Must be called when the client has sent a complete request or handshake, or has disconnected. */
  done(socket: Socket): void {
    const known = this.#pending.get(socket);
    if (known === undefined) return;
    this.#pending.delete(socket);
    const count = (this.#bySource.get(known.source) ?? 1) - 1;
    if (count <= 0) this.#bySource.delete(known.source);
    else this.#bySource.set(known.source, count);
    if (this.#pending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #expire(): void {
    const nowMs = this.#nowMs();
    for (const [socket, { sinceMs }] of this.#pending) {
      if (nowMs - sinceMs < HEADER_TIMEOUT_MS) return;
      this.#drop(socket);
    }
  }

  #drop(socket: Socket): void {
    this.done(socket);
    socket.destroy();
  }
}
