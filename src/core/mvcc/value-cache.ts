import { PoolId, type Version } from './version.ts';

export interface ValueCacheLimits {
  /** Bytes of values that are current. */
  readonly currentBytes: number;
  /** Bytes of values that have been overwritten or deleted: what watches that resume ask for. */
  readonly pastBytes: number;
}

/**
 * Decides which encoded key-values stay in memory: first in, first out, current ones apart from past ones so that a key
 * that is overwritten all the time cannot push out the others. A value leaves only when it can be read back from the
 * log, that is when its revision is at most `stored`.
 */
export class ValueCache {
  readonly #current: Pool;
  readonly #past: Pool;
  stored = 0;

  constructor(limits: ValueCacheLimits) {
    this.#current = new Pool(PoolId.current, limits.currentBytes);
    this.#past = new Pool(PoolId.past, limits.pastBytes);
  }

  get bytes(): number {
    return this.#current.bytes + this.#past.bytes;
  }

  /** `version` is the newest of its key and its value has come into memory. */
  addCurrent(version: Version): void {
    this.#current.add(version, this.stored);
  }

  /** `version` is no longer the newest of its key. */
  supersede(version: Version): void {
    if (this.#current.remove(version)) this.#past.add(version, this.stored);
  }

  /** The version that came after `version` has been taken back. */
  reinstate(version: Version): void {
    if (this.#past.remove(version)) this.#current.add(version, this.stored);
  }

  /** `version` is gone for good. */
  forget(version: Version): void {
    if (!this.#current.remove(version)) this.#past.remove(version);
  }
}

/** Places in the queue that are free or left behind, beyond as many as are in use, before they are given back. */
const SPARE = 1024;

class Pool {
  readonly #id: PoolId;
  readonly #limit: number;
  /**
   * In the order of arrival, from `#first` on. Who has left in between stays until its place comes up: its `pool` says
   * so. Not a set, which looks at every place that was given up at its front each time it is asked for its first.
   */
  #queue: Version[] = [];
  #first = 0;
  #members = 0;
  bytes = 0;

  constructor(id: PoolId, limit: number) {
    this.#id = id;
    this.#limit = limit;
  }

  add(version: Version, stored: number): void {
    if (version.kv === undefined || version.pool === this.#id) return;
    version.pool = this.#id;
    this.#queue.push(version);
    this.#members += 1;
    this.bytes += version.size;
    while (this.bytes > this.#limit) {
      const oldest = this.#queue[this.#first];
      if (oldest === undefined) break;
      if (oldest.pool === this.#id) {
        if (oldest.revision > stored) break;
        this.remove(oldest);
        oldest.kv = undefined;
      }
      this.#first += 1;
    }
    if (this.#queue.length > 2 * this.#members + SPARE) {
      this.#queue = this.#queue.filter((one, at) => at >= this.#first && one.pool === this.#id);
      this.#first = 0;
    }
  }

  remove(version: Version): boolean {
    if (version.pool !== this.#id) return false;
    version.pool = PoolId.none;
    this.#members -= 1;
    this.bytes -= version.size;
    return true;
  }
}
