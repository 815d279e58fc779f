/**
 * Request rates of the API server and latency of the store, from their metrics. Only the lines of the few metrics that
 * are needed are parsed.
 */
import type { ComponentCounters } from '../port.ts';

const REQUESTS = 'apiserver_request_total';
const FLUSHES = 'etcd_disk_wal_fsync_duration_seconds';

export function readApiCounters(text: string): NonNullable<ComponentCounters['api']> {
  let [requests, errors] = [0, 0];
  for (const line of linesOf(text, `${REQUESTS}{`)) {
    const count = countOf(line);
    requests += count;
    if (/[{,]code="5\d\d"/.test(line)) errors += count;
  }
  return { requests, errors };
}

/** Undefined if the text has no such metric. */
export function readStoreCounters(text: string): ComponentCounters['store'] {
  const [count] = linesOf(text, `${FLUSHES}_count`);
  const [sum] = linesOf(text, `${FLUSHES}_sum`);
  if (count === undefined || sum === undefined) return undefined;
  return { flushes: countOf(count), flushSeconds: countOf(sum) };
}

function* linesOf(text: string, start: string): Generator<string> {
  const needle = `\n${start}`;
  for (let at = text.startsWith(start) ? 0 : text.indexOf(needle) + 1; at > 0 || text.startsWith(start, at); ) {
    const end = text.indexOf('\n', at);
    yield text.slice(at, end < 0 ? text.length : end);
    const next = end < 0 ? -1 : text.indexOf(needle, end);
    if (next < 0) return;
    at = next + 1;
  }
}

function countOf(line: string): number {
  const value = Number(line.slice(line.lastIndexOf(' ') + 1));
  return Number.isFinite(value) && value >= 0 ? value : 0;
}

export interface ComponentRates {
  readonly apiRequests: number | undefined;
  readonly apiErrors: number | undefined;
  readonly storeFlushes: number | undefined;
  readonly storeLatency: number | undefined;
}

export const NO_RATES: ComponentRates = {
  apiRequests: undefined,
  apiErrors: undefined,
  storeFlushes: undefined,
  storeLatency: undefined,
};

/** Rates between two readings. A counter that decreased was reset and has counted from zero since then. */
export function componentRates(before: ComponentCounters, after: ComponentCounters, elapsedMs: number): ComponentRates {
  if (elapsedMs <= 0) return NO_RATES;
  const increase = (from: number, to: number): number => (to >= from ? to - from : to);
  const perSecond = (from: number, to: number): number => (increase(from, to) * 1_000) / elapsedMs;
  const api =
    before.api === undefined || after.api === undefined
      ? undefined
      : {
          requests: perSecond(before.api.requests, after.api.requests),
          errors: perSecond(before.api.errors, after.api.errors),
        };
  const store =
    before.store === undefined || after.store === undefined ? undefined : { before: before.store, after: after.store };
  const flushes = store === undefined ? undefined : increase(store.before.flushes, store.after.flushes);
  const seconds = store === undefined ? 0 : increase(store.before.flushSeconds, store.after.flushSeconds);
  return {
    apiRequests: api?.requests,
    apiErrors: api?.errors,
    storeFlushes: flushes === undefined ? undefined : (flushes * 1_000) / elapsedMs,
    // Without a flush there is no latency.
    storeLatency: flushes === undefined || flushes === 0 ? undefined : seconds / flushes,
  };
}
