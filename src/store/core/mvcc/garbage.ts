import type { KeyHistory, Version } from './version.ts';

/** A row of the log with events that compaction discards. */
export interface Discarded {
  readonly revision: number;
  /** Keys of the discarded events; undefined if the whole row is discarded. */
  readonly keys?: readonly string[];
}

export interface CollectedGarbage {
  readonly discarded: readonly Discarded[];
  readonly done: boolean;
}

interface Entry {
  readonly revision: number;
  readonly history: KeyHistory;
}

/**
 * Candidates for compaction. Every write over an existing version and every delete is recorded in the order of
 * revisions, so compaction costs time only for what it frees and never scans the index.
 */
export class Garbage {
  #entries: Entry[] = [];
  #first = 0;
  #held: Entry[] = [];
  #heldAt = 0;
  /** Number of remaining events of each row that had more than one event. */
  readonly #several = new Map<number, number>();

  /** Records that `revision` superseded an older version of the key, or is a delete. */
  add(revision: number, history: KeyHistory): void {
    this.#entries.push({ revision, history });
  }

  /** Records that row `revision` has `events` events. */
  row(revision: number, events: number): void {
    if (events > 1) this.#several.set(revision, events);
  }

  /** Removes the records of `revision`, which is the newest revision and is rolled back. */
  takeBack(revision: number): void {
    this.#several.delete(revision);
    while (this.#entries.length > this.#first && this.#entries.at(-1)?.revision === revision) this.#entries.pop();
  }

  /**
   * Processes about `most` records of a compaction at `compacted` and removes about `most` versions. `trim` removes the
   * discarded versions of one key, up to about `most`. The result is `done` if no records are left for this compaction.
   */
  collect(
    compacted: number,
    most: number,
    trim: (history: KeyHistory, compacted: number, most: number) => Version[],
  ): CollectedGarbage {
    if (compacted > this.#heldAt) {
      if (this.#held.length > 0) this.#entries = [...this.#held, ...this.#entries.slice(this.#first)];
      if (this.#held.length > 0) this.#first = 0;
      this.#held = [];
      this.#heldAt = compacted;
    }
    const whole: Discarded[] = [];
    const parts = new Map<number, string[]>();
    let looked = 0;
    let found = 0;
    for (; looked < most && this.#first < this.#entries.length; looked += 1) {
      const entry = this.#entries[this.#first] as Entry;
      if (entry.revision > compacted) break;
      const trimmed = trim(entry.history, compacted, most - found);
      found += trimmed.length;
      for (const version of trimmed) {
        if (!this.#several.has(version.revision)) whole.push({ revision: version.revision });
        else {
          const keys = parts.get(version.revision);
          if (keys === undefined) parts.set(version.revision, [version.key]);
          else keys.push(version.key);
        }
      }
      // The key may have more versions to remove, so its record stays.
      if (found >= most) break;
      this.#first += 1;
      // A delete at the compaction revision itself stays until the next compaction.
      if (entry.revision === compacted) this.#held.push(entry);
    }
    if (this.#first > 1024 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
    for (const [revision, keys] of parts) {
      const left = (this.#several.get(revision) ?? 0) - keys.length;
      if (left > 0) this.#several.set(revision, left);
      else this.#several.delete(revision);
      whole.push(left > 0 ? { revision, keys } : { revision });
    }
    return { discarded: whole, done: looked < most && found < most };
  }
}
