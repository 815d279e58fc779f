/**
 * A turn is the time between two polls of the connections by the event loop. A server with one thread does most of its
 * work within a turn, so seats alone would not limit much: a request that is answered at once would free its seat
 * before the next request is read. Therefore seats stay occupied until the turn ends, and in a long turn no more
 * requests of a level start once it has used its share; they wait in the level's queues, in fair order, until the next
 * turn. Requests of a level that has used little of the turn come first.
 */
import type { PriorityLevel } from './priority-level.ts';

/** Time in a turn after which levels that have used their share must wait for the next turn. */
const TURN_MS = 2;

export class Turns {
  #number = 1;
  #seats = 0;
  #startMs: number | undefined;

  /** Reports whether a request of the level may start in this turn. `seats`: sum of the nominal seats of all levels. */
  allows(level: PriorityLevel<unknown>, seats: number, nowMs: number): boolean {
    if (this.#startMs === undefined) {
      this.#startMs = nowMs;
      return true;
    }
    // Requests of levels without queues cannot wait.
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

  /** Part of its nominal seats that a level has used in this turn. */
  had(level: PriorityLevel<unknown>): number {
    return level.turn === this.#number ? level.turnSeats / Math.max(1, level.limits.nominal) : 0;
  }

  end(): void {
    this.#number += 1;
    this.#seats = 0;
    this.#startMs = undefined;
  }
}
