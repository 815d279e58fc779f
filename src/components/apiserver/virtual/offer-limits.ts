/**
 * How often hosts without credentials may offer themselves: per API server what is written, per address what is looked
 * at. One that floods has its own share used up, and the others theirs left.
 */

import { ApiError } from '../../../api/meta/status.ts';
import { ipFamilyOf } from '../../../base/addresses.ts';
import type { RestContext } from '../rest/context.ts';

interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** New hosts and changed states, on one API server. */
const WRITES: Rate = { burst: 32, perSecond: 2 };
/** Offers of one address: many hosts may be behind a router, and each offers itself every two seconds. */
const OFFERS: Rate = { burst: 200, perSecond: 20 };
const MAX_ADDRESSES = 4096;
const RETRY_SECONDS = 5;

class Limits {
  readonly #writes: Bucket;
  readonly #offers = new Map<string, Bucket>();

  constructor(nowMs: number) {
    this.#writes = { tokens: WRITES.burst, atMs: nowMs };
  }

  write(nowMs: number): boolean {
    return take(this.#writes, WRITES, nowMs);
  }

  offer(source: string, nowMs: number): boolean {
    let bucket = this.#offers.get(source);
    if (bucket === undefined) {
      const [oldest] = this.#offers.keys();
      if (this.#offers.size >= MAX_ADDRESSES && oldest !== undefined) this.#offers.delete(oldest);
      bucket = { tokens: OFFERS.burst, atMs: nowMs };
    } else this.#offers.delete(source);
    // The one that was seen last is dropped last.
    this.#offers.set(source, bucket);
    return take(bucket, OFFERS, nowMs);
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

/** Whether something may be written for a host that no administrator has approved. */
export const mayWriteOffer = (context: RestContext): boolean => limitsOf(context).write(context.clock.monotonicMs());

/** Throws 'TooManyRequests' when `source` offers too often. */
export function admitOffer(context: RestContext, source: string): void {
  if (!limitsOf(context).offer(source, context.clock.monotonicMs()))
    throw tooManyOffers(`too many offers of hosts from ${source}; try again later`);
}

/** What counts as one address: of IPv6 a link's 64 bits, since a host chooses the rest itself. */
export function sourceOf(remoteAddress: string): string {
  const address = remoteAddress.replace(/^::ffff:(?=\d+\.)/, '').replace(/%.*$/, '');
  if (ipFamilyOf(address) !== 6) return address;
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  return `${[...before, ...Array.from({ length: missing }, () => '0'), ...after].slice(0, 4).join(':')}::/64`;
}
