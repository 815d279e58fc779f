import { PoolId, type Version } from './version.ts';

export interface ValueCacheLimits {
  /** Limit of bytes of current values. */
  readonly currentBytes: number;
  /** Limit of bytes of overwritten or deleted values, which resuming watches need. */
  readonly pastBytes: number;
}

/**
 * Decides which encoded key-values stay in memory: first in, first out. Current and past values have separate limits,
 * so that a frequently overwritten key does not displace other keys. A value is dropped only if it can be read back
 * from the log, which means that its revision is at most `stored`.
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

  /** Adds a value of the newest version of its key. */
  addCurrent(version: Version): void {
    this.#current.add(version, this.stored);
  }

  /** Records that `version` is no longer the newest of its key. */
  supersede(version: Version): void {
    if (this.#current.remove(version)) this.#past.add(version, this.stored);
  }

  /** Records that the version after `version` was rolled back. */
  reinstate(version: Version): void {
    if (this.#past.remove(version)) this.#current.add(version, this.stored);
  }

  /** Removes a version that was deleted from the index. */
  forget(version: Version): void {
    if (!this.#current.remove(version)) this.#past.remove(version);
  }
}

/** The queue is compacted when its unused places outnumber its members by more than this number. */
const SPARE = 1024;

class Pool {
  readonly #id: PoolId;
  readonly #limit: number;
  /**
   * Versions in order of arrival, starting at `#first`. A removed version stays in the queue until its turn and is
   * recognized by its `pool`. A Set would be slow: reading its first element scans all places that were deleted at its
   * front.
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
