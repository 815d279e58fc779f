/**
 * Estimates the seats of a request. Source: KEP-1040, "Width of the request";
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
  /** Number of objects to search. */
  readonly stored: number;
  readonly limit: number | undefined;
  /** True: the list is served from memory. False: it is read from the store and then filtered. */
  readonly fromCache: boolean;
  readonly selective: boolean;
}

/** Seats of a list, or of a watch that starts with a list. `maxSeats`: limit per request in the level. */
export function estimateList({ stored, limit, fromCache, selective }: ListWork, maxSeats: number): WorkEstimate {
  const shown = limit === undefined ? stored : Math.min(limit, stored);
  const processed = fromCache ? stored : selective ? stored + shown : 2 * shown;
  const seats = cut(processed / OBJECTS_PER_SEAT, maxSeats);
  return seats === 1 ? ONE_SEAT : { initialSeats: seats, finalSeats: 0, additionalLatencyMs: 0 };
}

/** Seats of a write that is sent to this number of watches. */
export function estimateWrite(watches: number, maxSeats: number): WorkEstimate {
  if (watches < WATCHES_PER_SEAT) return ONE_SEAT;
  return {
    initialSeats: 1,
    finalSeats: cut(watches / WATCHES_PER_SEAT, maxSeats),
    additionalLatencyMs: EVENT_LATENCY_MS,
  };
}
