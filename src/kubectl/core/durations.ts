/** Durations as Go writes and kubectl prints them. */
import { ClientError } from './errors.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** Milliseconds of a duration such as `1h30m`. Throws ClientError for another form. */
export function parseGoDuration(text: string): number {
  const [, sign, rest = ''] = /^([-+]?)(.+)$/.exec(text) ?? [];
  let total = 0;
  let matched = 0;
  for (const [whole, number = '', unit = ''] of rest.matchAll(/(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/gy)) {
    total += Number(number) * (UNIT_MS[unit] ?? 0);
    matched += whole.length;
  }
  if (rest !== '0' && (matched === 0 || matched !== rest.length))
    throw new ClientError(`time: invalid duration "${text}"`);
  return sign === '-' ? -total : total;
}

/** Age in kubectl's format, with at most two units. Source: k8s.io/apimachinery/pkg/util/duration HumanDuration. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1_000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  if (hours < 192) return two(Math.trunc(hours / 24), 'd', hours % 24, 'h');
  if (hours < 24 * 365 * 2) return `${Math.trunc(hours / 24)}d`;
  const years = Math.trunc(hours / 24 / 365);
  return hours < 24 * 365 * 8 ? two(years, 'y', Math.trunc(hours / 24) % 365, 'd') : `${years}y`;
}

const two = (left: number, leftUnit: string, right: number, rightUnit: string): string =>
  right === 0 ? `${left}${leftUnit}` : `${left}${leftUnit}${right}${rightUnit}`;

/** Age of an RFC 3339 time; `<unknown>` if there is no time. */
export const ageOf = (time: string | undefined, now: number): string =>
  time === undefined || time === '' ? '<unknown>' : humanDuration(now - Date.parse(time));

/** Time in the format of `describe`, such as `Mon, 02 Jan 2006 15:04:05 +0000`. */
export function describedTime(time: string): string {
  const date = new Date(time);
  if (time === '' || Number.isNaN(date.getTime())) return '<unset>';
  const offset = -date.getTimezoneOffset();
  const two0 = (value: number): string => String(Math.abs(value)).padStart(2, '0');
  const zone = `${offset < 0 ? '-' : '+'}${two0(Math.trunc(offset / 60))}${two0(offset % 60)}`;
  const local = new Date(date.getTime() + offset * 60_000).toUTCString();
  return local.replace('GMT', zone);
}
