/** Average and maximum of a series in buckets of equal length. */
import { LEVELS, type LevelIndex } from './levels.ts';
import type { Series } from './series.ts';
import type { Segment } from './timeline.ts';

export interface Buckets {
  /** Start of the first bucket in wall-clock time, a whole multiple of `stepMs`. */
  readonly fromMs: number;
  readonly stepMs: number;
  readonly count: number;
}

export interface Values {
  /** NaN for a bucket without samples. */
  readonly average: Float64Array;
  readonly max: Float64Array;
}

/** Parts of the timeline for which each level has samples. */
export interface Window {
  readonly nowMs: number;
  /**
   * Start of this run of the process. Finer levels have no earlier samples, because only the level with the longest
   * retention is saved.
   */
  readonly runStartMs: number;
  /** Returns the time before which all slots of the level are complete. */
  completeUntil(level: LevelIndex): number;
  readonly segments: readonly Segment[];
}

/** Buckets that cover a range: about `points` buckets, none of them shorter than the finest sampling interval. */
export function bucketsOf(fromMs: number, toMs: number, points: number): Buckets {
  const raw = Math.ceil((toMs - fromMs) / points);
  const finest = LEVELS[0].stepMs;
  const stepMs = Math.max(finest, Math.ceil(raw / finest) * finest);
  const start = Math.floor(fromMs / stepMs) * stepMs;
  return { fromMs: start, stepMs, count: Math.max(1, Math.ceil((toMs - start) / stepMs)) };
}

/** Part of the timeline that is read from one level. */
interface Stretch {
  readonly level: LevelIndex;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Divides the timeline into stretches and selects the level to read for each. The preferred level is the coarsest one
 * whose step is at most `stepMs`. Times that have expired in this level are read from coarser levels. The latest times,
 * whose slots are not complete in this level, are read from finer levels.
 */
function stretchesOf(window: Window, stepMs: number): readonly Stretch[] {
  const wanted: LevelIndex = stepMs >= LEVELS[2].stepMs ? 2 : stepMs >= LEVELS[1].stepMs ? 1 : 0;
  const firstOf = (level: LevelIndex): number =>
    Math.max(level === 2 ? 0 : window.runStartMs, window.nowMs - LEVELS[level].retentionMs);
  const stretches: Stretch[] = [];
  const until = (level: LevelIndex): number => (level === 0 ? window.nowMs + 1 : window.completeUntil(level));
  let toMs = until(wanted);
  for (let level: number = wanted; level <= 2; level++) {
    const fromMs = Math.min(toMs, firstOf(level as LevelIndex));
    stretches.push({ level: level as LevelIndex, fromMs, toMs });
    toMs = fromMs;
  }
  let fromMs = until(wanted);
  for (let level: number = wanted - 1; level >= 0; level--) {
    const end = until(level as LevelIndex);
    const from = Math.max(fromMs, firstOf(level as LevelIndex));
    if (end > from) stretches.push({ level: level as LevelIndex, fromMs: from, toMs: end });
    fromMs = Math.max(fromMs, end);
  }
  return stretches;
}

export function downsample(series: Series, metric: number, buckets: Buckets, window: Window): Values {
  const sum = new Float64Array(buckets.count);
  const weight = new Float64Array(buckets.count);
  const max = new Float64Array(buckets.count).fill(Number.NaN);
  const peakColumn = series.peakColumn(metric);
  const endMs = buckets.fromMs + buckets.count * buckets.stepMs;
  for (const { level, ...stretch } of stretchesOf(window, buckets.stepMs)) {
    const { stepMs } = LEVELS[level];
    window.segments.forEach(({ fromMs: segmentMs, offsetMs }, at) => {
      const nextMs = window.segments[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY;
      const fromMs = Math.max(stretch.fromMs, segmentMs - stepMs + 1, buckets.fromMs - offsetMs - stepMs + 1, 0);
      const toMs = Math.min(stretch.toMs, nextMs, endMs - offsetMs);
      for (let slot = Math.ceil(fromMs / stepMs); slot * stepMs < toMs; slot++) {
        const value = series.read(metric, level, slot);
        if (Number.isNaN(value)) continue;
        const peak = level === 0 || peakColumn < 0 ? value : series.read(peakColumn, level, slot);
        const startMs = slot * stepMs + offsetMs;
        const first = Math.max(0, Math.floor((startMs - buckets.fromMs) / buckets.stepMs));
        // A sample of a coarse level fills all buckets that it covers.
        const last = Math.max(first, Math.ceil((startMs + stepMs - buckets.fromMs) / buckets.stepMs) - 1);
        for (let bucket = first; bucket <= last && bucket < buckets.count; bucket++) {
          const covered =
            Math.min(startMs + stepMs, buckets.fromMs + (bucket + 1) * buckets.stepMs) -
            Math.max(startMs, buckets.fromMs + bucket * buckets.stepMs);
          if (covered <= 0) continue;
          sum[bucket] = (sum[bucket] ?? 0) + value * covered;
          weight[bucket] = (weight[bucket] ?? 0) + covered;
          const known = max[bucket] ?? Number.NaN;
          const highest = Number.isNaN(peak) ? value : Math.max(value, peak);
          max[bucket] = Number.isNaN(known) ? highest : Math.max(known, highest);
        }
      }
    });
  }
  const average = sum.map((total, bucket) => {
    const parts = weight[bucket] ?? 0;
    return parts === 0 ? Number.NaN : total / parts;
  });
  return { average, max };
}
