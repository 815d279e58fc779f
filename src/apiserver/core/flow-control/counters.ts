/** Counters of one flow schema at one priority level. The API server exposes them with upstream's names. */
import { Histogram } from '../../../base/metrics/histogram.ts';
import type { RejectReason } from './types.ts';

export const QUEUE_LENGTH_BOUNDS: readonly number[] = [0, 10, 25, 50, 100, 250, 500, 1000];
export const SECONDS_BOUNDS: readonly number[] = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30];
export const SEATS_BOUNDS: readonly number[] = [1, 2, 4, 10];
export const WATCH_BOUNDS: readonly number[] = [0, 1, 10, 100, 1000, 10_000];

export class FlowCounters {
  readonly level: string;
  readonly schema: string;
  dispatched = 0;
  waiting = 0;
  waitingSeats = 0;
  executing = 0;
  executingSeats = 0;
  /** How often the next request in order needed more seats than were free. */
  notAccommodated = 0;
  readonly rejected: Record<RejectReason, number> = {
    'queue-full': 0,
    'concurrency-limit': 0,
    'time-out': 0,
    cancelled: 0,
  };
  readonly queueLength = new Histogram(QUEUE_LENGTH_BOUNDS);
  readonly waitExecuted = new Histogram(SECONDS_BOUNDS);
  readonly waitRejected = new Histogram(SECONDS_BOUNDS);
  readonly execution = new Histogram(SECONDS_BOUNDS);
  readonly watchExecution = new Histogram(SECONDS_BOUNDS);
  readonly seats = new Histogram(SEATS_BOUNDS);
  readonly watches = new Histogram(WATCH_BOUNDS);

  constructor(level: string, schema: string) {
    this.level = level;
    this.schema = schema;
  }
}
