/**
 * Times of a cron schedule. A minute is scheduled if its wall clock time in the zone matches: minutes skipped by a
 * clock change do not occur, repeated ones occur twice. The API server has validated the text
 * (`api/kinds/workloads/cronjobs/schedule.ts`). Source: github.com/robfig/cron/v3, which upstream uses.
 */
import { scheduleError } from '../../../api/kinds/workloads/cronjobs/schedule.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/**
 * Number of days to search for the next time. A schedule without a time in these days has none at all, for example 30
 * February.
 */
const HORIZON_DAYS = 5 * 366;

export interface Schedule {
  /** The first time after `ms`, in milliseconds since the epoch; undefined if there is none. */
  next(ms: number): number | undefined;
  /** Interval of an `@every` schedule. Its times are computed from the first one. */
  readonly everyMs?: number;
}

const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS_OF_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** Splits off the time zone that old objects have inside of the schedule. */
export function splitZone(text: string): { readonly zone: string | undefined; readonly schedule: string } {
  const match = /^(?:CRON_)?TZ=(\S*)\s+(.*)$/s.exec(text);
  return { zone: match?.[1], schedule: (match?.[2] ?? text).trim() };
}

/**
 * Parses a schedule. Throws an error with upstream's message if the schedule is invalid, and a RangeError if the zone
 * is unknown.
 */
export function parseSchedule(text: string, zone: string): Schedule {
  const error = scheduleError(text);
  if (error !== undefined) throw new Error(error);
  if (text.startsWith('@every ')) return everySchedule(durationMs(text.slice('@every '.length)));
  const [minutes, hours, days, months, weekdays] = (DESCRIPTORS[text] ?? text)
    .split(/\s+/)
    .filter((each) => each !== '');
  return new CronSchedule(
    {
      minutes: fieldOf(minutes, 0, 59),
      hours: fieldOf(hours, 0, 23),
      days: fieldOf(days, 1, 31),
      months: fieldOf(months, 1, 12, MONTHS),
      weekdays: fieldOf(weekdays, 0, 6, DAYS),
    },
    zoneOffsets(zone),
  );
}

/** Schedule of `@every`. Times and interval are rounded to whole seconds, as in upstream. */
function everySchedule(everyMs: number): Schedule {
  const delay = Math.max(1000, Math.floor(everyMs / 1000) * 1000);
  return { next: (ms) => Math.floor(ms / 1000) * 1000 + delay, everyMs: delay };
}

const UNITS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, m: MINUTE, h: HOUR };

function durationMs(text: string): number {
  let total = 0;
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(number) * (UNITS[unit ?? ''] ?? 0);
  }
  return text.startsWith('-') ? -total : total;
}

interface Field {
  readonly values: ReadonlySet<number>;
  /** The field is `*` or `?`. If this holds for either the day or the weekday, only the other field counts. */
  readonly any: boolean;
}

function fieldOf(text = '*', min: number, max: number, names?: readonly string[]): Field {
  const values = new Set<number>();
  let any = false;
  const numberOf = (word: string): number => {
    const place = names?.indexOf(word.toLowerCase()) ?? -1;
    return place >= 0 ? place + min : Number(word);
  };
  for (const part of text.split(',').filter((each) => each !== '')) {
    const [range = '', step] = part.split('/');
    const [low = '', high] = range.split('-');
    const isAny = low === '*' || low === '?';
    const from = isAny ? min : numberOf(low);
    const to = isAny || (step !== undefined && high === undefined) ? max : numberOf(high ?? low);
    const every = Number(step ?? 1);
    any ||= isAny && every === 1;
    for (let value = from; value <= to; value += every) values.add(value);
  }
  return { values, any };
}

type Fields = Readonly<Record<'minutes' | 'hours' | 'days' | 'months' | 'weekdays', Field>>;

class CronSchedule implements Schedule {
  readonly #fields: Fields;
  readonly #offsetMs: (ms: number) => number;

  constructor(fields: Fields, offsetMs: (ms: number) => number) {
    this.#fields = fields;
    this.#offsetMs = offsetMs;
  }

  /** Whether a month of the schedule has a day of the schedule. Checked first, because the search covers years. */
  get #hasDay(): boolean {
    const { days, months, weekdays } = this.#fields;
    if (!weekdays.any) return true;
    return [...months.values].some((month) => [...days.values].some((day) => day <= (DAYS_OF_MONTH[month - 1] ?? 0)));
  }

  next(ms: number): number | undefined {
    if (!this.#hasDay) return undefined;
    let at = Math.floor(ms / MINUTE) * MINUTE + MINUTE;
    const end = at + HORIZON_DAYS * DAY;
    while (at < end) {
      const local = new Date(at + this.#offsetMs(at));
      if (!this.#isDay(local)) at = this.#nextDay(at, local);
      else if (!this.#fields.hours.values.has(local.getUTCHours())) at += (60 - local.getUTCMinutes()) * MINUTE;
      else if (!this.#fields.minutes.values.has(local.getUTCMinutes())) at += MINUTE;
      else return at;
    }
    return undefined;
  }

  #isDay(local: Date): boolean {
    const { days, months, weekdays } = this.#fields;
    if (!months.values.has(local.getUTCMonth() + 1)) return false;
    const day = days.values.has(local.getUTCDate());
    const weekday = weekdays.values.has(local.getUTCDay());
    return days.any || weekdays.any ? day && weekday : day || weekday;
  }

  /** The first minute of the next local day, or an earlier minute if the clock was changed in between. */
  #nextDay(at: number, local: Date): number {
    const rest = DAY - (local.getTime() % DAY);
    const next = at + rest;
    const skipped = this.#offsetMs(next) - this.#offsetMs(at);
    if (skipped <= 0) return next;
    const back = next - skipped;
    const isSameDay = new Date(back + this.#offsetMs(back)).getUTCDate() === local.getUTCDate();
    return isSameDay ? next : back;
  }
}

/**
 * Returns a function that computes the zone's offset from UTC in milliseconds at a time. Throws a RangeError for an
 * unknown zone.
 */
function zoneOffsets(zone: string): (ms: number) => number {
  if (zone === 'UTC') return () => 0;
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (ms) => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(ms)) parts[type] = Number(value);
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
  };
}

/** The last scheduled time in (`fromMs`, `nowMs`], and the approximate number of scheduled times in this interval. */
export function lastTime(
  schedule: Schedule,
  fromMs: number,
  nowMs: number,
): { readonly atMs: number; readonly count: number } | undefined {
  const first = schedule.next(fromMs);
  if (first === undefined || first > nowMs) return undefined;
  const second = schedule.next(first);
  if (second === undefined || second > nowMs) return { atMs: first, count: 1 };
  const between = second - first;
  const count = Math.floor((nowMs - first) / between) + 1;
  if (schedule.everyMs !== undefined) return { atMs: first + (count - 1) * between, count };
  // Binary search, so that the cost after a long pause does not grow with the missed times. `hi` is never before the
  // last time.
  let last = second;
  for (let hi = nowMs; ; ) {
    const following = schedule.next(last);
    if (following === undefined || following > nowMs) return { atMs: last, count };
    const middle = Math.floor((following + hi) / 2);
    const later = schedule.next(middle);
    if (later !== undefined && later <= nowMs) last = later;
    else [last, hi] = [following, middle];
  }
}
