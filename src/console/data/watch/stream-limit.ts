/** Number of streams that may be open at once. Streams over the limit are replaced by periodic requests. */
export class StreamLimit {
  #free: number;

  /** @param limit `Infinity` if the connection to the server multiplexes requests (HTTP/2). */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Whether another stream may be opened. Requires a call of `release` when the stream has ended. */
  take(): boolean {
    if (this.#free <= 0) return false;
    this.#free--;
    return true;
  }

  release(): void {
    this.#free++;
  }
}
