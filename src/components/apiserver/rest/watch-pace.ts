/**
 * Sends the events of watches in the order of their revisions. Lines that one turn of the event loop produces are sent
 * together at its end. Only a watch far above the usual rate waits a few milliseconds: a write costs both ends a system
 * call, a TLS record and a turn of the event loop, for one event as for twenty. The watches of a connection share one
 * queue: a client sees the events of different kinds in the order of the changes, also while one watch is paced.
 */
import { setImmediate } from 'node:timers';
import type { Clock } from '../../../base/clock.ts';

/** Interval between the writes of a paced connection. */
const PAUSE_MS = 5;
/** Writes of one watch that need no pause: so many at once, and so many a second. */
const BURST = 50;
const WRITES_PER_SECOND = 100;
/**
 * Changes of the kind that may wait for a turn of their own. HTTP/2 orders the frames of one turn by its own scheduler;
 * a longer queue is sent at once, so that it cannot grow.
 */
const MAX_SEGMENTS = 32;

export interface PacedWatch {
  /** Identity of the client's connection. */
  readonly connection: object;
  /** Identity of the kind: lines of one kind in a row may be joined. */
  readonly source: object;
  /** Writes that the watch may still make without a pause, as of `creditedMs`. Maintained by the pace. */
  credits: number;
  creditedMs: number;
  put(lines: Buffer): void;
}

/** Lines of one kind in a row, by watch. */
interface Segment {
  readonly source: object;
  readonly lines: Map<PacedWatch, Buffer[]>;
}

export class WatchPace {
  readonly #clock: Clock;
  readonly #defer: (run: () => void) => void;
  /** Unsent lines of each connection, oldest first. */
  readonly #queues = new Map<object, Segment[]>();
  /** Connections that are written to at the end of this turn. */
  #due = new Set<object>();
  /** Connections that wait for the end of the pause. */
  #paced = new Set<object>();
  #resting = false;
  #lines: readonly Buffer[] = [];
  #joined: Buffer = Buffer.alloc(0);

  constructor(clock: Clock, defer: (run: () => void) => void = (run) => void setImmediate(run)) {
    this.#clock = clock;
    this.#defer = defer;
  }

  write(watch: PacedWatch, line: Buffer): void {
    const queue = this.#queues.get(watch.connection);
    if (queue === undefined) {
      this.#queues.set(watch.connection, [{ source: watch.source, lines: new Map([[watch, [line]]]) }]);
      if (this.#credits(watch) >= 1) this.#writeSoon(watch.connection);
      else this.#writeAfterPause(watch.connection);
      return;
    }
    const last = queue.at(-1);
    if (last?.source !== watch.source) {
      queue.push({ source: watch.source, lines: new Map([[watch, [line]]]) });
      return;
    }
    const lines = last.lines.get(watch);
    if (lines === undefined) last.lines.set(watch, [line]);
    else lines.push(line);
  }

  /** Writes what the watch has not been sent yet, without the other watches of its connection. */
  finish(watch: PacedWatch): void {
    for (const { lines } of this.#queues.get(watch.connection) ?? []) {
      const held = lines.get(watch);
      lines.delete(watch);
      if (held !== undefined) watch.put(this.#join(held));
    }
  }

  #writeSoon(connection: object): void {
    if (this.#due.size === 0) this.#defer(() => this.#endTurn());
    this.#due.add(connection);
  }

  #writeAfterPause(connection: object): void {
    this.#paced.add(connection);
    if (this.#resting) return;
    this.#resting = true;
    this.#clock.setTimer(PAUSE_MS, () => {
      this.#resting = false;
      const paced = this.#paced;
      this.#paced = new Set();
      for (const each of paced) this.#send(each);
      this.#forgetJoined();
    });
  }

  #endTurn(): void {
    const due = this.#due;
    this.#due = new Set();
    for (const connection of due) this.#send(connection);
    this.#forgetJoined();
  }

  #send(connection: object): void {
    const queue = this.#queues.get(connection);
    if (queue === undefined) return;
    for (const segment of queue.splice(0, queue.length > MAX_SEGMENTS ? queue.length : 1)) this.#put(segment);
    if (queue.length === 0) this.#queues.delete(connection);
    else this.#writeSoon(connection);
  }

  #put({ lines }: Segment): void {
    for (const [watch, held] of lines) {
      watch.credits = this.#credits(watch) - 1;
      watch.creditedMs = this.#clock.monotonicMs();
      watch.put(this.#join(held));
    }
  }

  /** A paced watch makes more writes than it earns, and stays paced until its rate falls. */
  #credits({ credits, creditedMs }: PacedWatch): number {
    const earned = ((this.#clock.monotonicMs() - creditedMs) * WRITES_PER_SECOND) / 1_000;
    return Math.max(-1, Math.min(BURST, credits + earned));
  }

  /** Lines as one piece: the same piece for all watches with the same lines. */
  #join(lines: readonly Buffer[]): Buffer {
    const [first] = lines;
    if (lines.length === 1 && first !== undefined) return first;
    if (!sameLines(lines, this.#lines)) {
      this.#lines = lines;
      this.#joined = Buffer.concat(lines);
    }
    return this.#joined;
  }

  #forgetJoined(): void {
    this.#lines = [];
    this.#joined = Buffer.alloc(0);
  }
}

function sameLines(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.length === others.length && some.every((line, at) => line === others[at]);
}
