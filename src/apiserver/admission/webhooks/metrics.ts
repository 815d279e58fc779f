/** Webhook metrics. Source: k8s.io/apiserver/pkg/admission/metrics. */
import type { Metrics } from '../../server/metrics.ts';

export type HookType = 'admit' | 'validating';

/** Limit of series: users choose the names of webhooks. Further webhooks are not counted. */
const MAX_SERIES = 1024;
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25];

interface Call {
  readonly hook: string;
  readonly type: HookType;
  readonly operation: string;
  readonly code: number;
  /** Kind of rejection; undefined if the request was not rejected. */
  readonly rejected: string | undefined;
  readonly seconds: number;
}

export class HookMetrics {
  readonly #requests = new Map<string, number>();
  readonly #rejections = new Map<string, number>();
  readonly #open = new Map<string, number>();
  readonly #durations = new Map<string, { counts: number[]; sum: number; total: number }>();

  constructor(metrics: Metrics) {
    metrics.addGauge(() => this.#render());
  }

  record({ hook, type, operation, code, rejected, seconds }: Call): void {
    const base = `name="${hook}",operation="${operation}"`;
    const refused = rejected !== undefined;
    count(this.#requests, `code="${code}",${base},rejected="${refused}",type="${type}"`);
    if (refused) {
      const rejectionCode = rejected === 'no_error' ? code : 0;
      count(this.#rejections, `error_type="${rejected}",${base},rejection_code="${rejectionCode}",type="${type}"`);
    }
    const labels = `${base},rejected="${refused}",type="${type}"`;
    let series = this.#durations.get(labels);
    if (series === undefined) {
      if (this.#durations.size >= MAX_SERIES) return;
      series = { counts: BUCKETS.map(() => 0), sum: 0, total: 0 };
      this.#durations.set(labels, series);
    }
    series.sum += seconds;
    series.total += 1;
    for (const [index, bound] of BUCKETS.entries()) {
      if (seconds <= bound) series.counts[index] = (series.counts[index] ?? 0) + 1;
    }
  }

  failedOpen(hook: string, type: HookType): void {
    count(this.#open, `name="${hook}",type="${type}"`);
  }

  #render(): string {
    const lines = [
      ...counter(
        'apiserver_admission_webhook_request_total',
        'Admission webhook request total, identified by name and broken out for each admission type and operation.',
        this.#requests,
      ),
      ...counter(
        'apiserver_admission_webhook_rejection_count',
        'Admission webhook rejection count, identified by name and broken out for each admission type and operation.',
        this.#rejections,
      ),
      ...counter(
        'apiserver_admission_webhook_fail_open_count',
        'Admission webhook fail open count, identified by name and broken out for each admission type.',
        this.#open,
      ),
    ];
    const name = 'apiserver_admission_webhook_admission_duration_seconds';
    lines.push(`# HELP ${name} Admission webhook latency histogram in seconds.`, `# TYPE ${name} histogram`);
    for (const [labels, { counts, sum, total }] of this.#durations) {
      for (const [index, bound] of BUCKETS.entries()) {
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${counts[index] ?? 0}`);
      }
      lines.push(`${name}_bucket{${labels},le="+Inf"} ${total}`, `${name}_sum{${labels}} ${sum}`);
      lines.push(`${name}_count{${labels}} ${total}`);
    }
    return lines.join('\n');
  }
}

function count(series: Map<string, number>, labels: string): void {
  if (series.has(labels) || series.size < MAX_SERIES) series.set(labels, (series.get(labels) ?? 0) + 1);
}

function counter(name: string, help: string, series: ReadonlyMap<string, number>): string[] {
  const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} counter`];
  for (const [labels, value] of series) lines.push(`${name}{${labels}} ${value}`);
  return lines;
}
