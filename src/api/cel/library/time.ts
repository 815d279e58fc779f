/** Timestamps and durations. Source: cel-spec (timestamps), Go's time.ParseDuration. */
import { BoundedMap } from '../../../base/bounded-map.ts';
import { declareFunction, type Overload } from '../functions.ts';
import { chargeCost } from '../meter.ts';
import { Duration, EvaluationError, Timestamp } from '../values.ts';

const SECOND = 1_000_000_000n;
const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3600n * SECOND,
};

/** Range of valid timestamps: from the start of the year 1 to the end of the year 9999. */
const EARLIEST = -62_135_596_800n * SECOND;
const LATEST = 253_402_300_800n * SECOND;

export function moment(ns: bigint): Timestamp {
  if (ns < EARLIEST || ns >= LATEST) throw new EvaluationError('timestamp overflow');
  return new Timestamp(ns);
}

export function parseTimestamp(text: string): Timestamp {
  const match = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)$/.exec(text);
  const ms = match === null ? Number.NaN : Date.parse(`${match[1]}T${match[2]}${(match[4] ?? '').toUpperCase()}`);
  if (match === null || Number.isNaN(ms))
    throw new EvaluationError(`cannot parse ${JSON.stringify(text.slice(0, 64))} as a timestamp`);
  return moment(BigInt(ms) * 1_000_000n + BigInt((match[3] ?? '').padEnd(9, '0')));
}

export function parseDuration(text: string): Duration {
  const bad = (): EvaluationError => new EvaluationError(`time: invalid duration ${JSON.stringify(text.slice(0, 64))}`);
  const match = /^([+-]?)((?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(text.length > 256 ? '' : text);
  if (match === null) throw bad();
  let ns = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of (match[2] ?? '').matchAll(
    /(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g,
  )) {
    const scale = UNITS[unit] ?? 0n;
    ns += BigInt(whole === '' ? '0' : whole) * scale;
    if (fraction !== '') ns += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  if (ns >= 2n ** 63n) throw bad();
  return new Duration(match[1] === '-' ? -ns : ns);
}

export function formatDuration({ ns }: Duration): string {
  const sign = ns < 0n ? '-' : '';
  const whole = ns < 0n ? -ns : ns;
  const fraction = String(whole % SECOND)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${sign}${whole / SECOND}${fraction === '' ? '' : `.${fraction}`}s`;
}

export function formatTimestamp({ ns }: Timestamp): string {
  const below = ((ns % SECOND) + SECOND) % SECOND;
  const fraction = String(below).padStart(9, '0').replace(/0+$/, '');
  const seconds = new Date(Number((ns - below) / 1_000_000n)).toISOString().slice(0, 19);
  return `${seconds}${fraction === '' ? '' : `.${fraction}`}Z`;
}

/**
 * Returns a Date whose UTC fields are the local time of `zone`. The zone is `UTC`, an offset such as `+01:00`, or a
 * name that the platform supports.
 */
function inZone({ ns }: Timestamp, zone: string): Date {
  const ms = Number(ns / 1_000_000n) - (ns < 0n && ns % 1_000_000n !== 0n ? 1 : 0);
  const offset = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (offset !== null) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(ms + (offset[1] === '-' ? -minutes : minutes) * 60_000);
  }
  if (zone === 'UTC' || zone === 'Z' || zone === '') return new Date(ms);
  const parts = formatOf(zone).formatToParts(new Date(ms));
  const part = (type: string): number => Number(parts.find((each) => each.type === type)?.value ?? 0);
  return new Date(
    Date.UTC(
      part('year'),
      part('month') - 1,
      part('day'),
      part('hour'),
      part('minute'),
      part('second'),
      ((ms % 1000) + 1000) % 1000,
    ),
  );
}

/** Cached formats by zone. Creating a format is expensive, and few zones are used. */
const formats = new BoundedMap<string, Intl.DateTimeFormat>(64);

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  // Creating a format takes as long as some hundreds of ordinary steps.
  chargeCost(1_000);
  try {
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
    formats.set(zone, format);
    return format;
  } catch {
    throw new EvaluationError(`unknown time zone ${zone.slice(0, 64)}`);
  }
}

const GETTERS: readonly (readonly [string, (date: Date) => number])[] = [
  ['getFullYear', (date) => date.getUTCFullYear()],
  ['getMonth', (date) => date.getUTCMonth()],
  ['getDate', (date) => date.getUTCDate()],
  ['getDayOfMonth', (date) => date.getUTCDate() - 1],
  ['getDayOfWeek', (date) => date.getUTCDay()],
  ['getDayOfYear', (date) => Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000)],
  ['getHours', (date) => date.getUTCHours()],
  ['getMinutes', (date) => date.getUTCMinutes()],
  ['getSeconds', (date) => date.getUTCSeconds()],
  ['getMilliseconds', (date) => date.getUTCMilliseconds()],
];

const spans: Readonly<Record<string, bigint>> = {
  getHours: 3600n * SECOND,
  getMinutes: 60n * SECOND,
  getSeconds: SECOND,
};

export const times: readonly Overload[] = [
  ...GETTERS.flatMap(([name, read]) => [
    declareFunction(`timestamp.${name}(): int`, (time: Timestamp) => BigInt(read(inZone(time, 'UTC')))),
    declareFunction(
      `timestamp.${name}(string): int`,
      (time: Timestamp, zone: string) => BigInt(read(inZone(time, zone))),
      {
        cost: () => 60,
      },
    ),
  ]),
  ...Object.entries(spans).map(([name, unit]) =>
    declareFunction(`duration.${name}(): int`, (duration: Duration) => duration.ns / unit),
  ),
  declareFunction('duration.getMilliseconds(): int', (duration: Duration) => duration.ns / 1_000_000n),
];
