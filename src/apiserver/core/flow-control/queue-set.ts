/**
 * The seats of one priority level and its queues.
 *
 * Every active queue is entitled to an equal share of the seats. `R` is the number of seat-milliseconds that each queue
 * could have had so far. A queue stores the R at which its next request is due; it adds an estimate when a request is
 * dispatched and corrects it when the request has finished. The request that would finish first by this calculation is
 * dispatched next. If it needs more seats than are free, all others wait for it; otherwise wide requests would starve.
 *
 * Source: KEP-1040, "Fair queuing for server requests"; k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/queueset.
 */
import { SeatDemand } from './demand.ts';
import { ESTIMATED_SERVICE_MS, FlowQueue, type FlowRequest, RequestList } from './flow-queue.ts';
import type { RejectReason } from './types.ts';

export type Queuing =
  | { readonly type: 'exempt' }
  | { readonly type: 'reject' }
  | {
      readonly type: 'queue';
      readonly queues: number;
      readonly handSize: number;
      readonly queueLengthLimit: number;
    };

/** Maximum number of idle queues kept for reuse. */
const KEPT_QUEUES = 128;

export class QueueSet<T> {
  queuing: Queuing;
  readonly demand: SeatDemand;
  limit: number;
  waiting = 0;
  waitingSeats = 0;
  readonly executing = new RequestList<T>();
  /** Seats of executing requests and of requests in their additional latency. */
  seatsInUse = 0;
  /** `R` in the description above: progress in seat-milliseconds per queue. */
  r = 0;
  #lastMs: number;
  #active = 0;
  #arrivals = 0;
  /** Queues in use, by index. Other queues are not stored, because a level may be configured with millions. */
  readonly #queues = new Map<number, FlowQueue<T>>();
  /** Queues with waiting requests, the least recently served first. */
  readonly #ready = new Set<FlowQueue<T>>();

  constructor(queuing: Queuing, limit: number, nowMs: number) {
    this.queuing = queuing;
    this.limit = limit;
    this.#lastMs = nowMs;
    this.demand = new SeatDemand(nowMs);
  }

  get idle(): boolean {
    return this.waiting === 0 && this.executing.length === 0 && this.seatsInUse === 0;
  }

  queues(): Iterable<FlowQueue<T>> {
    return this.#queues.values();
  }

  fits(seats: number): boolean {
    if (this.queuing.type === 'exempt') return true;
    // A request wider than the limit runs alone.
    if (seats > this.limit) return this.executing.length === 0;
    return this.seatsInUse + seats <= this.limit;
  }

  /**
   * Starts a request without queuing. `hand`: the queues of its flow. Call it only if `fits` is true and no request
   * waits.
   */
  execute(request: FlowRequest<T>, hand: readonly number[], nowMs: number): void {
    this.#advance(nowMs);
    if (this.queuing.type === 'queue') {
      const queue = this.#choose(hand);
      if (!queue.active || queue.nextDispatchR < this.r) queue.nextDispatchR = this.r;
      request.queue = queue;
      request.arrivalR = this.r;
    }
    this.#begin(request, nowMs);
  }

  /** Queues a request, or returns the reason for its rejection. */
  enqueue(request: FlowRequest<T>, hand: readonly number[], nowMs: number): RejectReason | undefined {
    const { queuing } = this;
    const { counters } = request;
    if (queuing.type !== 'queue') return 'concurrency-limit';
    this.#advance(nowMs);
    const queue = this.#choose(hand);
    if (queue.waiting.length >= queuing.queueLengthLimit) {
      this.#forgetIdle(queue);
      return 'queue-full';
    }
    if (!queue.active) {
      queue.nextDispatchR = this.r;
      this.#active += 1;
    }
    request.queue = queue;
    request.arrivalR = this.r;
    request.state = 'waiting';
    queue.waiting.push(request);
    queue.waitingWork += request.work;
    this.#ready.add(queue);
    this.waiting += 1;
    this.waitingSeats += request.seats;
    counters.waiting += 1;
    counters.waitingSeats += request.seats;
    counters.queueLength.observe(queue.waiting.length);
    queue.bound();
    this.#noteDemand(nowMs);
    return undefined;
  }

  /** Starts the next request in order. Undefined if no request waits, or if the next request does not fit yet. */
  dispatch(nowMs: number): FlowRequest<T> | undefined {
    if (this.waiting === 0) return undefined;
    let best: FlowQueue<T> | undefined;
    let earliest = Number.POSITIVE_INFINITY;
    for (const queue of this.#ready) {
      const finish = queue.nextDispatchR + (queue.waiting.head as FlowRequest<T>).work;
      if (finish < earliest) {
        earliest = finish;
        best = queue;
      }
    }
    const request = best?.waiting.head;
    if (best === undefined || request === undefined) return undefined;
    if (!this.fits(request.seats)) {
      request.counters.notAccommodated += 1;
      return undefined;
    }
    this.#advance(nowMs);
    this.#leave(request);
    // Queues with equal progress are served in turn.
    if (best.waiting.length > 0) {
      this.#ready.delete(best);
      this.#ready.add(best);
    }
    this.#begin(request, nowMs);
    best.bound();
    return request;
  }

  /** Reports whether `dispatch` would start a request. */
  get dispatchable(): boolean {
    return this.waiting > 0 && (this.seatsInUse < this.limit || this.executing.length === 0);
  }

