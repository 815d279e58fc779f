/**
 * Back-off of restarts and of image pulls, as values. The first retry is immediate, the next waits 10 s, then twice as long each time up to 300 s; ten
 * minutes without trouble forget it. Source: client-go util/flowcontrol Backoff as kuberuntime's doBackOff uses it.
 */
export interface BackOffEntry {
  readonly delayMs: number;
  /** When the entry was last advanced. */
  readonly sinceMs: number;
}

export const INITIAL_BACK_OFF_MS = 10_000;
export const MAX_BACK_OFF_MS = 300_000;

const forgotten = (entry: BackOffEntry, eventMs: number): boolean => eventMs - entry.sinceMs > 2 * MAX_BACK_OFF_MS;

/** Until when to wait, counted from `eventMs` (the end of the last run); undefined when the next try is due. */
export function backOffUntil(entry: BackOffEntry | undefined, eventMs: number, nowMs: number): number | undefined {
  if (entry === undefined || forgotten(entry, eventMs)) return undefined;
  const until = eventMs + entry.delayMs;
  return nowMs < until ? until : undefined;
}

/** The entry after one more try. */
export function advanceBackOff(entry: BackOffEntry | undefined, eventMs: number, nowMs: number): BackOffEntry {
  const delayMs =
    entry === undefined || forgotten(entry, eventMs)
      ? INITIAL_BACK_OFF_MS
      : Math.min(MAX_BACK_OFF_MS, entry.delayMs * 2);
  return { delayMs, sinceMs: nowMs };
}

/** A duration as Go prints it: `10s`, `2m40s`, `5m0s`. */
export function goSeconds(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes === 0 ? `${seconds}s` : `${minutes}m${seconds % 60}s`;
}
