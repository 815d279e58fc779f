/** Pieces smaller than this are copied into a shared buffer. */
const SMALL_PIECE = 4096;
const TAIL_BYTES = 16 << 10;

/**
 * Accumulates bytes that arrive in pieces and returns them as one buffer. A peer may send single bytes, or pieces that
 * are small parts of large read buffers; memory use stays within a small multiple of the bytes received.
 */
export class BytePieces {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Buffer of the last piece, if that piece was combined from small pieces. */
  #tail: Buffer | undefined;
  #tailUsed = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get first(): Buffer | undefined {
    return this.#pieces[0];
  }

  /** Appends `piece`. Small pieces are copied; the caller must not change a large piece afterwards. */
  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#bytes += piece.length;
    if (piece.length >= SMALL_PIECE) {
      this.#pieces.push(piece);
      this.#tail = undefined;
      return;
    }
    if (this.#tail !== undefined && piece.length <= TAIL_BYTES - this.#tailUsed) this.#pieces.pop();
    else {
      this.#tail = Buffer.allocUnsafeSlow(TAIL_BYTES);
      this.#tailUsed = 0;
    }
    this.#tail.set(piece, this.#tailUsed);
    this.#tailUsed += piece.length;
    this.#pieces.push(this.#tail.subarray(0, this.#tailUsed));
  }

  /** Returns all bytes as one buffer and empties this collection. */
  take(): Buffer {
    const [first] = this.#pieces;
    const whole = this.#pieces.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces, this.#bytes);
    this.clear();
    return whole;
  }

  clear(): void {
    this.#pieces = [];
    this.#bytes = 0;
    this.#tail = undefined;
  }
}
