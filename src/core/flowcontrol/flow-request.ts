import type { FlowCounters } from './counters.ts';
import type { FlowQueue } from './flow-queue.ts';
import type { PriorityLevel } from './priority-level.ts';
import type { WorkEstimate } from './types.ts';

/** What a request is taken to need before it has run. Source: upstream's estimatedServiceDuration. */
export const ESTIMATED_SERVICE_MS = 3;

/** One request on its way through its level. `owner` is whatever the shell knows it by. */
export class FlowRequest<T> {
  readonly owner: T;
  readonly level: PriorityLevel<T>;
  readonly counters: FlowCounters;
  readonly distinguisher: string;
  readonly initialSeats: number;
  finalSeats: number;
  additionalLatencyMs: number;
  readonly arrivedMs: number;
  /** The level's progress when it came. */
  arrivalR = 0;
  startedMs = 0;
  finishedMs = 0;
  state: 'arrived' | 'waiting' | 'executing' | 'finished' | 'lingering' | 'gone' = 'arrived';
  /** Undefined where there is no queuing. */
  queue: FlowQueue<T> | undefined;
  next: FlowRequest<T> | undefined;
  previous: FlowRequest<T> | undefined;

  constructor(
    owner: T,
    level: PriorityLevel<T>,
    counters: FlowCounters,
    distinguisher: string,
    work: WorkEstimate,
    nowMs: number,
  ) {
    this.owner = owner;
    this.level = level;
    this.counters = counters;
    this.distinguisher = distinguisher;
    this.initialSeats = work.initialSeats;
    this.finalSeats = work.finalSeats;
    this.additionalLatencyMs = work.additionalLatencyMs;
    this.arrivedMs = nowMs;
  }

  /** It holds the larger of the two from beginning to end. */
  get seats(): number {
    return Math.max(this.initialSeats, this.finalSeats);
  }

  /** In seats × milliseconds. */
  get work(): number {
    return this.initialSeats * ESTIMATED_SERVICE_MS + this.finalSeats * this.additionalLatencyMs;
  }
}
