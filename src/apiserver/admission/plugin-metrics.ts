/**
 * Duration of each plug-in, mutating and validating. Source: k8s.io/apiserver/pkg/admission/metrics
 * (WithControllerMetrics).
 */

import { Histogram } from '../../base/metrics/histogram.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import { histogramText, type Metrics } from '../server/metrics.ts';
import type { AdmissionPlugin, AdmissionStep, PluginTimes } from './admission.ts';

/** Upper bounds of the histogram buckets, in seconds. */
const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];

type Figures = Partial<Record<AdmissionRequest['operation'], Histogram>>;
type PluginFigures = Readonly<Record<AdmissionStep | 'admitRejected' | 'validateRejected', Figures>>;
const REJECTED = { admit: 'admitRejected', validate: 'validateRejected' } as const;

/**
 * Adds the histograms to `metrics`. `took` runs for every plug-in of every write, so it finds a histogram without
 * building a label text.
 */
export function pluginTimes(metrics: Metrics, nowMs: () => number): PluginTimes {
  const figures = new Map<AdmissionPlugin, PluginFigures>();
  metrics.addGauge(() =>
    histogramText(
      'apiserver_admission_controller_admission_duration_seconds',
      'Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).',
      [...figures].flatMap(([{ name }, each]) => seriesOf(name, each)),
    ),
  );
  return {
    nowMs,
    took: (plugin, step, { operation }, outcome, sinceMs) => {
      const now = nowMs();
      let each = figures.get(plugin);
      if (each === undefined) {
        each = { admit: {}, validate: {}, admitRejected: {}, validateRejected: {} };
        figures.set(plugin, each);
      }
      const steps = each[outcome === 'rejected' ? REJECTED[step] : step];
      steps[operation] ??= new Histogram(BUCKETS);
      steps[operation].observe((now - sinceMs) / 1000);
      return now;
    },
  };
}

function seriesOf(name: string, figures: PluginFigures): [string, Histogram][] {
  const series: [string, Histogram][] = [];
  for (const type of ['admit', 'validate'] as const)
    for (const rejected of [false, true])
      for (const [operation, histogram] of Object.entries(figures[rejected ? REJECTED[type] : type]))
        series.push([`name="${name}",operation="${operation}",rejected="${rejected}",type="${type}"`, histogram]);
  return series;
}
