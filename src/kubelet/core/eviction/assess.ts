/**
 * Derives the node's pressure conditions and the resources to reclaim from observations over time. Source:
 * pkg/kubelet/eviction/eviction_manager.go synchronize.
 */
import {
  absolute,
  type EvictionSettings,
  PRESSURE_OF,
  type Pressure,
  type Signal,
  type Threshold,
} from './thresholds.ts';

export interface Observation {
  readonly available: number;
  readonly capacity: number;
}

/** Signals without an observation are ignored. */
export type Observations = ReadonlyMap<Signal, Observation>;

/** State kept from one assessment to the next. */
export interface EvictionState {
  /** Thresholds whose grace period has passed and that have not been resolved. */
  readonly met: readonly Threshold[];
  readonly firstObservedAtMs: ReadonlyMap<Threshold, number>;
  readonly lastObservedAtMs: ReadonlyMap<Pressure, number>;
}

export interface Assessment {
  readonly state: EvictionState;
  readonly pressures: readonly Pressure[];
  /**
   * Met thresholds in the order in which they are processed, memory first. The caller stops after it has evicted one
   * pod.
   */
  readonly reclaim: readonly Threshold[];
}

export const NO_PRESSURE: EvictionState = { met: [], firstObservedAtMs: new Map(), lastObservedAtMs: new Map() };

export function assess(
  settings: EvictionSettings,
  before: EvictionState,
  observations: Observations,
  nowMs: number,
): Assessment {
  const observed = settings.thresholds.filter(
    (threshold) =>
      isMet(threshold, observations, { resolving: false }) ||
      (before.met.includes(threshold) && isMet(threshold, observations, { resolving: true })),
  );
  const firstObservedAtMs = new Map(
    observed.map((threshold) => [threshold, before.firstObservedAtMs.get(threshold) ?? nowMs]),
  );
  const lastObservedAtMs = new Map(before.lastObservedAtMs);
  for (const { signal } of observed) lastObservedAtMs.set(PRESSURE_OF[signal], nowMs);
  for (const [pressure, atMs] of lastObservedAtMs)
    if (atMs !== nowMs && nowMs - atMs >= settings.pressureTransitionMs) lastObservedAtMs.delete(pressure);
  const met = observed.filter(
    (threshold) => nowMs - (firstObservedAtMs.get(threshold) ?? nowMs) >= (threshold.gracePeriodMs ?? 0),
  );
  return {
    state: { met, firstObservedAtMs, lastObservedAtMs },
    pressures: [...lastObservedAtMs.keys()].sort(),
    reclaim: met.toSorted((left, right) => Number(isMemory(right)) - Number(isMemory(left))),
  };
}

/** Whether the threshold is hard: it evicts at once, without a grace period for pods. */
export const isHard = (threshold: Threshold): boolean => threshold.gracePeriodMs === undefined;

const isMemory = ({ signal }: Threshold): boolean => signal === 'memory.available';

/**
 * Whether every signal exceeds its threshold by a twentieth of the capacity or a quarter of the threshold, whichever is
 * larger. Returns false if there are no observations.
 */
export function isWellAboveThresholds({ thresholds }: EvictionSettings, observations: Observations): boolean {
  return (
    observations.size > 0 &&
    thresholds.every(({ signal, value }) => {
      const observation = observations.get(signal);
      if (observation === undefined) return true;
      const { available, capacity } = observation;
      const least = absolute(value, capacity);
      return available - least >= Math.max(least / 4, capacity / 20);
    })
  );
}

function isMet(
  { signal, value, minimumReclaim }: Threshold,
  observations: Observations,
  { resolving }: { readonly resolving: boolean },
): boolean {
  const observation = observations.get(signal);
  if (observation === undefined) return false;
  const { available, capacity } = observation;
  const more = resolving && minimumReclaim !== undefined ? absolute(minimumReclaim, capacity) : 0;
  return available < absolute(value, capacity) + more;
}
