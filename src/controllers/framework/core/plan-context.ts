/**
 * Inputs of a planner besides its snapshot. Time and randomness are arguments, so the same input gives the same plan.
 */
export interface PlanContext {
  readonly nowMs: number;
  /** Uniform in [0, 1). */
  random(): number;
}

/** Last time that RFC 3339 can express. Durations from specs may lead beyond it. */
const LAST_MS = Date.parse('9999-12-31T23:59:59Z');

/** Formats a time as `metav1.Time` does: RFC 3339 with whole seconds. */
export function timestamp(nowMs: number): string {
  return new Date(Math.floor(Math.min(nowMs, LAST_MS) / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}

/** Milliseconds of an API timestamp; `fallback` if it is absent or invalid. */
export function timeMs(time: string | undefined, fallback = 0): number {
  if (time === undefined) return fallback;
  const parsed = Date.parse(time);
  return Number.isNaN(parsed) ? fallback : parsed;
}

/** An event to record about the planned object. */
export interface PlannedEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}
