/**
 * Decisions and durations of policies. Source:
 * k8s.io/apiserver/pkg/admission/plugin/policy/{validating,mutating}/metrics.
 */
import { Histogram } from '../../../../base/metrics/histogram.ts';
import { histogramText, type Metrics } from '../../../server/metrics.ts';
import { OUT_OF_BUDGET } from '../../expressions.ts';

/** Upper bounds of the histogram buckets, in seconds. */
const BUCKETS = [5e-7, 0.001, 0.01, 0.1, 1];
/** Limit of series: users choose the names of policies. Further policies are not counted. */
const MAX_SERIES = 1024;

interface Check {
  readonly policy: string;
  readonly binding: string;
  /** Kind of the failure; undefined: the check passed. */
  readonly wrong: string | undefined;
  /** Action on the failure, for policies with validation actions. */
  readonly action?: 'allow' | 'deny' | 'audit' | 'warn';
  readonly seconds: number;
}

const TEXTS = {
  validating: [
    'Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.',
    'Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.',
  ],
  mutating: [
    'Mutation admission policy check total, labeled by policy and further identified by binding.',
    'Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.',
  ],
} as const;

export class PolicyMetrics {
  readonly #sort: keyof typeof TEXTS;
  readonly #durations = new Map<string, Histogram>();

  constructor(metrics: Metrics, sort: keyof typeof TEXTS) {
    this.#sort = sort;
    metrics.addGauge(() => this.#render());
  }

  record({ policy, binding, wrong, action, seconds }: Check): void {
    const enforced = action === undefined ? '' : `enforcement_action="${action}",`;
    const labels = `${enforced}error_type="${errorType(wrong)}",policy="${policy}",policy_binding="${binding}"`;
    let histogram = this.#durations.get(labels);
    if (histogram === undefined) {
      if (this.#durations.size >= MAX_SERIES) return;
      histogram = new Histogram(BUCKETS);
      this.#durations.set(labels, histogram);
    }
    histogram.observe(seconds);
  }

  #render(): string {
    const [counted, timed] = TEXTS[this.#sort];
    const name = `apiserver_${this.#sort}_admission_policy_check`;
    return [
      `# HELP ${name}_total ${counted}`,
      `# TYPE ${name}_total counter`,
      ...[...this.#durations].map(([labels, { count }]) => `${name}_total{${labels}} ${count}`),
      histogramText(`${name}_duration_seconds`, timed, this.#durations),
    ].join('\n');
  }
}

function errorType(wrong: string | undefined): string {
  if (wrong === undefined) return 'no_error';
  if (wrong.startsWith('compilation')) return 'compile_error';
  return wrong.startsWith(OUT_OF_BUDGET.slice(0, OUT_OF_BUDGET.indexOf(','))) ? 'out_of_budget' : 'invalid_error';
}
