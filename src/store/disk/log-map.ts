interface Run {
  readonly index: number;
  readonly revision: number;
  count: number;
}

/**
 * Maps log indexes after the base to revisions. Revisions are nearly always consecutive in the log, so they are stored
 * as runs; each entry without a revision starts a new run.
 */
export class LogMap {
  #base: number;
  readonly #runs: Run[] = [];

  constructor(base: number) {
    this.#base = base;
  }

  get base(): number {
    return this.#base;
  }

  /** Last index that has a revision; 0 if there is none. */
  get last(): number {
    const run = this.#runs.at(-1);
    return run === undefined ? 0 : run.index + run.count - 1;
  }

  add(index: number, revision: number): void {
    const run = this.#runs.at(-1);
    if (run !== undefined && index === run.index + run.count && revision === run.revision + run.count) run.count += 1;
    else this.#runs.push({ index, revision, count: 1 });
  }

  /** First revision at or after `index`; undefined if there is none. */
  revisionFrom(index: number): number | undefined {
    const at = this.#runAt(index);
    const run = this.#runs[at];
    if (run !== undefined && index < run.index + run.count) return run.revision + Math.max(0, index - run.index);
    return this.#runs[at + 1]?.revision;
  }

  /** Removes all entries from `index` on. */
  truncate(index: number): void {
    while ((this.#runs.at(-1)?.index ?? -1) >= index) this.#runs.pop();
    const run = this.#runs.at(-1);
    if (run !== undefined) run.count = Math.min(run.count, index - run.index);
  }

  moveBase(index: number): void {
    this.#base = index;
    const at = this.#runAt(index);
    if (at > 0) this.#runs.splice(0, at);
  }

  /** Position of the last run that starts at or before `index`; -1 if there is none. */
  #runAt(index: number): number {
    let low = 0;
    let high = this.#runs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#runs[middle] as Run).index <= index) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
