/**
 * Samples of this host's metrics, kept in memory as long as the rules need them. Times are monotonic milliseconds, so
 * that a change of the clock neither fires nor resolves an alert.
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
  /** The latest scrape of the target did not contain the series. */
  isStale: boolean;
}

export class SampleStore {
  /** Longest range by metric; 0 for metrics that only instant selectors use. */
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

  /** Number of series that were not stored because of the limit, in the latest scrapes. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#count;
  }

  isWanted(metric: string): boolean {
    return this.#rangesMs.has(metric);
  }

  /** Stores a scrape of `target`. An empty list is a failed scrape: all series of the target become stale. */
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

  /** Points of the half-open range (`nowMs` - `rangeMs`, `nowMs`], as in Prometheus 3. */
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
        // The latest point of a live series is kept for instant selectors.
        const drop = old < 0 ? points.length - (isStale ? 0 : 1) : old;
        points.splice(0, drop);
        if (points.length > 0) continue;
        series.delete(key);
        this.#count -= 1;
      }
    }
  }
}

/** Identity of a set of labels. */
export function keyOf(labels: Labels): string {
  return JSON.stringify([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function testOf({ label, operator, value }: Matcher): (labels: Labels) => boolean {
  // Patterns are those of the shipped rules.
  const pattern = operator.endsWith('~') ? new RegExp(`^(?:${value})$`, 's') : undefined;
  const matches = (text: string): boolean => (pattern === undefined ? text === value : pattern.test(text));
  const wanted = !operator.startsWith('!');
  // An absent label equals an empty one.
  return (labels) => matches(labels.get(label) ?? '') === wanted;
}
