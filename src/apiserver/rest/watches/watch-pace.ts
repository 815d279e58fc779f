/**
 * Sends watch events in the order of their revisions. Events of one turn of the event loop are sent together at its
 * end, because a write costs client and server a system call, a TLS record and a turn, whether it has one event or
 * twenty. Only a watch far above the usual rate waits a few milliseconds. The watches of a connection share a queue, so
 * that a client sees the events of different kinds in the order of the changes, even while one watch is paced.
 */
import { setImmediate } from 'node:timers';
import type { Clock } from '../../../base/time/clock.ts';

/** Interval between the writes of a paced connection, in milliseconds. */
const PAUSE_MS = 5;
/** Writes of one watch without a pause: the burst and the rate per second. */
const BURST = 50;
const WRITES_PER_SECOND = 100;
/**
 * Maximum number of segments in a queue that are sent one per turn, because HTTP/2 may reorder the frames of one turn.
 * A longer queue is sent at once, so that it cannot grow.
 */
const MAX_SEGMENTS = 32;

export interface PacedWatch {
  /** Identity of the client's connection. */
  readonly connection: object;
  /** Identity of the kind. Consecutive lines of the same kind may be joined. */
  readonly source: object;
  /** Writes that the watch may make without a pause, at the time `creditedMs`. Maintained by WatchPace. */
  credits: number;
  creditedMs: number;
  put(lines: Buffer): void;
}

/** Consecutive lines of one kind, by watch. */
interface Segment {
  readonly source: object;
  readonly lines: Map<PacedWatch, Buffer[]>;
}

export class WatchPace {
  readonly #clock: Clock;
  readonly #defer: (run: () => void) => void;
  /** Unsent segments by connection, oldest first. */
  readonly #queues = new Map<object, Segment[]>();
  /** Connections to write to at the end of this turn. */
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

  /** Sends the remaining lines of one watch, without the other watches of its connection. */
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

  /** Credits of a watch now. They are negative while a watch writes faster than the rate, so that it stays paced. */
  #credits({ credits, creditedMs }: PacedWatch): number {
    const earned = ((this.#clock.monotonicMs() - creditedMs) * WRITES_PER_SECOND) / 1_000;
    return Math.max(-1, Math.min(BURST, credits + earned));
  }

  /** Joins lines into one buffer, which is reused for all watches with the same lines. */
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
