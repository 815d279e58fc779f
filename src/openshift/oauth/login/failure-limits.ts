/**
 * Limits failed logins, per source address and per pair of source and user. A limit per user alone would let an
 * attacker lock the user out from other sources. Uses monotonic time, so that changes of the clock do not affect the
 * limits.
 */

import { peerNetwork } from '../../../base/addresses/addresses.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';

/** `burst`: number of failures that are allowed at once. `seconds`: time until one more failure is allowed. */
const SOURCE = { burst: 40, seconds: 2 };
const PAIR = { burst: 10, seconds: 6 };
const MAX_KEYS = 10_000;

interface Bucket {
  failures: number;
  sinceMs: number;
}

export class FailureLimits {
  readonly #nowMs: () => number;
  readonly #buckets = new BoundedMap<string, Bucket>(MAX_KEYS);

  /** `nowMs` returns the monotonic time. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Seconds until the next attempt is allowed; 0 if it is allowed now. */
  waitSeconds(source: string, user: string): number {
    return Math.max(this.#wait(sourceKey(source), SOURCE), this.#wait(pairKey(source, user), PAIR));
  }

  failed(source: string, user: string): void {
    this.#count(sourceKey(source), SOURCE.seconds);
    this.#count(pairKey(source, user), PAIR.seconds);
  }

  /** Removes the failure that was counted before a successful attempt, and all failures of this source and user. */
  succeeded(source: string, user: string): void {
    this.#release(sourceKey(source), SOURCE.seconds);
    this.#buckets.delete(pairKey(source, user));
  }

  /** Removes the failure that was counted before an attempt whose password could not be checked. */
  unchecked(source: string, user: string): void {
    this.#release(sourceKey(source), SOURCE.seconds);
    this.#release(pairKey(source, user), PAIR.seconds);
  }

  #release(key: string, seconds: number): void {
    const bucket = this.#current(key, seconds);
    if (bucket === undefined) return;
    bucket.failures -= 1;
    if (bucket.failures <= 0) this.#buckets.delete(key);
  }

  #current(key: string, seconds: number): Bucket | undefined {
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) return undefined;
    const nowMs = this.#nowMs();
    const forgiven = (nowMs - bucket.sinceMs) / (seconds * 1000);
    bucket.failures = Math.max(0, bucket.failures - forgiven);
    bucket.sinceMs = nowMs;
    return bucket;
  }

  #wait(key: string, { burst, seconds }: { readonly burst: number; readonly seconds: number }): number {
    const bucket = this.#current(key, seconds);
    if (bucket === undefined || bucket.failures < burst) return 0;
    return Math.ceil((bucket.failures - burst + 1) * seconds);
  }

  #count(key: string, seconds: number): void {
    const bucket = this.#current(key, seconds);
    if (bucket !== undefined) bucket.failures += 1;
    else {
      this.#buckets.set(key, { failures: 1, sinceMs: this.#nowMs() });
    }
  }
}

const sourceKey = (source: string): string => `s ${peerNetwork(source)}`;
const pairKey = (source: string, user: string): string =>
  `u ${peerNetwork(source)} ${user.slice(0, 256).toLowerCase()}`;
