/** Limits the number of concurrent requests. The gate stands between authentication and authorization. */
import { ApiError } from '../../api/meta/status.ts';
import type { Exchange } from '../http/exchange.ts';
import type { RequestInfo } from '../http/request-info.ts';

export interface Gate {
  /** Admits a request. False: the request is queued and resumed later. Throws 'TooManyRequests'. */
  admit(exchange: Exchange, nowMs: number): boolean;
  /** Ends a request. Call it when the response is complete. Idempotent. */
  leave(exchange: Exchange, nowMs: number): void;
}

const RETRY_AFTER_SECONDS = 1;
const STREAMS: ReadonlySet<string> = new Set(['attach', 'console', 'exec', 'proxy', 'log', 'portforward']);

export const tooManyRequests = (): ApiError =>
  new ApiError('TooManyRequests', 'Too many requests, please try again later.', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });

/**
 * Reports whether the request streams until the client ends it. Watches are handled separately. Source: upstream's
 * BasicLongRunningRequestCheck.
 */
export function isStream(info: RequestInfo): boolean {
  return info.resource && (info.verb === 'proxy' || STREAMS.has(info.subresource));
}

export function isReading(info: RequestInfo): boolean {
  const { verb } = info;
  return verb === 'get' || verb === 'list' || verb === 'watch' || (!info.resource && verb === 'head');
}

export interface InFlightLimits {
  /** Maximum number of concurrent requests. 0: no limit. */
  readonly reading: number;
  readonly mutating: number;
}

/**
 * Two fixed limits, for servers without priority and fairness. Source:
 * k8s.io/apiserver/pkg/server/filters/maxinflight.go.
 */
export class InFlightGate implements Gate {
  readonly #limits: InFlightLimits;
  #reading = 0;
  #mutating = 0;
  readonly #inside = new WeakSet<Exchange>();

  constructor(limits: InFlightLimits) {
    this.#limits = limits;
  }

  admit(exchange: Exchange): boolean {
    const { info, user } = exchange;
    if (isStream(info) || info.verb === 'watch') return true;
    const reading = isReading(info);
    const limit = reading ? this.#limits.reading : this.#limits.mutating;
    const inside = reading ? this.#reading : this.#mutating;
    if (limit > 0 && inside >= limit) {
      // Administrators must be able to repair an overloaded cluster.
      if (user.groups.includes('system:masters')) return true;
      throw tooManyRequests();
    }
    if (reading) this.#reading += 1;
    else this.#mutating += 1;
    this.#inside.add(exchange);
    return true;
  }

  leave(exchange: Exchange): void {
    if (!this.#inside.delete(exchange)) return;
    if (isReading(exchange.info)) this.#reading -= 1;
    else this.#mutating -= 1;
  }
}
