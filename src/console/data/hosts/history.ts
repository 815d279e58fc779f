/** Usage history of nodes and pods, from the kubelets through the node proxy. */
import { decode, list, map, nullable, number, object, text } from '../../../base/decode.ts';
import { query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { bytesText, coresText } from '../format.ts';

/** Lengths of history that can be selected. */
export const SPANS = ['1h', '24h', '7d'] as const;
export type Span = (typeof SPANS)[number];

/** One value for each time; null if there is no sample. */
export type Values = readonly (number | null)[];

export interface HistoryMetric {
  readonly unit: string;
  readonly average: Values;
  readonly max: Values;
}

export interface History {
  /** Seconds since 1970, ascending, at equal distances. */
  readonly times: readonly number[];
  readonly metrics: ReadonlyMap<string, HistoryMetric>;
  /** Sentence for the user about missing nodes; undefined if the values are complete. */
  readonly note?: string;
}

export interface HistoryRequest {
  readonly metrics: readonly string[];
  readonly since: Span;
  /** Pod whose history is read; undefined for the history of the node itself. */
  readonly pod?: { readonly namespace: string; readonly name: string };
}

/** Title of a plot and the metrics of its lines. */
export interface PlotSpec {
  readonly title: string;
  readonly lines: readonly { readonly metric: string; readonly label: string }[];
}

const POINTS = 120;
const MAX_POINTS = 2_000;

export const NODE_PLOTS: readonly PlotSpec[] = [
  { title: 'CPU', lines: [{ metric: 'cpu', label: 'used' }] },
  { title: 'Memory', lines: [{ metric: 'memory', label: 'used' }] },
  {
    title: 'Network',
    lines: [
      { metric: 'networkReceive', label: 'received' },
      { metric: 'networkTransmit', label: 'sent' },
    ],
  },
  {
    title: 'Disk',
    lines: [
      { metric: 'diskRead', label: 'read' },
      { metric: 'diskWrite', label: 'written' },
    ],
  },
  {
    title: 'Pressure',
    lines: [
      { metric: 'pressureCpu', label: 'waits for CPU' },
      { metric: 'pressureMemory', label: 'waits for memory' },
      { metric: 'pressureIo', label: 'waits for disks' },
    ],
  },
  { title: 'Temperature', lines: [{ metric: 'temperature', label: 'hottest zone' }] },
];
/** Plots of pods and of the whole cluster. */
export const USAGE_PLOTS = NODE_PLOTS.slice(0, 2);

const VALUES = list(nullable(number));
const ANSWER = object({
  from: text,
  stepSeconds: number,
  series: list(object({ metrics: map(object({ unit: text, average: VALUES, max: VALUES })) })),
});

/** History of a node or of one of its pods; undefined if there are no samples. */
export async function readHistory(
  api: Api,
  node: string,
  { metrics, since, pod }: HistoryRequest,
  signal: AbortSignal,
): Promise<History | undefined> {
  const selection = pod === undefined ? {} : { scope: 'pod', namespace: pod.namespace, pod: pod.name };
  const parameters = query({ ...selection, metric: metrics.join(','), since, points: String(POINTS) });
  const body = await api.hostJson<unknown>(node, `/metrics/history${parameters}`, { signal });
  const answer = decode(ANSWER, body, `history of node ${node}`);
  const [series] = answer.series;
  if (series === undefined) return undefined;
  const fromSeconds = Date.parse(answer.from) / 1000;
  const count = Math.min(
    MAX_POINTS,
    Math.max(0, ...Object.values(series.metrics).map(({ average }) => average.length)),
  );
  if (!(answer.stepSeconds > 0) || Number.isNaN(fromSeconds) || count === 0) return undefined;
  return {
    times: Array.from({ length: count }, (_, index) => fromSeconds + index * answer.stepSeconds),
    metrics: new Map(Object.entries(series.metrics)),
  };
}

/**
 * Sum of the histories of several nodes, in the order of `names`. A note names the nodes whose history could not be
 * read. Throws the first error if no history was read.
 */
export function sumOfNodes(
  names: readonly string[],
  results: readonly PromiseSettledResult<History | undefined>[],
): History | undefined {
  const failed = results.find((each) => each.status === 'rejected');
  const found = results.flatMap((each) =>
    each.status === 'fulfilled' && each.value !== undefined ? [each.value] : [],
  );
  if (found.length === 0 && failed !== undefined) throw failed.reason;
  const sum = sumOf(found);
  if (sum === undefined || failed === undefined) return sum;
  const missing = names.filter((_, index) => results[index]?.status === 'rejected').join(', ');
  const note = `The usage of ${missing} is not included, because the history could not be read. The capacity is that of all nodes.`;
  return { ...sum, note };
}

/** Sums of the averages of several nodes. A time has a value if at least one node has a sample for it. */
export function sumOf(histories: readonly History[]): History | undefined {
  if (histories.length === 0) return undefined;
  const times = [...new Set(histories.flatMap((each) => each.times))].sort((a, b) => a - b);
  const places = new Map(times.map((time, index) => [time, index]));
  const sums = new Map<string, { readonly unit: string; readonly values: (number | null)[] }>();
  for (const history of histories)
    for (const [name, { unit, average }] of history.metrics) {
      const sum = sums.get(name) ?? { unit, values: times.map(() => null) };
      sums.set(name, sum);
      history.times.forEach((time, index) => {
        const value = average[index] ?? null;
        const place = places.get(time);
        if (value !== null && place !== undefined) sum.values[place] = (sum.values[place] ?? 0) + value;
      });
    }
  return {
    times,
    metrics: new Map([...sums].map(([name, { unit, values }]) => [name, { unit, average: values, max: values }])),
  };
}

/** Text of a value in the unit of its metric. */
export function valueText(value: number, unit: string): string {
  if (unit === 'cores') return coresText(value);
  if (unit === 'bytes') return bytesText(value);
  if (unit === 'bytes/s') return `${bytesText(value)}/s`;
  if (unit === 'ratio') return `${Math.round(value * 1000) / 10} %`;
  if (unit === 'seconds')
    return value < 1 ? `${Math.round(value * 100_000) / 100} ms` : `${Math.round(value * 100) / 100} s`;
  if (unit === 'celsius') return `${Math.round(value)} °C`;
  return `${Math.round(value * 1000) / 1000} ${unit}`;
}

/** Text such as `used: average 412 m, highest 3.87 cores, latest 400 m`; undefined if there are no samples. */
export function summaryOf(label: string, { unit, average, max }: HistoryMetric): string | undefined {
  const known = average.filter((value) => value !== null);
  const latest = known.at(-1);
  if (latest === undefined) return undefined;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const highest = Math.max(...known, ...max.filter((value) => value !== null));
  const parts = [`average ${valueText(mean, unit)}`, `highest ${valueText(highest, unit)}`];
  return `${label}: ${parts.join(', ')}, latest ${valueText(latest, unit)}`;
}
