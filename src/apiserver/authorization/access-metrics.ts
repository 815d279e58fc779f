/**
 * Metrics of authorizer decisions and authorization webhooks, with upstream's names. Source:
 * k8s.io/apiserver/pkg/authorization/{metrics,cel}, k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics.
 */
import { Histogram } from '../../base/metrics/histogram.ts';
import { histogramText } from '../server/metrics.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const CONDITION_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/** Counters of one authorizer. Callers keep the object, so that a request needs no lookup by text. */
export interface Decisions {
  allowed: number;
  denied: number;
}

export type Outcome = 'success' | 'timeout' | 'error';

export class AccessMetrics {
  readonly #decisions = new Map<string, Decisions>();
  readonly #evaluations = new Map<string, number>();
  readonly #durations = new Map<string, Histogram>();
  readonly #failedOpen = new Map<string, number>();
  readonly #conditionErrors = new Map<string, number>();
  readonly #exclusions = new Map<string, number>();
  readonly #conditionTimes = new Map<string, Histogram>();

  /** Counters of the authorizer of that type and name. They are kept when the authorizer is reconfigured. */
  decisionsOf(type: string, name: string): Decisions {
    const labels = `name="${name}",type="${type}"`;
    let decisions = this.#decisions.get(labels);
    if (decisions === undefined) {
      decisions = { allowed: 0, denied: 0 };
      this.#decisions.set(labels, decisions);
    }
    return decisions;
  }

  /** Records a call of a webhook. */
  webhookCalled(name: string, outcome: Outcome, seconds: number): void {
    const labels = `name="${name}",result="${outcome}"`;
    add(this.#evaluations, labels);
    observe(this.#durations, labels, SECONDS, seconds);
  }

  /** Records a failed call that counts as no opinion. */
  failedOpen(name: string, outcome: Outcome): void {
    add(this.#failedOpen, `name="${name}",result="${outcome}"`);
  }

  /** Records an evaluation of a webhook's match conditions. */
  conditions(name: string, found: 'hold' | 'exclude' | 'fail', seconds: number): void {
    const labels = `name="${name}",type="Webhook"`;
    observe(this.#conditionTimes, labels, CONDITION_SECONDS, seconds);
    if (found === 'fail') add(this.#conditionErrors, labels);
    if (found === 'exclude') add(this.#exclusions, labels);
  }

  render(): string {
    const decisions = [...this.#decisions].flatMap(([labels, { allowed, denied }]): [string, number][] => [
      ...(allowed > 0 ? [[`decision="allowed",${labels}`, allowed] as [string, number]] : []),
      ...(denied > 0 ? [[`decision="denied",${labels}`, denied] as [string, number]] : []),
    ]);
    const prefix = 'apiserver_authorization_';
    return [
      counterText(
        `${prefix}decisions_total`,
        'Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.',
        decisions,
      ),
      counterText(`${prefix}webhook_evaluations_total`, 'Round-trips to authorization webhooks.', this.#evaluations),
      histogramText(`${prefix}webhook_duration_seconds`, 'Request latency in seconds.', this.#durations),
      counterText(
        `${prefix}webhook_evaluations_fail_open_total`,
        'NoOpinion results due to webhook timeout or error.',
        this.#failedOpen,
      ),
      counterText(
        `${prefix}match_condition_evaluation_errors_total`,
        'Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.',
        this.#conditionErrors,
      ),
      counterText(
        `${prefix}match_condition_exclusions_total`,
        'Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.',
        this.#exclusions,
      ),
      histogramText(
        `${prefix}match_condition_evaluation_seconds`,
        'Authorization match condition evaluation time in seconds, split by authorizer type and name.',
        this.#conditionTimes,
      ),
    ].join('\n');
  }
}

function add(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

function observe(histograms: Map<string, Histogram>, labels: string, bounds: readonly number[], seconds: number): void {
  let histogram = histograms.get(labels);
  if (histogram === undefined) {
    histogram = new Histogram(bounds);
    histograms.set(labels, histogram);
  }
  histogram.observe(seconds);
}

function counterText(name: string, help: string, series: Iterable<readonly [string, number]>): string {
  return [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} counter`,
    ...Array.from(series, ([labels, count]) => `${name}{${labels}} ${count}`),
  ].join('\n');
}
