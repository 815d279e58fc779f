/** Response of `/metrics/history`, in pieces, so that a large one does not occupy the process. */
import type { NodeName } from '../../../base/brand.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { bucketsOf, downsample, type Window } from './downsample.ts';
import { type HistoryQuery, HistoryQueryError } from './query.ts';
import type { Series } from './series.ts';

/**
 * Maximum number of values in a response: series × metrics × buckets. Each value is two numbers, average and maximum.
 */
export const MAX_VALUES = 60_000;
const MAX_LISTED = 4_000;

/** Throws HistoryQueryError if the response would be too large. */
export function* historyAnswer(
  query: HistoryQuery,
  nodeName: NodeName,
  all: Iterable<Series>,
  window: Window,
): Generator<string> {
  const found = [...all].filter((series) => matches(series, query)).sort(byName);
  const buckets = bucketsOf(query.fromMs, query.toMs, query.points);
  const values = found.length * query.metrics.length * buckets.count;
  if (values > MAX_VALUES || found.length > MAX_LISTED)
    throw new HistoryQueryError(
      `points: ${found.length} series with ${query.metrics.length} metrics and ${buckets.count} points each exceed ` +
        `${MAX_VALUES} values; reduce points, or name a pod, a namespace or fewer metrics`,
    );
  const head = {
    kind: 'UsageHistory',
    apiVersion: 'hyperedge.dev/v1',
    node: nodeName,
    scope: query.scope,
    from: timestamp(buckets.fromMs),
    to: timestamp(buckets.fromMs + buckets.count * buckets.stepMs),
    stepSeconds: buckets.stepMs / 1_000,
    points: buckets.count,
  };
  yield `${JSON.stringify(head).slice(0, -1)},"series":[`;
  let isFirst = true;
  for (const series of found) {
    yield (isFirst ? '' : ',') + seriesText(series, query, buckets, window);
    isFirst = false;
  }
  yield ']}\n';
}

function seriesText(
  series: Series,
  query: HistoryQuery,
  buckets: ReturnType<typeof bucketsOf>,
  window: Window,
): string {
  const { scope, namespace, name, container } = series.identity;
  const names =
    scope === 'node'
      ? {}
      : scope === 'slice'
        ? { slice: name }
        : { namespace, pod: name, ...(scope === 'container' ? { container } : {}) };
  const metrics = query.metrics.map((spec) => {
    const { average, max } = downsample(series, series.metrics.indexOf(spec), buckets, window);
    const list = (values: Float64Array): string => Array.from(values, numberText).join(',');
    return `${JSON.stringify(spec.name)}:{"unit":"${spec.unit}","average":[${list(average)}],"max":[${list(max)}]}`;
  });
  return `${JSON.stringify(names).slice(0, -1)}${scope === 'node' ? '' : ','}"metrics":{${metrics.join(',')}}}`;
}

function matches({ identity }: Series, { scope, namespace, name, container }: HistoryQuery): boolean {
  return (
    identity.scope === scope &&
    (namespace === undefined || identity.namespace === namespace) &&
    (name === undefined || identity.name === name) &&
    (container === undefined || identity.container === container)
  );
}

const textOf = ({ identity }: Series): string => `${identity.namespace}/${identity.name}/${identity.container}`;
const byName = (left: Series, right: Series): number => (textOf(left) < textOf(right) ? -1 : 1);

/** Samples are exact to about a percent; five digits are enough. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return 'null';
  const rounded = Math.abs(value) >= 10_000 ? Math.round(value) : Number(value.toPrecision(5));
  return String(rounded);
}
