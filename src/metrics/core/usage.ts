/** Computes the CPU rate and the memory usage from two readings. Source: sigs.k8s.io/metrics-server/pkg/storage. */
import type { Reading } from './exposition.ts';

export interface ResourceUsage {
  readonly atMs: number;
  readonly windowMs: number;
  readonly cpuNanoCores: number;
  readonly memoryBytes: number;
}

/** Minimum time between the readings. Over a shorter time, the rate would be too inaccurate. */
const MIN_WINDOW_MS = 500;

/**
 * Usage at the latest reading; undefined if no rate can be computed. If the counter was reset since the previous
 * reading, the rate is computed since the start of the container.
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

/** Formats a duration as Go does, with milliseconds as fraction. */
export const windowText = (ms: number): string => `${(ms / 1000).toFixed(3).replace(/\.?0+$/, '')}s`;
