/** A histogram as Prometheus defines it. */
export class Histogram {
  /** Upper bounds of the buckets, ascending. */
  readonly #bounds: readonly number[];
  readonly #counts: Float64Array;
  sum = 0;
  count = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at += 1;
    this.#counts[at] = (this.#counts[at] as number) + 1;
    this.sum += value;
    this.count += 1;
  }

  /** Cumulative counts by upper bound. The last bound is "+Inf". */
  cumulative(): ReadonlyArray<readonly [le: string, count: number]> {
    let total = 0;
    const bounds = this.#bounds;
    return Array.from(this.#counts, (count, index) => {
      total += count;
      return [index < bounds.length ? written(bounds[index] as number) : '+Inf', total] as const;
    });
  }
}

/** A bound in the format of Prometheus, whose exponents have at least two digits. */
const written = (bound: number): string => String(bound).replace(/e-(\d)$/, 'e-0$1');

/** Upper bounds of `buckets` buckets. The first bound is `first`, and each further bound is twice the previous one. */
export function doubling(first: number, buckets: number): number[] {
  return Array.from({ length: buckets }, (_, index) => Number((first * 2 ** index).toPrecision(12)));
}
