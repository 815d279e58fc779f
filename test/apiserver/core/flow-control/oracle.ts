/**
 * Oracle for fair queuing: the algorithm of KEP-1040 without optimizations, with all queues, sums computed each time,
 * and requests in plain arrays.
 */
const GUESS_MS = 3;

export interface OracleRequest {
  readonly id: number;
  readonly initial: number;
  final: number;
  latencyMs: number;
  readonly arrivedMs: number;
  arrivalR: number;
  startMs: number;
  queue: number;
}

interface OracleQueue {
  nextR: number;
  waiting: OracleRequest[];
  executing: OracleRequest[];
  lingering: OracleRequest[];
  /**
   * Time at which the queue was last served, or at which its first request began to wait. Of equal queues, the one with
   * the earliest time is served first.
   */
  stamp: number;
}

const seats = (request: OracleRequest): number => Math.max(request.initial, request.final);
const work = (request: OracleRequest): number => request.initial * GUESS_MS + request.final * request.latencyMs;
const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

export class Oracle {
  readonly queues: OracleQueue[];
  readonly #lengthLimit: number;
  limit: number;
  #r = 0;
  #lastMs: number;
  #arrivals = 0;
  #stamps = 0;

  constructor(queues: number, lengthLimit: number, limit: number, nowMs: number) {
    this.queues = Array.from({ length: queues }, () => ({
      nextR: 0,
      waiting: [],
      executing: [],
      lingering: [],
      stamp: 0,
    }));
    this.#lengthLimit = lengthLimit;
    this.limit = limit;
    this.#lastMs = nowMs;
  }

  get inUse(): number {
    return sum(this.queues.flatMap(({ executing, lingering }) => [...executing, ...lingering].map(seats)));
  }

  get waiting(): number {
    return sum(this.queues.map((queue) => queue.waiting.length));
  }

  #advance(nowMs: number): void {
    const active = this.queues.filter((queue) => queue.waiting.length + queue.executing.length > 0).length;
    const wanted = this.inUse + sum(this.queues.flatMap((queue) => queue.waiting.map(seats)));
    if (active > 0) this.#r += ((nowMs - this.#lastMs) * Math.min(wanted, this.limit)) / active;
    this.#lastMs = nowMs;
  }

  #fits(request: OracleRequest): boolean {
    if (seats(request) > this.limit) return this.queues.every((queue) => queue.executing.length === 0);
    return this.inUse + seats(request) <= this.limit;
  }

  /** Returns 'waiting' also for a request that will be dispatched at once. */
  arrive(request: OracleRequest, hand: readonly number[], nowMs: number): 'waiting' | 'queue-full' {
    this.#advance(nowMs);
    const direct = this.waiting === 0 && this.#fits(request);
    const offset = this.#arrivals++ % hand.length;
    const cards = hand.map((_, index) => hand[(offset + index) % hand.length] as number);
    const load = (card: number): number => sum((this.queues[card] as OracleQueue).waiting.map(work));
    const least = Math.min(...cards.map(load));
    const card = cards.find((each) => load(each) === least) as number;
    const queue = this.queues[card] as OracleQueue;
    if (!direct && queue.waiting.length >= this.#lengthLimit) return 'queue-full';
    if (queue.waiting.length + queue.executing.length === 0) queue.nextR = this.#r;
    if (queue.waiting.length === 0) queue.stamp = this.#stamps++;
    request.arrivalR = this.#r;
    request.queue = card;
    queue.waiting.push(request);
    this.#bound(queue);
    return 'waiting';
  }

  #bound(queue: OracleQueue): void {
    const [head] = queue.waiting;
    if (head !== undefined) queue.nextR = Math.max(queue.nextR, head.arrivalR);
  }

  dispatch(nowMs: number): OracleRequest | undefined {
    const ready = this.queues.filter((queue) => queue.waiting.length > 0);
    const due = (queue: OracleQueue): number => queue.nextR + work(queue.waiting[0] as OracleRequest);
    const [best] = ready.sort((a, b) => due(a) - due(b) || a.stamp - b.stamp);
    const head = best?.waiting[0];
    if (best === undefined || head === undefined || !this.#fits(head)) return undefined;
    this.#advance(nowMs);
    best.waiting.shift();
    best.stamp = this.#stamps++;
    if (head.final > this.limit) {
      head.latencyMs = (head.final * head.latencyMs) / Math.max(1, this.limit);
      head.final = Math.max(1, this.limit);
    }
    head.startMs = nowMs;
    best.executing.push(head);
    best.nextR += work(head);
    this.#bound(best);
    return head;
  }

  finish(request: OracleRequest, nowMs: number): void {
    this.#advance(nowMs);
    const queue = this.queues[request.queue] as OracleQueue;
    queue.executing = queue.executing.filter((each) => each !== request);
    queue.nextR -= request.initial * (GUESS_MS - (nowMs - request.startMs));
    this.#bound(queue);
    if (request.latencyMs > 0) queue.lingering.push(request);
  }

  release(request: OracleRequest, nowMs: number): void {
    this.#advance(nowMs);
    const queue = this.queues[request.queue] as OracleQueue;
    queue.lingering = queue.lingering.filter((each) => each !== request);
  }

  drop(request: OracleRequest, nowMs: number): void {
    this.#advance(nowMs);
    const queue = this.queues[request.queue] as OracleQueue;
    queue.waiting = queue.waiting.filter((each) => each !== request);
    this.#bound(queue);
  }
}