  #begin(request: FlowRequest<T>, nowMs: number): void {
    if (request.finalSeats > this.limit && this.queuing.type !== 'exempt') {
      // The same work on fewer seats takes longer.
      const work = request.finalSeats * request.additionalLatencyMs;
      request.finalSeats = Math.max(1, this.limit);
      request.additionalLatencyMs = work / request.finalSeats;
    }
    const { queue, counters, seats } = request;
    request.state = 'executing';
    request.startedMs = nowMs;
    this.executing.push(request);
    this.seatsInUse += seats;
    counters.executing += 1;
    counters.executingSeats += seats;
    counters.dispatched += 1;
    counters.seats.observe(seats);
    if (queue !== undefined) {
      if (!queue.active) this.#active += 1;
      queue.executing += 1;
      queue.seatsInUse += seats;
      queue.nextDispatchR += request.work;
      counters.waitExecuted.observe((nowMs - request.arrivedMs) / 1000);
    }
    this.#noteDemand(nowMs);
  }

  /**
   * Call when a request was answered. Returns true if its seats are free; otherwise `release` must follow after the
   * additional latency.
   */
  finish(request: FlowRequest<T>, nowMs: number): boolean {
    this.#advance(nowMs);
    const { queue, counters } = request;
    this.executing.remove(request);
    counters.executing -= 1;
    if (queue !== undefined) {
      queue.executing -= 1;
      if (!queue.active) this.#active -= 1;
      const tookMs = request.finishedMs - request.startedMs;
      queue.nextDispatchR -= request.initialSeats * (ESTIMATED_SERVICE_MS - tookMs);
      queue.bound();
    }
    request.state = 'lingering';
    if (request.additionalLatencyMs > 0) return false;
    this.release(request, nowMs);
    return true;
  }

  release(request: FlowRequest<T>, nowMs: number): void {
    this.#advance(nowMs);
    const { queue, counters } = request;
    request.state = 'gone';
    this.seatsInUse -= request.seats;
    counters.executingSeats -= request.seats;
    if (queue !== undefined) {
      queue.seatsInUse -= request.seats;
      this.#forgetIdle(queue);
    }
    this.#noteDemand(nowMs);
  }

  /** Removes a waiting request. */
  reject(request: FlowRequest<T>, reason: RejectReason, nowMs: number): void {
    this.#advance(nowMs);
    const { queue, counters } = request;
    this.#leave(request);
    request.state = 'gone';
    counters.rejected[reason] += 1;
    counters.waitRejected.observe((nowMs - request.arrivedMs) / 1000);
    if (queue !== undefined) {
      queue.bound();
      this.#forgetIdle(queue);
    }
    this.#noteDemand(nowMs);
  }

  /** Requests that arrived before `beforeMs` and still wait. */
  *waitingSince(beforeMs: number): Generator<FlowRequest<T>> {
    for (const queue of [...this.#ready]) {
      for (const request of queue.waiting) {
        if (request.arrivedMs > beforeMs) break;
        yield request;
      }
    }
  }

  /** Arrival time of the longest waiting request. */
  get oldestMs(): number {
    let oldest = Number.POSITIVE_INFINITY;
    for (const { waiting } of this.#ready) oldest = Math.min(oldest, waiting.head?.arrivedMs ?? oldest);
    return oldest;
  }

  #leave(request: FlowRequest<T>): void {
    const { queue, counters } = request;
    this.waiting -= 1;
    this.waitingSeats -= request.seats;
    counters.waiting -= 1;
    counters.waitingSeats -= request.seats;
    if (queue === undefined) return;
    queue.waiting.remove(request);
    queue.waitingWork -= request.work;
    if (queue.waiting.length === 0) this.#ready.delete(queue);
    if (!queue.active) this.#active -= 1;
  }

  /** The queue of the hand with the least waiting work. The search starts at another queue each time. */
  #choose(hand: readonly number[]): FlowQueue<T> {
    const offset = this.#arrivals % hand.length;
    this.#arrivals += 1;
    let best = hand[offset] ?? 0;
    let least = this.#queues.get(best)?.waitingWork ?? 0;
    for (let step = 1; step < hand.length && least > 0; step++) {
      const index = hand[(offset + step) % hand.length] ?? 0;
      const work = this.#queues.get(index)?.waitingWork ?? 0;
      if (work < least) {
        least = work;
        best = index;
      }
    }
    let queue = this.#queues.get(best);
    if (queue === undefined) {
      queue = new FlowQueue(best);
      this.#queues.set(best, queue);
    }
    return queue;
  }

  #forgetIdle(queue: FlowQueue<T>): void {
    if (this.#queues.size > KEPT_QUEUES && !queue.active && queue.seatsInUse === 0) this.#queues.delete(queue.index);
  }

  #advance(nowMs: number): void {
    const ms = nowMs - this.#lastMs;
    if (ms <= 0) return;
    this.#lastMs = nowMs;
    if (this.#active === 0) return;
    this.r += (ms * Math.min(this.seatsInUse + this.waitingSeats, this.limit)) / this.#active;
  }

  #noteDemand(nowMs: number): void {
    this.demand.set(this.seatsInUse + this.waitingSeats, nowMs);
  }
}
