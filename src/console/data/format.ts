/** Texts for quantities, times and percentages. */

import { humanDuration } from '../../api/printing/duration.ts';
import { tryParseQuantity } from '../../base/quantity.ts';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Text such as `1.5 GiB`. */
export function bytesText(bytes: number): string {
  if (!Number.isFinite(bytes)) return '–';
  let value = Math.abs(bytes);
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = value >= 100 || unit === 0 ? 0 : 1;
  return `${bytes < 0 ? '-' : ''}${value.toFixed(digits).replace(/\.0$/, '')} ${UNITS[unit]}`;
}

/** Text such as `0.25 cores` or `16 cores`. */
export function coresText(cores: number): string {
  if (!Number.isFinite(cores)) return '–';
  if (cores === 0) return '0';
  const digits = cores < 1 ? 3 : cores < 10 ? 2 : 0;
  // The conversion to a number removes zeros behind the decimal point only.
  const text = String(Math.max(0.001, Number(cores.toFixed(digits))));
  return `${text} ${text === '1' ? 'core' : 'cores'}`;
}

/** The value of a quantity such as `500m` or `2Gi`; undefined if the text is not a quantity. */
export function quantityNumber(text: unknown): number | undefined {
  const quantity = tryParseQuantity(text);
  return quantity === undefined ? undefined : Number(quantity.nanos) / 1e9;
}

/** Text of a quantity in the unit of its resource. */
export function resourceText(resource: string, value: number): string {
  if (/(?:^|\.)cpu$/.test(resource)) return coresText(value);
  if (/memory|storage|hugepages/.test(resource)) return bytesText(value);
  return String(Math.round(value * 1000) / 1000);
}

/** Text such as `42 %`; `–` if the whole is zero or unknown. */
export function shareText(part: number, whole: number): string {
  if (!(whole > 0) || !Number.isFinite(part)) return '–';
  return `${Math.round((part / whole) * 100)} %`;
}

/** Time in UTC such as `2026-01-01 08:00:00 UTC`. Other texts than times of the API are returned without changes. */
export const timeText = (time: string): string =>
  time.replace(/^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.\d+)?Z$/, '$1 $2 UTC');

/**
 * Age such as `5m`; `–` if the time is missing or invalid. A time in the future, caused by different clocks, gives
 * `0s`.
 */
export function ageText(time: unknown, nowMs: number): string {
  const then = typeof time === 'string' ? Date.parse(time) : Number.NaN;
  return Number.isNaN(then) ? '–' : humanDuration(Math.max(0, nowMs - then));
}
