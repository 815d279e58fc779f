import { assert } from '../../../base/errors.ts';
import type { TermRun } from './types.ts';

/** Terms of consecutive entries, one record per change of term. The terms stay known after the entries leave memory. */
export class TermRuns {
  #runs: TermRun[] = [];

  /** Records that entries from `index` on (up to the next recorded run) have `term`. */
  extend(index: number, term: number): void {
    const last = this.#runs.at(-1);
    if (last?.term === term) return;
    assert(last === undefined || (index > last.from && term > last.term), 'terms do not decrease along the log');
    this.#runs.push({ from: index, term });
  }

  /** The term at `index`, which must not be before the first run. */
  at(index: number): number {
    let low = 0;
    let high = this.#runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#runs[middle]?.from ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    const run = this.#runs[low];
    assert(run !== undefined && run.from <= index, `no term is known at ${index}`);
    return run.term;
  }

  /** Deletes everything from `index` on. */
  truncate(index: number): void {
    while ((this.#runs.at(-1)?.from ?? 0) >= index && this.#runs.length > 0) this.#runs.pop();
  }

  /** Deletes everything up to `index`. */
  compact(index: number): void {
    while ((this.#runs[1]?.from ?? Number.POSITIVE_INFINITY) <= index + 1) this.#runs.shift();
  }

  clear(): void {
    this.#runs = [];
  }
}
