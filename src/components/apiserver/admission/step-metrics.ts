/** How long admission takes as a whole, changing and judging. Source: k8s.io/apiserver/pkg/admission/metrics (WithStepMetrics). */
import { Histogram } from '../../../base/histogram.ts';
import { histogramText, type Metrics } from '../metrics.ts';
import type { Admission, AdmissionRequest, AdmissionStep } from './index.ts';

/** In seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const NAME = 'apiserver_admission_step_admission_duration_seconds';

/** `admission`, with its figures among `metrics`. */
export function measured(admission: Admission, metrics: Metrics, nowMs: () => number): Admission {
  /** There are no more than operations, steps and outcomes. */
  const figures = new Map<string, Histogram>();
  const observe = (type: AdmissionStep, operation: string, rejected: boolean, beganMs: number): void => {
    const labels = `operation="${operation}",rejected="${rejected}",type="${type}"`;
    let histogram = figures.get(labels);
    if (histogram === undefined) {
      histogram = new Histogram(BUCKETS);
      figures.set(labels, histogram);
    }
    histogram.observe((nowMs() - beganMs) / 1000);
  };
  const timed = (
    type: AdmissionStep,
    request: AdmissionRequest,
    step: (request: AdmissionRequest) => void | Promise<void>,
  ): void | Promise<void> => {
    const beganMs = nowMs();
    const failed = (error: unknown): never => {
      observe(type, request.operation, true, beganMs);
      throw error;
    };
    let pending: void | Promise<void>;
    try {
      pending = step(request);
    } catch (error) {
      return failed(error);
    }
    if (pending !== undefined) return pending.then(() => observe(type, request.operation, false, beganMs), failed);
    observe(type, request.operation, false, beganMs);
  };
  metrics.addGauge(() =>
    histogramText(
      NAME,
      'Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).',
      figures,
    ),
  );
  return {
    mutate: (request) => timed('admit', request, admission.mutate),
    validate: (request) => timed('validate', request, admission.validate),
  };
}
