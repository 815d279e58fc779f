/** Exponential delay before a failed pod is replaced. Source: upstream's backoff_utils.go. */
import type { Pod } from '../../../api/generated/core/v1.ts';
import { finishedMs } from './pod.ts';

const INITIAL_MS = 10_000;
const MAX_MS = 10 * 60_000;

/** Failures since the last success, kept between plans. */
export interface Backoff {
  readonly failures: number;
  readonly lastFailureMs: number;
}

export const NO_BACKOFF: Backoff = { failures: 0, lastFailureMs: 0 };

/** Updates the record with newly finished pods. */
export function nextBackoff(record: Backoff, succeeded: readonly Pod[], failed: readonly Pod[]): Backoff {
  const lastSuccess = Math.max(...succeeded.map(finishedMs));
  const after = failed.map(finishedMs).filter((finished) => succeeded.length === 0 || finished > lastSuccess);
  const before = succeeded.length === 0 ? record : NO_BACKOFF;
  if (after.length === 0) return before;
  return {
    failures: before.failures + after.length,
    lastFailureMs: Math.max(before.lastFailureMs, ...after),
  };
}

/** Milliseconds until the next pod may be created. */
export function remainingMs({ failures, lastFailureMs }: Backoff, nowMs: number): number {
  if (failures <= 0) return 0;
  const delay = Math.min(MAX_MS, INITIAL_MS * 2 ** Math.min(failures - 1, 20));
  return Math.min(delay, Math.max(0, lastFailureMs + delay - nowMs));
}
