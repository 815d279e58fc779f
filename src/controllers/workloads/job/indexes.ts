/**
 * Set of completion indexes as intervals, such as `1,3-5,7` in a job's status. Source: upstream's
 * job/indexed_job_utils.go.
 */
type Interval = readonly [from: number, to: number];

export class Indexes {
  static readonly none = new Indexes([]);

  /** Intervals in ascending order, neither overlapping nor adjacent. */
  readonly intervals: readonly Interval[];
  readonly total: number;

  private constructor(intervals: readonly Interval[]) {
    this.intervals = intervals;
    this.total = intervals.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  }

  /** Parses a list such as `1,3-5,7`. Invalid parts and indexes that are not below `completions` are dropped. */
  static parse(text: string | undefined, completions: number): Indexes {
    const intervals: Interval[] = [];
    for (const part of (text ?? '').split(',')) {
      const match = /^(\d{1,10})(?:-(\d{1,10}))?$/.exec(part);
      const from = Number(match?.[1] ?? Number.NaN);
      const to = Math.min(Number(match?.[2] ?? match?.[1] ?? Number.NaN), completions - 1);
      if (from <= to) intervals.push([from, to]);
    }
    return new Indexes(merged(intervals));
  }

  static of(indexes: Iterable<number>): Indexes {
    return new Indexes(merged([...indexes].map((index): Interval => [index, index])));
  }

  has(index: number): boolean {
    let low = 0;
    let high = this.intervals.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [from, to] = this.intervals[middle] ?? [0, -1];
      if (index < from) high = middle - 1;
      else if (index > to) low = middle + 1;
      else return true;
    }
    return false;
  }

  union(other: Indexes): Indexes {
    if (other.total === 0) return this;
    return new Indexes(merged([...this.intervals, ...other.intervals]));
  }

  /** Number of indexes that both sets contain. */
  overlap(other: Indexes): number {
    let count = 0;
    let at = 0;
    for (const [from, to] of this.intervals) {
      while ((other.intervals[at]?.[1] ?? Number.POSITIVE_INFINITY) < from) at++;
      for (let each = at; each < other.intervals.length; each++) {
        const [start, end] = other.intervals[each] ?? [0, -1];
        if (start > to) break;
        count += Math.min(to, end) - Math.max(from, start) + 1;
      }
    }
    return count;
  }

  /** The indexes below `completions` that are not in the set, ascending. A generator, because there can be billions. */
  *missing(completions: number): Generator<number> {
    let next = 0;
    for (const [from, to] of [...this.intervals, [completions, completions] as const]) {
      for (; next < Math.min(from, completions); next++) yield next;
      next = to + 1;
    }
  }

  toString(): string {
    return this.intervals
      .map(([from, to]) => (from === to ? `${from}` : to === from + 1 ? `${from},${to}` : `${from}-${to}`))
      .join(',');
  }
}

function merged(intervals: readonly Interval[]): Interval[] {
  const result: [number, number][] = [];
  for (const [from, to] of intervals.toSorted((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last !== undefined && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else result.push([from, to]);
  }
  return result;
}
