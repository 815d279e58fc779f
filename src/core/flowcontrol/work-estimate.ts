/**
 * How many seats a request takes. Source: KEP-1040, "Width of the request";
 * k8s.io/apiserver/pkg/util/flowcontrol/request.
 */
import type { WorkEstimate } from './types.ts';

const MAX_SEATS = 10;
const OBJECTS_PER_SEAT = 100;
const WATCHES_PER_SEAT = 10;
const EVENT_LATENCY_MS = 5;

export const ONE_SEAT: WorkEstimate = { initialSeats: 1, finalSeats: 0, additionalLatencyMs: 0 };

const cut = (seats: number, most: number): number => Math.max(1, Math.min(Math.ceil(seats), most, MAX_SEATS));

export interface ListWork {
  /** Objects that there are to look through. */
  readonly stored: number;
  readonly limit: number | undefined;
  /** Served from memory; else from the store, which reads and then filters. */
  readonly fromCache: boolean;
  readonly selective: boolean;
}

/** A list, or a watch that begins with one. `maxSeats`: those that one request of the level may have. */
export function estimateList({ stored, limit, fromCache, selective }: ListWork, maxSeats: number): WorkEstimate {
  const shown = limit === undefined ? stored : Math.min(limit, stored);
  const processed = fromCache ? stored : selective ? stored + shown : 2 * shown;
  const seats = cut(processed / OBJECTS_PER_SEAT, maxSeats);
  return seats === 1 ? ONE_SEAT : { initialSeats: seats, finalSeats: 0, additionalLatencyMs: 0 };
}

/** A write that so many watches will be notified of. */
export function estimateWrite(watches: number, maxSeats: number): WorkEstimate {
  if (watches < WATCHES_PER_SEAT) return ONE_SEAT;
  return {
    initialSeats: 1,
    finalSeats: cut(watches / WATCHES_PER_SEAT, maxSeats),
    additionalLatencyMs: EVENT_LATENCY_MS,
  };
}
