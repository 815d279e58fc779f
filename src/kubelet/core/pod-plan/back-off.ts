/**
 * Back-off of restarts and image pulls, as immutable values. The first retry is immediate, the next waits 10 s, and
 * each further wait doubles up to 300 s. After twice the longest wait without a failure the back-off is reset. Source:
 * client-go util/flowcontrol Backoff as kuberuntime's doBackOff uses it.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';

export interface BackOffEntry {
  readonly delayMs: number;
  /** Time at which `advanceBackOff` last changed the delay. */
  readonly sinceMs: number;
}

export interface BackOffLimits {
  readonly initialMs: number;
  readonly maxMs: number;
}

export const BACK_OFF: BackOffLimits = { initialMs: 10_000, maxMs: 300_000 };

/**
 * Limits for critical static pods, first of all the node's control plane: minutes without an API server cost more than
 * a start every few seconds. Both values are within the limits that upstream allows (KEP-4603,
 * crashLoopBackOff.maxContainerRestartPeriod).
 */
export const CRITICAL_BACK_OFF: BackOffLimits = { initialMs: 1_000, maxMs: 10_000 };

const CONFIG_SOURCE = 'kubernetes.io/config.source';

/** Back-off limits for restarts of this pod's containers. */
export function restartLimits(pod: Pod): BackOffLimits {
  const source = pod.metadata?.annotations?.[CONFIG_SOURCE];
  const fromManifest = source !== undefined && source !== 'api';
  return fromManifest && pod.spec?.priorityClassName === 'system-node-critical' ? CRITICAL_BACK_OFF : BACK_OFF;
}

const forgotten = (entry: BackOffEntry, eventMs: number, { maxMs }: BackOffLimits): boolean =>
  eventMs - entry.sinceMs > 2 * maxMs;

/** End of the back-off, counted from `eventMs` (the end of the last run); undefined if the next attempt is due. */
export function backOffUntil(
  entry: BackOffEntry | undefined,
  eventMs: number,
  nowMs: number,
  limits: BackOffLimits,
): number | undefined {
  // If the event is in the future, the clock was set back and the age of the event is unknown: do not delay the
  // attempt.
  if (entry === undefined || nowMs < eventMs || forgotten(entry, eventMs, limits)) return undefined;
  const until = eventMs + entry.delayMs;
  return nowMs < until ? until : undefined;
}

/**
 * Entry after a further attempt: the delay doubles, or returns to the initial delay after a long time without failure.
 */
export function advanceBackOff(
  entry: BackOffEntry | undefined,
  eventMs: number,
  nowMs: number,
  limits: BackOffLimits,
): BackOffEntry {
  const delayMs =
    entry === undefined || forgotten(entry, eventMs, limits)
      ? limits.initialMs
      : Math.min(limits.maxMs, entry.delayMs * 2);
  return { delayMs, sinceMs: nowMs };
}

/** Formats a duration as Go does: `10s`, `2m40s`, `5m0s`. */
export function goSeconds(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}
