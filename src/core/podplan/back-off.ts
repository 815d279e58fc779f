/**
 * Back-off of restarts and of image pulls, as values. The first retry is immediate, the next waits 10 s, then twice as
 * long each time up to 300 s; twice the longest wait without trouble forgets it. Source: client-go util/flowcontrol
 * Backoff as kuberuntime's doBackOff uses it.
 */
import type { Pod } from 'kubernetes-types/core/v1';

export interface BackOffEntry {
  readonly delayMs: number;
  /** When the entry was last advanced. */
  readonly sinceMs: number;
}

export interface BackOffLimits {
  readonly initialMs: number;
  readonly maxMs: number;
}

export const BACK_OFF: BackOffLimits = { initialMs: 10_000, maxMs: 300_000 };

/**
 * For static pods that the node cannot do without, its own control plane first: minutes without an API server cost more
 * than a start every few seconds. Both values are within what upstream lets a node's owner set (KEP-4603,
 * crashLoopBackOff.maxContainerRestartPeriod).
 */
export const CRITICAL_BACK_OFF: BackOffLimits = { initialMs: 1_000, maxMs: 10_000 };

const CONFIG_SOURCE = 'kubernetes.io/config.source';

/** How long this pod's containers wait between restarts. */
export function restartLimits(pod: Pod): BackOffLimits {
  const source = pod.metadata?.annotations?.[CONFIG_SOURCE];
  const fromManifest = source !== undefined && source !== 'api';
  return fromManifest && pod.spec?.priorityClassName === 'system-node-critical' ? CRITICAL_BACK_OFF : BACK_OFF;
}

const forgotten = (entry: BackOffEntry, eventMs: number, { maxMs }: BackOffLimits): boolean =>
  eventMs - entry.sinceMs > 2 * maxMs;

/** Until when to wait, counted from `eventMs` (the end of the last run); undefined when the next try is due. */
export function backOffUntil(
  entry: BackOffEntry | undefined,
  eventMs: number,
  nowMs: number,
  limits: BackOffLimits,
): number | undefined {
  // The clock was set back: how long ago the event was is not known.
  if (entry === undefined || nowMs < eventMs || forgotten(entry, eventMs, limits)) return undefined;
  const until = eventMs + entry.delayMs;
  return nowMs < until ? until : undefined;
}

/** The entry after one more try. */
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

/** A duration as Go prints it: `10s`, `2m40s`, `5m0s`. */
export function goSeconds(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}
