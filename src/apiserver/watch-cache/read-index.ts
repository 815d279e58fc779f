/**
 * Reads the store's current revision once for all waiting readers. A read in flight may be older than the caller's own
 * last write, so later callers join the next read, as in raft's ReadIndex.
 */
export class ReadIndex {
  readonly #readIndex: () => Promise<number>;
  #running: Promise<number> | undefined;
  #next: Promise<number> | undefined;

  constructor(readIndex: () => Promise<number>) {
    this.#readIndex = readIndex;
  }

  current(): Promise<number> {
    if (this.#running === undefined) {
      this.#running = this.#start();
      return this.#running;
    }
    this.#next ??= this.#running.then(
      () => this.#advance(),
      () => this.#advance(),
    );
    return this.#next;
  }

  #advance(): Promise<number> {
    this.#next = undefined;
    this.#running = this.#start();
    return this.#running;
  }

  #start(): Promise<number> {
    const requested = this.#readIndex();
    const settle = (): void => {
      if (this.#running === requested && this.#next === undefined) this.#running = undefined;
    };
    requested.then(settle, settle);
    return requested;
  }
}
