/** The subset of Prometheus' text format that the store uses. Source: Prometheus exposition formats 0.0.4. */
import type { Histogram } from '../../../base/histogram.ts';

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
    this.histograms(name, help, [[undefined, histogram]]);
  }

  histograms(name: string, help: string, series: Iterable<readonly [Labels | undefined, Histogram]>): void {
    this.#head(name, help, 'histogram');
    for (const [labels, histogram] of series) {
      for (const [le, count] of histogram.cumulative())
        this.#lines.push(`${name}_bucket${labelled({ ...labels, le })} ${count}`);
      const of = labelled(labels);
      this.#lines.push(`${name}_sum${of} ${histogram.sum}`, `${name}_count${of} ${histogram.count}`);
    }
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
