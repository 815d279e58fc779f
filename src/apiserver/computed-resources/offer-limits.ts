/**
 * Rate limits of host offers without credentials: writes per API server, offers per source address. A flood from one
 * address does not use up the limits of others.
 */

import { ApiError } from '../../api/meta/status.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { ServerContext } from '../rest/context.ts';

type OfferLimitsContext = Pick<ServerContext, 'cache' | 'clock'>;

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

/** Limits of writes for new hosts and for changed states: per API server, and per source address. */
const WRITES: Rate = { burst: 64, perSecond: 2 };
const WRITES_OF_ONE: Rate = { burst: 32, perSecond: 1 };
/**
 * Limit of offers per source address. Many hosts may be behind one router, and each sends an offer every two seconds.
 */
const OFFERS: Rate = { burst: 200, perSecond: 20 };
const MAX_ADDRESSES = 4096;
const RETRY_SECONDS = 5;

class Limits {
  readonly #writes: Bucket;
  readonly #shares = new BoundedMap<string, Share>(MAX_ADDRESSES);

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
      share = {
        offers: { tokens: OFFERS.burst, atMs: nowMs },
        writes: { tokens: WRITES_OF_ONE.burst, atMs: nowMs },
      };
    }
    // The entry is set again, so that the least recently used address is evicted first.
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

/** Limits by watch cache, because a process may run several API servers. */
const limits = new WeakMap<OfferLimitsContext['cache'], Limits>();

function limitsOf({ cache, clock }: OfferLimitsContext): Limits {
  const known = limits.get(cache) ?? new Limits(clock.monotonicMs());
  limits.set(cache, known);
  return known;
}

export const tooManyOffers = (message: string): ApiError =>
  new ApiError('TooManyRequests', message, { retryAfterSeconds: RETRY_SECONDS });

/** Reports whether a write for an unapproved host of `source` is within the limits. */
export const mayWriteOffer = (context: OfferLimitsContext, source: string): boolean =>
  limitsOf(context).write(source, context.clock.monotonicMs());

/** Throws 'TooManyRequests' if `source` sends too many offers. */
export function admitOffer(context: OfferLimitsContext, source: string): void {
  if (!limitsOf(context).offer(source, context.clock.monotonicMs()))
    throw tooManyOffers(`too many offers of hosts from ${source}; try again later`);
}
