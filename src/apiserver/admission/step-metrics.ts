/**
 * Duration of the admission steps, mutating and validating. Source: k8s.io/apiserver/pkg/admission/metrics
 * (WithStepMetrics).
 */

import { Histogram } from '../../base/metrics/histogram.ts';
import type { Admission, AdmissionRequest } from '../pipeline/admission.ts';
import { histogramText, type Metrics } from '../server/metrics.ts';
import type { AdmissionStep } from './admission.ts';

/** Upper bounds of the histogram buckets, in seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const REJECTED = { admit: 'admitRejected', validate: 'validateRejected' } as const;
const NAME = 'apiserver_admission_step_admission_duration_seconds';

/** Wraps `admission` and adds its histograms to `metrics`. */
export function withStepMetrics(admission: Admission, metrics: Metrics, nowMs: () => number): Admission {
  /** Histograms by step and operation, so that no label text is built per request. */
  const figures: Record<AdmissionStep | 'admitRejected' | 'validateRejected', Map<string, Histogram>> = {
    admit: new Map(),
    validate: new Map(),
    admitRejected: new Map(),
    validateRejected: new Map(),
  };
  const observe = (type: AdmissionStep, operation: string, outcome: 'rejected' | 'admitted', beganMs: number): void => {
    const each = figures[outcome === 'rejected' ? REJECTED[type] : type];
    let histogram = each.get(operation);
    if (histogram === undefined) {
      histogram = new Histogram(BUCKETS);
      each.set(operation, histogram);
    }
    histogram.observe((nowMs() - beganMs) / 1000);
  };
  const series = (): [string, Histogram][] =>
    (['admit', 'validate'] as const).flatMap((type) =>
      [false, true].flatMap((rejected) =>
        [...figures[rejected ? REJECTED[type] : type]].map(([operation, histogram]): [string, Histogram] => [
          `operation="${operation}",rejected="${rejected}",type="${type}"`,
          histogram,
        ]),
      ),
    );
  const timed = (
    type: AdmissionStep,
    request: AdmissionRequest,
    step: (request: AdmissionRequest) => void | Promise<void>,
  ): void | Promise<void> => {
    const beganMs = nowMs();
    const failed = (error: unknown): never => {
      observe(type, request.operation, 'rejected', beganMs);
      throw error;
    };
    let pending: void | Promise<void>;
    try {
      pending = step(request);
    } catch (error) {
      return failed(error);
    }
    if (pending !== undefined) return pending.then(() => observe(type, request.operation, 'admitted', beganMs), failed);
    observe(type, request.operation, 'admitted', beganMs);
  };
  metrics.addGauge(() =>
    histogramText(
      NAME,
      'Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).',
      series(),
    ),
  );
  return {
    mutate: (request) => timed('admit', request, admission.mutate),
    validate: (request) => timed('validate', request, admission.validate),
  };
}
