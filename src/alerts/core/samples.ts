/**
 * Samples of this host's metrics, which are kept in memory as long as the rules need them. Times are monotonic
 * milliseconds, so that changing the clock neither fires nor resolves an alert.
 */
import type { Expression, Matcher } from './expression.ts';
import { selectorsOf } from './expression.ts';

export type Labels = ReadonlyMap<string, string>;

export interface Reading {
  readonly metric: string;
  readonly labels: Labels;
  readonly value: number;
}

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

export interface Series {
  readonly labels: Labels;
  readonly points: readonly Point[];
}

interface Kept {
  readonly labels: Labels;
  readonly target: string;
  readonly points: Point[];
  /** Whether the latest scrape of the target did not contain the series. */
  isStale: boolean;
}

export class SampleStore {
  /** Longest range that a rule needs, by name of the metric. 0 if rules use only the latest value. */
  readonly #rangesMs = new Map<string, number>();
  readonly #series = new Map<string, Map<string, Kept>>();
  readonly #maxSeries: number;
  #count = 0;
  #dropped = 0;

  constructor(expressions: Iterable<Expression>, maxSeries: number) {
    this.#maxSeries = maxSeries;
    for (const { metric, rangeMs = 0 } of [...expressions].flatMap(selectorsOf))
      this.#rangesMs.set(metric, Math.max(this.#rangesMs.get(metric) ?? 0, rangeMs));
  }

  /** Number of times that a new series was not stored because of the limit. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#count;
  }

  isWanted(metric: string): boolean {
    return this.#rangesMs.has(metric);
  }

  /**
   * Stores the samples of one scrape of `target`. If `readings` is empty because a scrape failed, all series of the
   * target become stale.
   */
  record(target: string, atMs: number, readings: Iterable<Reading>): void {
    for (const series of this.#series.values())
      for (const kept of series.values()) if (kept.target === target) kept.isStale = true;
    for (const { metric, labels, value } of readings) {
      if (!this.#rangesMs.has(metric)) continue;
      const kept = this.#keep(metric, labels, target);
      if (kept === undefined || kept.points.at(-1)?.atMs === atMs) continue;
      kept.points.push({ atMs, value });
      kept.isStale = false;
    }
    this.#trim(target, atMs);
  }

  instant(metric: string, matchers: readonly Matcher[]): Series[] {
    return this.#select(metric, matchers, (kept) => (kept.isStale ? [] : kept.points.slice(-1)));
  }

  /** Points of series in the range from `nowMs` - `rangeMs` (excluded) to `nowMs` (included), as in Prometheus 3. */
  range(metric: string, matchers: readonly Matcher[], nowMs: number, rangeMs: number): Series[] {
    return this.#select(metric, matchers, ({ points }) =>
      points.filter(({ atMs }) => atMs > nowMs - rangeMs && atMs <= nowMs),
    );
  }

  #select(metric: string, matchers: readonly Matcher[], pointsOf: (kept: Kept) => readonly Point[]): Series[] {
    const tests = matchers.map(testOf);
    return [...(this.#series.get(metric)?.values() ?? [])].flatMap((kept) => {
      if (!tests.every((test) => test(kept.labels))) return [];
      const points = pointsOf(kept);
      return points.length === 0 ? [] : [{ labels: kept.labels, points }];
    });
  }

  #keep(metric: string, labels: Labels, target: string): Kept | undefined {
    const series = this.#series.get(metric) ?? new Map<string, Kept>();
    const key = keyOf(labels);
    const known = series.get(key);
    if (known !== undefined) return known;
    if (this.#count >= this.#maxSeries) {
      this.#dropped += 1;
      return undefined;
    }
    const kept: Kept = { labels, target, points: [], isStale: false };
    series.set(key, kept);
    this.#series.set(metric, series);
    this.#count += 1;
    return kept;
  }

  #trim(target: string, nowMs: number): void {
    for (const [metric, series] of this.#series) {
      const from = nowMs - (this.#rangesMs.get(metric) ?? 0);
      for (const [key, { target: owner, points, isStale }] of series) {
        if (owner !== target) continue;
        const old = points.findIndex(({ atMs }) => atMs > from);
        // The latest point of a series that is not stale is kept, because instant selectors use it.
        const drop = old < 0 ? points.length - (isStale ? 0 : 1) : old;
        points.splice(0, drop);
        if (points.length > 0) continue;
        series.delete(key);
        this.#count -= 1;
      }
    }
  }
}

/** Key that is equal for equal sets of labels. */
export function keyOf(labels: Labels): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function testOf({ label, operator, value }: Matcher): (labels: Labels) => boolean {
  // Patterns come only from the rules of this product, so they are trusted.
  const pattern = operator.endsWith('~') ? new RegExp(`^(?:${value})$`, 's') : undefined;
  const matches = (text: string): boolean => (pattern === undefined ? text === value : pattern.test(text));
  const wanted = !operator.startsWith('!');
  // As in Prometheus, a label that does not exist counts as empty.
  return (labels) => matches(labels.get(label) ?? '') === wanted;
}
