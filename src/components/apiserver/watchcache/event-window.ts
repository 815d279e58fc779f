/** The recent events of one kind, from which broken watches resume. */
import type { CachedObject } from './cached-object.ts';

export type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

const PREFIX = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
} as const;
const SUFFIX = Buffer.from('}\n');

/** Frames an event as one line of a watch stream. */
export function frameEvent(type: EventType, object: Uint8Array): Buffer {
  return Buffer.concat([PREFIX[type], object, SUFFIX]);
}

export class CacheEvent {
  readonly type: EventType;
  readonly revision: number;
  /** The object now; for DELETED its last state, at the revision of the delete. */
  readonly object: CachedObject;
  readonly previous: CachedObject | undefined;
  #line: Buffer | undefined;

  constructor(type: EventType, object: CachedObject, previous: CachedObject | undefined) {
    this.type = type;
    this.object = object;
    this.previous = previous;
    this.revision = object.revision;
  }

  /** The line of a JSON watch stream: made once, whoever watches. */
  get line(): Buffer {
    this.#line ??= frameEvent(this.type, this.object.bytes);
    return this.#line;
  }

  /** Lets the line go once its watchers have had it; late resumers make it again. */
  release(): void {
    this.#line = undefined;
  }
}

/** Events of one delivery: all of one or more whole revisions, in order. */
export class EventBatch {
  readonly events: readonly CacheEvent[];
  readonly revision: number;
  #joined: Buffer | undefined;
  constructor(events: readonly CacheEvent[], revision: number) {
    this.events = events;
    this.revision = revision;
  }
  /** All lines as one buffer, shared by everybody who watches the whole kind. */
  get joined(): Buffer {
    const [first] = this.events;
    this.#joined ??=
      this.events.length === 1 && first !== undefined
        ? first.line
        : Buffer.concat(this.events.map((event) => event.line));
    return this.#joined;
  }
}

/** A ring bounded in number and in bytes; `since` is the revision after which nothing is missing. */
export class EventWindow {
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #events: CacheEvent[] = [];
  #head = 0;
  #bytes = 0;
  #since: number;

  constructor(since: number, maxEvents = 4096, maxBytes = 16 * 1024 * 1024) {
    this.#since = since;
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  get since(): number {
    return this.#since;
  }

  push(event: CacheEvent): void {
    this.#events.push(event);
    this.#bytes += event.object.bytes.length;
    while (this.#events.length - this.#head > this.#maxEvents || this.#bytes > this.#maxBytes) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined) break;
      this.#since = oldest.revision;
      this.#bytes -= oldest.object.bytes.length;
      this.#head += 1;
    }
    if (this.#head > 1024 && this.#head * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Events after `revision`, or undefined when some of them have been let go. */
  after(revision: number): CacheEvent[] | undefined {
    if (revision < this.#since) return undefined;
    let low = this.#head;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#events[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low);
  }

  reset(since: number): void {
    this.#events = [];
    this.#head = 0;
    this.#bytes = 0;
    this.#since = since;
  }
}
