/** Pieces that are smaller are copied together. */
const SMALL_PIECE = 4096;
const TAIL_BYTES = 16 << 10;

/**
 * Bytes that arrive in pieces and are wanted in one. A peer may cut them into single bytes, or read buffers of which
 * only a few belong to it: what is kept here is at most a few times what it sent.
 */
export class BytePieces {
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Memory of the last piece, when that was put together of small ones. */
  #tail: Buffer | undefined;
  #tailUsed = 0;

  get bytes(): number {
    return this.#bytes;
  }

  get first(): Buffer | undefined {
    return this.#pieces[0];
  }

  /** `piece` is not changed any more unless it is small. */
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

  /** All of them in one, and none left. */
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
