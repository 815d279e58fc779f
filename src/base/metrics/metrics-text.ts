/** Writer of Prometheus' text format. Source: Prometheus exposition formats 0.0.4. */
import type { Histogram } from './histogram.ts';

type MetricType = 'counter' | 'gauge' | 'histogram';
type Labels = Readonly<Record<string, string>>;

export interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

/** Writes metric families in the order of the calls. The head of a family must be written before its samples. */
export class MetricsText {
  readonly #lines: string[] = [];

  counter(name: string, help: string, value: number | readonly Sample[]): void {
    this.#whole(name, 'counter', help, value);
  }

  gauge(name: string, help: string, value: number | readonly Sample[]): void {
    this.#whole(name, 'gauge', help, value);
  }

  histogram(name: string, help: string, histogram: Histogram): void {
    this.histograms(name, help, [[undefined, histogram]]);
  }

  histograms(name: string, help: string, series: Iterable<readonly [Labels | undefined, Histogram]>): void {
    this.family(name, 'histogram', help);
    for (const [labels, histogram] of series) {
      for (const [le, count] of histogram.cumulative()) this.sample(`${name}_bucket`, { ...labels, le }, count);
      this.sample(`${name}_sum`, labels, histogram.sum);
      this.sample(`${name}_count`, labels, histogram.count);
    }
  }

  family(name: string, type: MetricType, help: string): void {
    this.#lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  /** @param timestampMs Time at which the value was measured, if that was before the scrape. */
  sample(name: string, labels: Labels | undefined, value: number, timestampMs?: number): void {
    const time = timestampMs === undefined ? '' : ` ${timestampMs}`;
    this.#lines.push(`${name}${labelled(labels)} ${value}${time}`);
  }

  /** The text. It is empty if there are no families; otherwise it ends with a line break. */
  toString(): string {
    return this.#lines.map((line) => `${line}\n`).join('');
  }

  #whole(name: string, type: MetricType, help: string, value: number | readonly Sample[]): void {
    this.family(name, type, help);
    if (typeof value === 'number') this.sample(name, undefined, value);
    else for (const { labels, value: each } of value) this.sample(name, labels, each);
  }
}

/** Escapes the value of a label. */
function labelValue(text: string): string {
  return text.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

function labelled(labels: Labels | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}="${labelValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
