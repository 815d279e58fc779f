/** Counts of observations in buckets, as Prometheus has them. */
export class Histogram {
  /** The upper bounds of the buckets, ascending. */
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

  /** How many observations were at most each bound; the last one is "+Inf". */
  cumulative(): ReadonlyArray<readonly [le: string, count: number]> {
    let total = 0;
    const bounds = this.#bounds;
    return Array.from(this.#counts, (count, index) => {
      total += count;
      return [index < bounds.length ? written(bounds[index] as number) : '+Inf', total] as const;
    });
  }
}

/** As Prometheus writes it: exponents have two digits. */
const written = (bound: number): string => String(bound).replace(/e-(\d)$/, 'e-0$1');

/** `buckets` bounds that double, the first one `first`. */
export function doubling(first: number, buckets: number): number[] {
  return Array.from({ length: buckets }, (_, index) => Number((first * 2 ** index).toPrecision(12)));
}
