/** Recent events of one kind, from which interrupted watches resume. */
import type { CachedObject } from './cached-object.ts';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

const PREFIX = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
} as const;
const SUFFIX = Buffer.from('}\n');

export function frameEvent(type: EventType, object: Uint8Array): Buffer {
  return Buffer.concat([PREFIX[type], object, SUFFIX]);
}

export class CacheEvent {
  readonly type: EventType;
  readonly revision: number;
  /** The object after the change; for DELETED its last state with the revision of the delete. */
  readonly object: CachedObject;
  readonly previous: CachedObject | undefined;
  #line: Buffer | undefined;

  constructor(type: EventType, object: CachedObject, previous: CachedObject | undefined) {
    this.type = type;
    this.object = object;
    this.previous = previous;
    this.revision = object.revision;
  }

  /** Bytes that only this event keeps alive. The old object of a change is also the new object of an earlier event. */
  get bytes(): number {
    const { object, previous } = this;
    return object.bytes.length + (this.type === 'DELETED' ? (previous?.bytes.length ?? 0) : 0);
  }

  /** The line of a JSON watch stream, encoded once for all watches. */
  get line(): Buffer {
    this.#line ??= frameEvent(this.type, this.object.bytes);
    return this.#line;
  }

  /** Frees the line and the parsed object after delivery. They are created again for watches that resume later. */
  release(): void {
    this.#line = undefined;
    this.object.delivered();
  }
}

/** Events of one delivery: all events of one or more complete revisions, in order. */
export class EventBatch {
  readonly events: readonly CacheEvent[];
  readonly revision: number;
  #joined: Buffer | undefined;
  constructor(events: readonly CacheEvent[], revision: number) {
    this.events = events;
    this.revision = revision;
  }
  /** All lines in one buffer, shared by all watches of the whole kind. */
  get joined(): Buffer {
    const [first] = this.events;
    this.#joined ??=
      this.events.length === 1 && first !== undefined
        ? first.line
        : Buffer.concat(this.events.map((event) => event.line));
    return this.#joined;
  }
}

const MAX_EVENTS = 4096;
const MAX_BYTES = 16 * 1024 * 1024;
/** Default byte limit of all windows together. */
const ALL_BYTES = 64 * 1024 * 1024;
const FEW = 1024;

/**
 * Byte limit shared by the windows of all kinds. Above the limit, the oldest event of any kind is evicted. Without a
 * shared limit, each of some hundred kinds could fill its own window.
 */
export class WindowBudget {
  readonly #maxBytes: number;
  /** Window of each event, oldest first. Events that their window has already evicted are still included. */
  #order: EventWindow[] = [];
  #head = 0;
  #bytes = 0;
  #events = 0;

  constructor(maxBytes = ALL_BYTES) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  came(window: EventWindow, bytes: number): void {
    this.#order.push(window);
    this.#events += 1;
    this.#bytes += bytes;
    while (this.#bytes > this.#maxBytes && this.#head < this.#order.length) this.#order[this.#head++]?.evictOldest();
    if (this.#order.length > 2 * this.#events + FEW) this.#tidy();
  }

  went(events: number, bytes: number): void {
    this.#events -= events;
    this.#bytes -= bytes;
  }

  #tidy(): void {
    this.#order = this.#order.slice(this.#head).filter((window) => !window.takeBack());
    this.#head = 0;
  }
}

/** Ring buffer with limits of events and bytes. It contains all events after the revision `since`. */
export class EventWindow {
  readonly #budget: WindowBudget;
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  /** Number of events that this window has evicted but that the budget still lists. */
  #ahead = 0;
  /** Entries before the head are cleared, so that evicted events can be freed. */
  #events: (CacheEvent | undefined)[] = [];
  #head = 0;
  #bytes = 0;
  #since: number;

  constructor(since: number, budget: WindowBudget, maxEvents = MAX_EVENTS, maxBytes = MAX_BYTES) {
    this.#since = since;
    this.#budget = budget;
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  get since(): number {
    return this.#since;
  }

  push(event: CacheEvent): void {
    this.#events.push(event);
    this.#bytes += event.bytes;
    while (this.#events.length - this.#head > this.#maxEvents || this.#bytes > this.#maxBytes) {
      if (!this.#dropOldest()) break;
      this.#ahead += 1;
    }
    this.#budget.came(this, event.bytes);
  }

  #dropOldest(): boolean {
    const oldest = this.#events[this.#head];
    if (oldest === undefined) return false;
    this.#since = oldest.revision;
    this.#bytes -= oldest.bytes;
    this.#events[this.#head] = undefined;
    this.#head += 1;
    this.#budget.went(1, oldest.bytes);
    if (this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    return true;
  }

  /**
   * Called by the shared budget to evict the oldest event of its list. If this window has evicted that event before,
   * only `#ahead` changes.
   */
  evictOldest(): void {
    if (!this.takeBack()) this.#dropOldest();
  }

  /**
   * Subtracts one from the number of events that the window evicted before the shared budget did. Returns false if the
   * number is 0.
   */
  takeBack(): boolean {
    if (this.#ahead === 0) return false;
    this.#ahead -= 1;
    return true;
  }

  /** Events after `revision`. Undefined if some of them have been evicted. */
  after(revision: number): CacheEvent[] | undefined {
    if (revision < this.#since) return undefined;
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low) as CacheEvent[];
  }

  reset(since: number): void {
    const held = this.#events.length - this.#head;
    this.#ahead += held;
    this.#budget.went(held, this.#bytes);
    this.#events = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#since = since;
  }
}
