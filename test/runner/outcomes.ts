/** Results of test files, and the lines that end a run. */
import { relative } from 'node:path';
import type { Cost } from './costs.ts';

export interface FileOutcome {
  readonly file: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly durationMs: number;
  /** Name and error of each failed test. */
  readonly failures: readonly string[];
}

/** A runner of test files: one result per file, in no order. */
export type RunFiles = (paths: readonly string[], concurrency: number) => Promise<ReadonlyMap<string, FileOutcome>>;

/**
 * Maximum number of failed files that run again. With more failed files, the cause is the change and not the load of
 * the machine.
 */
const MAX_REPEATED_FILES = 8;
/**
 * A run with more flaky files fails: such tests hide defects. A run on a shared machine, whose load it does not control,
 * may allow more.
 */
const MAX_FLAKY_FILES = Number(process.env['HYPEREDGE_FLAKY_FILES'] ?? 2);
const SLOWEST_FILES = 12;

export class Results {
  readonly #root: string;
  readonly #outcomes: FileOutcome[] = [];
  readonly #failures: string[] = [];
  readonly #first: { readonly outcome: FileOutcome; readonly runFiles: RunFiles }[] = [];
  readonly #flaky = new Map<string, readonly string[]>();
  #passed = 0;
  #failed = 0;
  #skipped = 0;

  constructor(root: string) {
    this.#root = root;
  }

  addStep(name: string, ok: boolean): void {
    if (ok) this.#passed += 1;
    else {
      this.#failed += 1;
      this.#failures.push(name);
    }
  }

  /** Runs test files; `repeatFailed` runs those that fail a second time, with `repeat`. */
  async run(
    runFiles: RunFiles,
    paths: readonly string[],
    concurrency: number,
    repeat: RunFiles = runFiles,
  ): Promise<void> {
    if (paths.length === 0) return;
    for (const outcome of (await runFiles(paths, concurrency)).values())
      this.#first.push({ outcome, runFiles: repeat });
  }

  /**
   * Runs each failed file again, one at a time: time limits fail on a machine under load. Files that pass then count as
   * passed and are reported as flaky. Call it when nothing else runs.
   */
  async repeatFailed(): Promise<void> {
    const failed = this.#first.filter(({ outcome }) => outcome.failed > 0);
    for (const { outcome, runFiles } of this.#first) {
      const repeats = failed.length <= MAX_REPEATED_FILES && outcome.failed > 0;
      const last = repeats ? (await runFiles([outcome.file], 1)).get(outcome.file) : undefined;
      this.#addFile(outcome, last ?? outcome);
    }
    this.#first.length = 0;
  }

  #addFile(first: FileOutcome, last: FileOutcome): void {
    const name = relative(this.#root, first.file);
    this.#outcomes.push(last);
    this.#passed += last.passed;
    this.#failed += last.failed;
    this.#skipped += last.skipped;
    if (last.failed > 0) this.#failures.push(...last.failures.map((failure) => `${name}: ${failure}`));
    else if (first.failed > 0) this.#flaky.set(name, first.failures);
  }

  /** Slowest files, failures and totals; the last lines are `N passed, N failed[, N skipped]` and `flaky: …`. */
  lines(): string[] {
    const slowest = [...this.#outcomes].sort((left, right) => right.durationMs - left.durationMs);
    const counts = [`${this.#passed} passed`, `${this.#failed} failed`, `${this.#skipped} skipped`];
    return [
      ...slowest
        .slice(0, SLOWEST_FILES)
        .map(({ file, durationMs }) => `${(durationMs / 1000).toFixed(1)} s ${relative(this.#root, file)}`),
      ...[...this.#flaky].flatMap(([name, failures]) =>
        failures.map((failure) => `passed when it ran again: ${name}: ${failure}`),
      ),
      ...this.#failures.map((failure) => `failed: ${failure}`),
      counts.slice(0, this.#skipped === 0 ? 2 : 3).join(', '),
      ...(this.#flaky.size === 0 ? [] : [`flaky: ${[...this.#flaky.keys()].join(', ')}`]),
      ...(this.#hasTooManyFlaky ? [`${this.#flaky.size} flaky files; at most ${MAX_FLAKY_FILES} are accepted`] : []),
    ];
  }

  /** Cost of each file, by its path in the repository. */
  costs(cpuSeconds: ReadonlyMap<string, number>): Record<string, Cost> {
    return Object.fromEntries(
      this.#outcomes.map(({ file, durationMs }): [string, Cost] => {
        const cpu = cpuSeconds.get(file);
        const seconds = durationMs / 1000;
        return [relative(this.#root, file), cpu === undefined ? { seconds } : { seconds, cpuSeconds: cpu }];
      }),
    );
  }

  get ok(): boolean {
    return this.#failed === 0 && !this.#hasTooManyFlaky;
  }

  get #hasTooManyFlaky(): boolean {
    return this.#flaky.size > MAX_FLAKY_FILES;
  }
}
