import type { FlowCounters } from './counters.ts';
import type { RejectReason, WorkEstimate } from './types.ts';

/** Assumed duration of a request before it has run. Source: upstream's estimatedServiceDuration. */
export const ESTIMATED_SERVICE_MS = 3;

/** Operations of a priority level on its requests. */
interface FlowLevel<T> {
  readonly queues: {
    reject(request: FlowRequest<T>, reason: RejectReason, nowMs: number): void;
    /** Frees the seats of a finished request. Returns false if they stay occupied for the additional latency. */
    finish(request: FlowRequest<T>, nowMs: number): boolean;
    release(request: FlowRequest<T>, nowMs: number): void;
  };
}

/** A request in a priority level. `owner` identifies it for the caller. */
export class FlowRequest<T> {
  readonly owner: T;
  readonly level: FlowLevel<T>;
  readonly counters: FlowCounters;
  readonly distinguisher: string;
  readonly initialSeats: number;
  finalSeats: number;
  additionalLatencyMs: number;
  readonly arrivedMs: number;
  /** Progress (`QueueSet.r`) when the request arrived. */
  arrivalR = 0;
  startedMs = 0;
  finishedMs = 0;
  state: 'arrived' | 'waiting' | 'executing' | 'finished' | 'lingering' | 'gone' = 'arrived';
  /** Queue of the request. Undefined if the level does not queue. */
  queue: FlowQueue<T> | undefined;
  next: FlowRequest<T> | undefined;
  previous: FlowRequest<T> | undefined;

  constructor(
    owner: T,
    level: FlowLevel<T>,
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

  /** Number of seats that the request occupies: the larger of its initial and final seats. */
  get seats(): number {
    return Math.max(this.initialSeats, this.finalSeats);
  }

  /** Estimated work of the request in seat-milliseconds. */
  get work(): number {
    return this.initialSeats * ESTIMATED_SERVICE_MS + this.finalSeats * this.additionalLatencyMs;
  }
}

/** Doubly linked list of requests in order of arrival. A request is in at most one list. */
export class RequestList<T> {
  length = 0;
  head: FlowRequest<T> | undefined;
  #tail: FlowRequest<T> | undefined;

  push(request: FlowRequest<T>): void {
    request.previous = this.#tail;
    if (this.#tail === undefined) this.head = request;
    else this.#tail.next = request;
    this.#tail = request;
    this.length += 1;
  }

  remove(request: FlowRequest<T>): void {
    const { previous, next } = request;
    if (previous === undefined) this.head = next;
    else previous.next = next;
    if (next === undefined) this.#tail = previous;
    else next.previous = previous;
    request.previous = undefined;
    request.next = undefined;
    this.length -= 1;
  }

  /** The yielded request may be removed during iteration. */
  *[Symbol.iterator](): Generator<FlowRequest<T>> {
    for (let at = this.head; at !== undefined; ) {
      const { next } = at;
      yield at;
      at = next;
    }
  }
}

export class FlowQueue<T> {
  readonly index: number;
  readonly waiting = new RequestList<T>();
  /** Progress (`QueueSet.r`) at which the next request of this queue would start if every queue had an equal share. */
  nextDispatchR = 0;
  executing = 0;
  seatsInUse = 0;
  /** Total estimated work of the waiting requests. */
  waitingWork = 0;

  constructor(index: number) {
    this.index = index;
  }

  get active(): boolean {
    return this.waiting.length > 0 || this.executing > 0;
  }

  /**
   * Moves the start of the next request to its arrival, if the start is earlier. So a queue does not save up the share
   * that it did not use while it was empty.
   */
  bound(): void {
    const { head } = this.waiting;
    if (head !== undefined && this.nextDispatchR < head.arrivalR) this.nextDispatchR = head.arrivalR;
  }
}
