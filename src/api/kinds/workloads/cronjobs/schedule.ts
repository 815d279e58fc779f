/**
 * Validation of cron schedules: five fields or a name such as `@daily`. The errors have the wording of upstream's
 * library. Source: github.com/robfig/cron/v3 ParseStandard.
 */
interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];
const DESCRIPTORS = new Set(['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']);
const EVERY = '@every ';
const DURATION = /^[+-]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/;

/** Longer schedules are rejected. A list of every value of all fields has 400 characters. */
const MAX_LENGTH = 4_096;

/** Error text for an invalid schedule, otherwise undefined. */
export function scheduleError(schedule: string): string | undefined {
  if (schedule.length > MAX_LENGTH) return `a schedule has at most ${MAX_LENGTH} characters`;
  if (schedule.startsWith('@')) {
    if (DESCRIPTORS.has(schedule)) return undefined;
    if (schedule.startsWith(EVERY)) {
      const text = schedule.slice(EVERY.length);
      return DURATION.test(text)
        ? undefined
        : `failed to parse duration ${schedule}: time: invalid duration ${JSON.stringify(text)}`;
    }
    return `unrecognized descriptor: ${schedule}`;
  }
  const fields = schedule.split(/\s+/).filter((each) => each !== '');
  if (fields.length !== FIELDS.length) {
    return `expected exactly ${FIELDS.length} fields, found ${fields.length}: [${fields.join(' ')}]`;
  }
  for (const [index, field] of fields.entries()) {
    const bounds = FIELDS[index];
    if (bounds === undefined) continue;
    for (const part of field.split(',').filter((each) => each !== '')) {
      const error = rangeError(part, bounds);
      if (error !== undefined) return error;
    }
  }
  return undefined;
}

/** Checks `*`, `?`, `n` or `n-m`, each optionally followed by `/step`. */
function rangeError(text: string, bounds: Bounds): string | undefined {
  const [range = '', step, ...tooMany] = text.split('/');
  const [low = '', high, ...more] = range.split('-');
  let start = bounds.min;
  let end = bounds.max;
  if (low !== '*' && low !== '?') {
    const from = numberOf(low, bounds);
    if (typeof from === 'string') return from;
    start = from;
    end = from;
    if (high !== undefined) {
      if (more.length > 0) return `too many hyphens: ${text}`;
      const to = numberOf(high, bounds);
      if (typeof to === 'string') return to;
      end = to;
    }
  }
  let every = 1;
  if (step !== undefined) {
    if (tooMany.length > 0) return `too many slashes: ${text}`;
    const number = numberOf(step, { min: 0, max: 0 });
    if (typeof number === 'string') return number;
    every = number;
    if (high === undefined && low !== '*' && low !== '?') end = bounds.max;
  }
  if (start < bounds.min) return `beginning of range (${start}) below minimum (${bounds.min}): ${text}`;
  if (end > bounds.max) return `end of range (${end}) above maximum (${bounds.max}): ${text}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${text}`;
  return every === 0 ? `step of range should be a positive number: ${text}` : undefined;
}

function numberOf(text: string, bounds: Bounds): number | string {
  const place = bounds.names?.indexOf(text.toLowerCase()) ?? -1;
  if (place >= 0) return place + bounds.min;
  if (/^[+]?\d{1,9}$/.test(text)) return Number(text);
  if (/^-\d{1,9}$/.test(text)) return `negative number (${text}) not allowed: ${text}`;
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
}
