import type { Version } from './version.ts';

export interface ValueCacheLimits {
  /** Bytes of values that are current. */
  readonly currentBytes: number;
  /** Bytes of values that have been overwritten or deleted: what watches that resume ask for. */
  readonly pastBytes: number;
}

/**
 * Decides which encoded key-values stay in memory: first in, first out, current ones apart from past ones so that a key that is
 * overwritten all the time cannot push out the others. A value leaves only when it can be read back from the log, that is when
 * its revision is at most `stored`.
 */
export class ValueCache {
  readonly #current: Pool;
  readonly #past: Pool;
  stored = 0;

  constructor(limits: ValueCacheLimits) {
    this.#current = new Pool(limits.currentBytes);
    this.#past = new Pool(limits.pastBytes);
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

class Pool {
  readonly #limit: number;
  /** In the order of arrival. */
  readonly #members = new Set<Version>();
  bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(version: Version, stored: number): void {
    if (version.kv === undefined || this.#members.has(version)) return;
    this.#members.add(version);
    this.bytes += version.size;
    if (this.bytes <= this.#limit) return;
    for (const oldest of this.#members) {
      if (this.bytes <= this.#limit || oldest.revision > stored) return;
      this.remove(oldest);
      oldest.kv = undefined;
    }
  }

  remove(version: Version): boolean {
    if (!this.#members.delete(version)) return false;
    this.bytes -= version.size;
    return true;
  }
}
