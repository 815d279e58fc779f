/** History of the flush times of the store's members, as lines of one plot. */
import type { Api } from '../api/api.ts';
import { type History, type HistoryMetric, readHistory, type Span } from './history.ts';

export const FLUSH_METRIC = 'storeLatency';

/** Flush times of the members by node; undefined for a node without samples. Throws only if no node responds. */
export async function readFlushTimes(
  api: Api,
  nodes: readonly string[],
  since: Span,
  signal: AbortSignal,
): Promise<History | undefined> {
  const found = await Promise.allSettled(
    nodes.map((node) => readHistory(api, node, { metrics: [FLUSH_METRIC], since }, signal)),
  );
  const failed = found.find((each) => each.status === 'rejected');
  if (failed !== undefined && found.every(({ status }) => status === 'rejected')) throw failed.reason;
  const histories = found.map((each) => (each.status === 'fulfilled' ? each.value : undefined));
  return linesOf(new Map(nodes.map((node, index) => [node, histories[index]])), FLUSH_METRIC);
}

/**
 * Combines histories into one, with a metric for each node. Times are aligned to a common grid, by less than one step.
 * A node without samples gets a line without values. Undefined if no node has samples.
 */
export function linesOf(histories: ReadonlyMap<string, History | undefined>, metric: string): History | undefined {
  const known = [...histories.values()].flatMap((history) => {
    const values = history?.metrics.get(metric);
    return history === undefined || values === undefined || history.times.length === 0 ? [] : [{ ...history, values }];
  });
  if (known.length === 0) return undefined;
  const start = Math.min(...known.map(({ times }) => times[0] ?? 0));
  const end = Math.max(...known.map(({ times }) => times.at(-1) ?? 0));
  const steps = known.flatMap(({ times: [first = 0, second] }) => (second === undefined ? [] : [second - first]));
  const step = Math.max(1, steps.length === 0 ? end - start : Math.min(...steps));
  const count = Math.round((end - start) / step) + 1;
  const moved = (history: History | undefined, values: HistoryMetric['average']): (number | null)[] => {
    const placed: (number | null)[] = Array.from({ length: count }, () => null);
    history?.times.forEach((time, index) => {
      const place = Math.round((time - start) / step);
      placed[place] = values[index] ?? placed[place] ?? null;
    });
    return placed;
  };
  const unit = known[0]?.values.unit ?? '';
  return {
    times: Array.from({ length: count }, (_, index) => start + index * step),
    metrics: new Map(
      [...histories].map(([node, history]) => {
        const { average = [], max = [] } = history?.metrics.get(metric) ?? {};
        return [node, { unit, average: moved(history, average), max: moved(history, max) }];
      }),
    ),
  };
}
