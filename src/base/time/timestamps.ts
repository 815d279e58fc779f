/**
 * Texts of times in the API's formats. Times are arguments in milliseconds since the epoch; no function reads a clock.
 * Fractions below the unit of a format are cut off. Sources: RFC 3339; metav1.Time and metav1.MicroTime of
 * k8s.io/apimachinery.
 */

/** Last time that RFC 3339 can express. A duration in a spec may lead to a later time. */
const LAST_TIME_MS = Date.parse('9999-12-31T23:59:59Z');

/** Last result of `timestamp`. It is cached, because many objects have times within the same second. */
let lastSecond = Number.NaN;
let lastText = '';

/**
 * Formats a time as `metav1.Time` does: RFC 3339 in UTC with whole seconds. A time after year 9999 becomes the last
 * time of that year.
 */
export function timestamp(ms: number): string {
  const second = Math.floor(Math.min(ms, LAST_TIME_MS) / 1000);
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastText;
}

/** Formats a time as `metav1.MicroTime` does: RFC 3339 in UTC with six digits of the second. */
export function microTimestamp(ms: number): string {
  const whole = Math.floor(ms);
  const micros = String(Math.floor((ms - whole) * 1000)).padStart(3, '0');
  return `${new Date(whole).toISOString().slice(0, 23)}${micros}Z`;
}

/** Formats the day of a time in UTC: `2026-01-31`. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Milliseconds of an API timestamp; `fallback` if it is absent or invalid. */
export function timeMs(time: string | undefined, fallback = 0): number {
  if (time === undefined) return fallback;
  const parsed = Date.parse(time);
  return Number.isNaN(parsed) ? fallback : parsed;
}
