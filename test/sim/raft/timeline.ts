interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Simulated time in milliseconds. Events at the same time run in the order in which they were scheduled. */
export class Timeline {
  nowMs = 0;
  #order = 0;
  readonly #heap: Event[] = [];

  after(delayMs: number, run: () => void): void {
    const heap = this.#heap;
    const event = { at: this.nowMs + delayMs, order: this.#order++, run };
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  /** Runs the next event. Returns false if it is due after `untilMs`. */
  step(untilMs: number): boolean {
    const next = this.#heap[0];
    if (next === undefined || next.at > untilMs) {
      this.nowMs = untilMs;
      return false;
    }
    this.#pop();
    this.nowMs = next.at;
    next.run();
    return true;
  }

  #pop(): void {
    const heap = this.#heap;
    const moved = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!before(heap[child] as Event, moved)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = moved;
  }
}

function before(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
