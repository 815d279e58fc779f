/** Prometheus' text format, as much as the store shows. Source: Prometheus exposition formats 0.0.4. */

type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** Collects families in the order in which they are written. */
export class MetricsText {
  readonly #lines: string[] = [];

  counter(name: string, help: string, value: number | readonly Sample[]): void {
    this.#family(name, help, 'counter', value);
  }

  gauge(name: string, help: string, value: number | readonly Sample[]): void {
    this.#family(name, help, 'gauge', value);
  }

  histogram(name: string, help: string, histogram: Histogram): void {
    this.#head(name, help, 'histogram');
    for (const [le, count] of histogram.cumulative()) this.#lines.push(`${name}_bucket{le="${le}"} ${count}`);
    this.#lines.push(`${name}_sum ${histogram.sum}`, `${name}_count ${histogram.count}`);
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`;
  }

  #family(name: string, help: string, type: string, value: number | readonly Sample[]): void {
    this.#head(name, help, type);
    const samples = typeof value === 'number' ? [{ value }] : value;
    for (const sample of samples) this.#lines.push(`${name}${labelled(sample.labels)} ${sample.value}`);
  }

  #head(name: string, help: string, type: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }
}

function labelled(labels: Labels | undefined): string {
  if (labels === undefined) return '';
  const escaped = (text: string): string => text.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`));
  return `{${Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',')}}`;
}

/** Counts of observations in buckets that double. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  sum = 0;
  count = 0;

  /** `buckets` of them, the first up to `first`. */
  constructor(first: number, buckets: number) {
    this.#bounds = Array.from({ length: buckets }, (_, i) => Number((first * 2 ** i).toPrecision(12)));
    this.#counts = new Array<number>(buckets + 1).fill(0);
  }

  observe(value: number): void {
    const at = this.#bounds.findIndex((bound) => value <= bound);
    const bucket = at < 0 ? this.#bounds.length : at;
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.sum += value;
    this.count += 1;
  }

  cumulative(): ReadonlyArray<readonly [le: string, count: number]> {
    let total = 0;
    return this.#counts.map((count, i) => {
      total += count;
      return [i < this.#bounds.length ? String(this.#bounds[i]) : '+Inf', total] as const;
    });
  }
}
