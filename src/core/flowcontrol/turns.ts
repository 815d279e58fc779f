/**
 * A server with one thread does most of its work between two looks at its connections. Seats alone would mean little
 * there: a request that is answered at once would give its seat back before the next one is even read. So seats are
 * held until the *turn* ends, and a turn that has taken its time begins nothing more of a level that has had its part
 * of it; what is left waits in the level's queues, in fair order, and the server looks at its connections in between.
 * Requests of a level that has had little go ahead of all those.
 */
import type { PriorityLevel } from './priority-level.ts';

/** A turn that has lasted so long leaves the rest to the next. */
const TURN_MS = 2;

export class Turns {
  #number = 1;
  #seats = 0;
  #startMs: number | undefined;

  /** Whether something of the level may begin in this turn. `seats`: those of all levels together. */
  allows(level: PriorityLevel<unknown>, seats: number, nowMs: number): boolean {
    if (this.#startMs === undefined) {
      this.#startMs = nowMs;
      return true;
    }
    // What cannot wait is not made to.
    if (level.queues.queuing.type !== 'queue' || nowMs - this.#startMs < TURN_MS) return true;
    if (level.turn !== this.#number) return true;
    return level.turnSeats * seats < this.#seats * level.limits.nominal;
  }

  note(level: PriorityLevel<unknown>, seats: number): void {
    if (level.turn !== this.#number) {
      level.turn = this.#number;
      level.turnSeats = 0;
    }
    level.turnSeats += seats;
    this.#seats += seats;
  }

  /** The part of its entitlement that a level has had of this turn. */
  had(level: PriorityLevel<unknown>): number {
    return level.turn === this.#number ? level.turnSeats / Math.max(1, level.limits.nominal) : 0;
  }

  end(): void {
    this.#number += 1;
    this.#seats = 0;
    this.#startMs = undefined;
  }
}
