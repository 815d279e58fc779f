/** Probe state machines: single results become the result of the probe. Source: pkg/kubelet/prober/worker.go. */
import type { Probe } from '../../../api/generated/core/v1.ts';
import { MAX_TIMER_MS } from '../../../base/time/clock.ts';

export type ProbeKind = 'liveness' | 'readiness' | 'startup';
export type ProbeOutcome = 'success' | 'failure';

export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

export interface ProbeState {
  /** Undefined until the probe has reached a threshold for the first time. */
  readonly result: ProbeOutcome | undefined;
  readonly last: ProbeOutcome | undefined;
  /** Number of consecutive results equal to `last`. */
  readonly run: number;
  /**
   * Whether probing is suspended. A failed liveness or startup probe is suspended until the container has been
   * replaced.
   */
  readonly held: boolean;
}

export function probeTiming(probe: Probe): ProbeTiming {
  return {
    initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: Math.max(1, probe.periodSeconds ?? 10) * 1000,
    timeoutMs: Math.min(Math.max(1, probe.timeoutSeconds ?? 1) * 1000, MAX_TIMER_MS),
    successThreshold: Math.max(1, probe.successThreshold ?? 1),
    failureThreshold: Math.max(1, probe.failureThreshold ?? 3),
  };
}

/** Until the first result of a probe, a container counts as alive and as not ready. */
export function initialProbeState(kind: ProbeKind): ProbeState {
  const result = kind === 'liveness' ? 'success' : kind === 'readiness' ? 'failure' : undefined;
  return { result, last: undefined, run: 0, held: false };
}

export function stepProbe(kind: ProbeKind, state: ProbeState, outcome: ProbeOutcome, timing: ProbeTiming): ProbeState {
  if (state.held) return state;
  const run = state.last === outcome ? state.run + 1 : 1;
  const threshold = outcome === 'success' ? timing.successThreshold : timing.failureThreshold;
  if (run < threshold) return { ...state, last: outcome, run };
  const held = outcome === 'failure' && kind !== 'readiness';
  return { result: outcome, last: held ? undefined : outcome, run: held ? 0 : run, held };
}
