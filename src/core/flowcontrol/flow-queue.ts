import type { FlowCounters } from './counters.ts';
import type { RejectReason, WorkEstimate } from './types.ts';

/** What a request is taken to need before it has run. Source: upstream's estimatedServiceDuration. */
export const ESTIMATED_SERVICE_MS = 3;

/** What a request needs of its priority level: the queues that it waits in and holds seats of. */
interface FlowLevel<T> {
  readonly queues: {
    reject(request: FlowRequest<T>, reason: RejectReason, nowMs: number): void;
    /** False: seats stay held for a while. */
    finish(request: FlowRequest<T>, nowMs: number): boolean;
    release(request: FlowRequest<T>, nowMs: number): void;
  };
}

/** One request on its way through its level. `owner` is whatever the shell knows it by. */
export class FlowRequest<T> {
  readonly owner: T;
  readonly level: FlowLevel<T>;
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

  /** It holds the larger of the two from beginning to end. */
  get seats(): number {
    return Math.max(this.initialSeats, this.finalSeats);
  }

  /** In seats × milliseconds. */
  get work(): number {
    return this.initialSeats * ESTIMATED_SERVICE_MS + this.finalSeats * this.additionalLatencyMs;
  }
}

/** Requests in the order they came; any of them may leave. A request is in one list at a time. */
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

  /** May be left or changed while it is walked, by the one that was just given out. */
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
  /** The progress at which its next request would be served if every queue got its equal share. */
  nextDispatchR = 0;
  executing = 0;
  seatsInUse = 0;
  /** Of those that wait. */
  waitingWork = 0;

  constructor(index: number) {
    this.index = index;
  }

  get active(): boolean {
    return this.waiting.length > 0 || this.executing > 0;
  }

  /** Dispatch does not come before arrival: a queue that could not use its share does not save it up. */
  bound(): void {
    const { head } = this.waiting;
    if (head !== undefined && this.nextDispatchR < head.arrivalR) this.nextDispatchR = head.arrivalR;
  }
}
