import type { ResponseShape } from './core/index.ts';

export interface CachedResponse {
  readonly message: Uint8Array;
  readonly shape: ResponseShape;
  readonly storedMs: number;
  readonly expiresMs: number;
}

const MAX_ENTRIES = 10_000;
const MAX_BYTES = 8 * 1024 * 1024;
/** Estimated memory of an entry besides its message. */
const OVERHEAD_BYTES = 400;

/** LRU cache for responses of other servers. Its times are monotonic milliseconds. */
export class ResponseCache {
  readonly #entries = new Map<string, CachedResponse>();
  #bytes = 0;

  get(key: string, nowMs: number): CachedResponse | undefined {
    const found = this.#entries.get(key);
    if (found === undefined) return undefined;
    this.#entries.delete(key);
    if (found.expiresMs <= nowMs) {
      this.#bytes -= found.message.length + OVERHEAD_BYTES;
      return undefined;
    }
    this.#entries.set(key, found);
    return found;
  }

  set(key: string, response: CachedResponse): void {
    this.#drop(key);
    this.#entries.set(key, response);
    this.#bytes += response.message.length + OVERHEAD_BYTES;
    while (this.#entries.size > MAX_ENTRIES || this.#bytes > MAX_BYTES) {
      const oldest = this.#entries.keys().next().value;
      if (oldest === undefined) return;
      this.#drop(oldest);
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#bytes = 0;
  }

  #drop(key: string): void {
    const found = this.#entries.get(key);
    if (found === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= found.message.length + OVERHEAD_BYTES;
  }
}
