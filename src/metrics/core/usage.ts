/** CPU rate and memory usage from two readings. Source: sigs.k8s.io/metrics-server/pkg/storage. */
import type { Reading } from './exposition.ts';

export interface ResourceUsage {
  readonly atMs: number;
  readonly windowMs: number;
  readonly cpuNanoCores: number;
  readonly memoryBytes: number;
}

/** Minimum window; a rate over a shorter one would be noise. */
const MIN_WINDOW_MS = 500;

/**
 * Undefined if no rate can be computed. A counter that was reset since the earlier reading is measured from its start.
 */
export function usageOf(previous: Reading | undefined, latest: Reading): ResourceUsage | undefined {
  const restarted =
    previous !== undefined && (latest.startedAtMs > previous.atMs || latest.cpuSeconds < previous.cpuSeconds);
  const from =
    previous !== undefined && !restarted
      ? previous
      : latest.startedAtMs > 0
        ? { atMs: latest.startedAtMs, cpuSeconds: 0 }
        : undefined;
  if (from === undefined) return undefined;
  const windowMs = latest.atMs - from.atMs;
  if (windowMs < MIN_WINDOW_MS) return undefined;
  return {
    atMs: latest.atMs,
    windowMs,
    cpuNanoCores: Math.round(((latest.cpuSeconds - from.cpuSeconds) * 1e12) / windowMs),
    memoryBytes: latest.memoryBytes,
  };
}

/** Formats quantities as metrics-server does. */
export function usageQuantities({ cpuNanoCores, memoryBytes }: ResourceUsage): { cpu: string; memory: string } {
  return { cpu: `${cpuNanoCores}n`, memory: `${Math.floor(memoryBytes / 1024)}Ki` };
}

/** Go's duration format with milliseconds. */
export const windowText = (ms: number): string => `${(ms / 1000).toFixed(3).replace(/\.?0+$/, '')}s`;
