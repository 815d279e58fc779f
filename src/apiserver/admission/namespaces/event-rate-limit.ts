/**
 * Rate limits for Events: per server, namespace, user, or source and object. Source:
 * plugin/pkg/admission/eventratelimit.
 */

import type { Event } from '../../../api/generated/core/v1.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { BoundedMap } from '../../../base/bounded-map.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { EventLimit } from '../settings.ts';

/** Token bucket: refilled at `qps`, holds at most `burst` tokens. */
class Bucket {
  #tokens: number;
  #filledMs: number;

  constructor(burst: number, nowMs: number) {
    this.#tokens = burst;
    this.#filledMs = nowMs;
  }

  take({ qps, burst }: EventLimit, nowMs: number): boolean {
    this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#filledMs) / 1000) * qps);
    this.#filledMs = nowMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

/** One limit with a bucket per key. The least recently used bucket is dropped when the cache is full. */
class Enforcer {
  readonly #limit: EventLimit;
  readonly #buckets: BoundedMap<string, Bucket>;

  constructor(limit: EventLimit) {
    this.#limit = limit;
    this.#buckets = new BoundedMap(limit.cacheSize);
  }

  /** Returns the message of the rejection; undefined if the request is within the limit. */
  check(request: AdmissionRequest, nowMs: number): string | undefined {
    const { type, burst } = this.#limit;
    const key = keyOf(type, request);
    const bucket = this.#buckets.get(key) ?? new Bucket(burst, nowMs);
    this.#buckets.set(key, bucket);
    return bucket.take(this.#limit, nowMs) ? undefined : `limit reached on type ${type} for key ${key}`;
  }
}

function keyOf(type: EventLimit['type'], request: AdmissionRequest): string {
  switch (type) {
    case 'Server':
      return '';
    case 'Namespace':
      return request.namespace;
    case 'User':
      return request.user.name;
    case 'SourceAndObject': {
      const { source, involvedObject: about } = request.object as Event;
      return [
        source?.component,
        source?.host,
        about?.kind,
        about?.namespace,
        about?.name,
        about?.uid,
        about?.apiVersion,
      ].join('');
    }
  }
}

export function eventRateLimit(limits: readonly EventLimit[], nowMs: () => number): AdmissionPlugin {
  const enforcers = limits.map((limit) => new Enforcer(limit));
  return {
    name: 'EventRateLimit',
    validate(request) {
      if (request.kind.definition.kind !== 'Event' || request.dryRun) return;
      if (request.operation !== 'CREATE' && request.operation !== 'UPDATE') return;
      const reached = enforcers.map((each) => each.check(request, nowMs())).filter((text) => text !== undefined);
      if (reached.length === 0) return;
      throw new ApiError('TooManyRequests', reached.length === 1 ? (reached[0] ?? '') : `[${reached.join(', ')}]`, {
        retryAfterSeconds: 1,
      });
    },
  };
}
