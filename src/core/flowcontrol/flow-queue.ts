import type { FlowRequest } from './flow-request.ts';

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
