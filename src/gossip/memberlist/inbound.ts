/**
 * Limits for streams that peers have opened. Only a complete message shows whether a peer has the ring's key, so the
 * number of streams and their total size are limited.
 */
import type { Socket } from 'node:net';

export interface InboundLimits {
  readonly streams: number;
  /** Maximum number of bytes in the incomplete messages of all streams together. */
  readonly bytes: number;
}

export class InboundStreams {
  readonly #limits: InboundLimits;
  readonly #evicted: (socket: Socket) => void;
  /** Streams, oldest first. */
  readonly #streams = new Map<Socket, { readonly address: string; bytes: number }>();
  #bytes = 0;

  /** `evicted`: called with the socket of an evicted stream. It must destroy the socket. */
  constructor(limits: InboundLimits, evicted: (socket: Socket) => void) {
    this.#limits = limits;
    this.#evicted = evicted;
  }

  /**
   * Adds a stream. If there are too many streams, the oldest stream of the address with the most streams is evicted,
   * but never the new stream.
   */
  add(socket: Socket): void {
    if (this.#streams.size >= this.#limits.streams) this.#evict(() => 1);
    this.#streams.set(socket, { address: socket.remoteAddress ?? '', bytes: 0 });
  }

  /**
   * Counts received bytes. If there are too many, the oldest stream of the address that has sent the most bytes is
   * evicted.
   */
  received(socket: Socket, bytes: number): void {
    const stream = this.#streams.get(socket);
    if (stream === undefined) return;
    stream.bytes += bytes;
    this.#bytes += bytes;
    if (this.#bytes > this.#limits.bytes) this.#evict((each) => each.bytes);
  }

  remove(socket: Socket): void {
    this.#bytes -= this.#streams.get(socket)?.bytes ?? 0;
    this.#streams.delete(socket);
  }

  #evict(weigh: (stream: { readonly bytes: number }) => number): void {
    const weights = new Map<string, number>();
    let heaviest = '';
    for (const stream of this.#streams.values()) {
      const weight = (weights.get(stream.address) ?? 0) + weigh(stream);
      weights.set(stream.address, weight);
      if (weight >= (weights.get(heaviest) ?? 0)) heaviest = stream.address;
    }
    for (const [socket, stream] of this.#streams) {
      if (stream.address !== heaviest || weigh(stream) === 0) continue;
      this.remove(socket);
      this.#evicted(socket);
      return;
    }
  }
}
