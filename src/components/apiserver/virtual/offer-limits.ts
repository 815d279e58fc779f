/**
 * How often hosts without credentials may offer themselves: per API server what is written, per address what is looked
 * at. One that floods has its own share used up, and the others theirs left.
 */

import { ApiError } from '../../../api/meta/status.ts';
import type { RestContext } from '../rest/context.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

interface Share {
  readonly offers: Bucket;
  readonly writes: Bucket;
}

/** New hosts and changed states, on one API server, and of them what one address may cause. */
const WRITES: Rate = { burst: 64, perSecond: 2 };
const WRITES_OF_ONE: Rate = { burst: 32, perSecond: 1 };
/** Offers of one address: many hosts may be behind a router, and each offers itself every two seconds. */
const OFFERS: Rate = { burst: 200, perSecond: 20 };
const MAX_ADDRESSES = 4096;
const RETRY_SECONDS = 5;

class Limits {
  readonly #writes: Bucket;
  readonly #shares = new Map<string, Share>();

  constructor(nowMs: number) {
    this.#writes = { tokens: WRITES.burst, atMs: nowMs };
  }

  write(source: string, nowMs: number): boolean {
    return take(this.#shareOf(source, nowMs).writes, WRITES_OF_ONE, nowMs) && take(this.#writes, WRITES, nowMs);
  }

  offer(source: string, nowMs: number): boolean {
    return take(this.#shareOf(source, nowMs).offers, OFFERS, nowMs);
  }

  #shareOf(source: string, nowMs: number): Share {
    let share = this.#shares.get(source);
    if (share === undefined) {
      const [oldest] = this.#shares.keys();
      if (this.#shares.size >= MAX_ADDRESSES && oldest !== undefined) this.#shares.delete(oldest);
      share = {
        offers: { tokens: OFFERS.burst, atMs: nowMs },
        writes: { tokens: WRITES_OF_ONE.burst, atMs: nowMs },
      };
    } else this.#shares.delete(source);
    // The one that was seen last is dropped last.
    this.#shares.set(source, share);
    return share;
  }
}

function take(bucket: Bucket, { burst, perSecond }: Rate, nowMs: number): boolean {
  bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) / 1000) * perSecond);
  bucket.atMs = nowMs;
  if (bucket.tokens < 1) return false;
  bucket.tokens -= 1;
  return true;
}

/** One for each API server of the process. */
const limits = new WeakMap<RestContext['cache'], Limits>();

function limitsOf({ cache, clock }: RestContext): Limits {
  const known = limits.get(cache) ?? new Limits(clock.monotonicMs());
  limits.set(cache, known);
  return known;
}

export const tooManyOffers = (message: string): ApiError =>
  new ApiError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS });

/** Whether something may be written for a host of `source` that no administrator has approved. */
export const mayWriteOffer = (context: RestContext, source: string): boolean =>
  limitsOf(context).write(source, context.clock.monotonicMs());

/** Throws 'TooManyRequests' when `source` offers too often. */
export function admitOffer(context: RestContext, source: string): void {
  if (!limitsOf(context).offer(source, context.clock.monotonicMs()))
    throw tooManyOffers(`too many offers of hosts from ${source}; try again later`);
}
