import type { Pressure } from './thresholds.ts';

export interface Arrival {
  readonly critical: boolean;
  readonly bestEffort: boolean;
  readonly toleratesMemoryPressure: boolean;
}

/** Whether a pod may start under these pressures. Source: pkg/kubelet/eviction/eviction_manager.go Admit. */
export function mayStart(arrival: Arrival, pressures: readonly Pressure[]): boolean {
  if (pressures.length === 0 || arrival.critical) return true;
  if (pressures.some((pressure) => pressure !== 'MemoryPressure')) return false;
  return !arrival.bestEffort || arrival.toleratesMemoryPressure;
}
