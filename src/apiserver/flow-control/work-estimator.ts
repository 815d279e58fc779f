/** Estimates the seats of a request before it runs. */
import {
  estimateList,
  estimateWrite,
  type FlowCounters,
  ONE_SEAT,
  type WorkEstimate,
} from '../core/flow-control/index.ts';
import { isTrue, type RequestInfo, type ResourceRequestInfo } from '../http/request-info.ts';
import type { Kinds } from '../pipeline/kinds.ts';
import type { WatchTracker } from './watch-tracker.ts';

export class WorkEstimator {
  readonly #kinds: Kinds;
  readonly #watches: WatchTracker;

  constructor(kinds: Kinds, watches: WatchTracker) {
    this.#kinds = kinds;
    this.#watches = watches;
  }

  /** `maxSeats`: limit per request in the priority level. */
  estimate(info: RequestInfo, maxSeats: number, counters: FlowCounters): WorkEstimate {
    if (!info.resource) return ONE_SEAT;
    switch (info.verb) {
      case 'get':
        return ONE_SEAT;
      case 'list':
        return this.#list(info, maxSeats);
      case 'watch':
        return isTrue(info.query.get('sendInitialEvents')) ? this.#list(info, maxSeats) : ONE_SEAT;
      default:
        return this.#write(info, maxSeats, counters);
    }
  }

  #list(info: ResourceRequestInfo, maxSeats: number): WorkEstimate {
    // A list of a single name costs as much as a get.
    if (info.name !== '') return ONE_SEAT;
    const cache = this.#kinds.at(info.group, info.version, info.plural)?.cache;
    if (cache === undefined) return ONE_SEAT;
    const { query } = info;
    const limit = Number(query.get('limit') ?? 0);
    const version = query.get('resourceVersion') ?? '';
    const limited = Number.isSafeInteger(limit) && limit > 0;
    const exact = query.get('resourceVersionMatch') === 'Exact' || (limited && version !== '' && version !== '0');
    const list = {
      stored: info.namespace === '' ? cache.size : cache.count(info.namespace),
      limit: limited ? limit : undefined,
      fromCache: info.verb === 'watch' || !(exact || (query.get('continue') ?? '') !== ''),
      selective: query.has('labelSelector') || query.has('fieldSelector'),
    };
    return estimateList(list, maxSeats);
  }

  #write(info: ResourceRequestInfo, maxSeats: number, counters: FlowCounters): WorkEstimate {
    // A token request causes no watch events.
    if (info.subresource === 'token') return ONE_SEAT;
    const watches = this.#watches.interested(info);
    counters.watches.observe(watches);
    return estimateWrite(watches, maxSeats);
  }
}
