/** Function `format`. Source: cel-go's ext/strings.go. */
import { chargeCost } from '../meter.ts';
import {
  CelMap,
  Duration,
  EvaluationError,
  isList,
  type List,
  Optional,
  Timestamp,
  TypeValue,
  typeOf,
  Uint,
  type Value,
} from '../values.ts';
import { formatDouble } from './operators.ts';
import { formatDuration, formatTimestamp } from './time.ts';

const MAX_TEXT = 10 * 1024 * 1024;

/** Throws EvaluationError if `length` exceeds the size limit. Call it before a text of that length is created. */
export function checkResultLength(length: number): void {
  if (length > MAX_TEXT) throw new EvaluationError('the text is too large');
}

/** Formats values with `%s %d %f %e %b %x %X %o`. */
export function format(pattern: string, values: List): string {
  let next = 0;
  let result = '';
  for (let at = 0; at < pattern.length; at++) {
    if (pattern[at] !== '%') {
      result += pattern[at];
      continue;
    }
    const directive = /^%(?:%|(?:\.(\d{1,3}))?([sdfebxXo]))/.exec(pattern.slice(at, at + 8));
    if (directive === null) throw new EvaluationError(`could not parse formatting clause at ${at}`);
    at += directive[0].length - 1;
    if (directive[0] === '%%') {
      result += '%';
      continue;
    }
    if (next >= values.length) throw new EvaluationError(`index ${next} out of range`);
    result += clause(directive[2] ?? 's', directive[1], values.at(next++) ?? null);
    checkResultLength(result.length);
  }
  return result;
}

function clause(verb: string, precision: string | undefined, value: Value): string {
  const wrong = (): EvaluationError => new EvaluationError(`%${verb} cannot format a value of type ${typeOf(value)}`);
  const whole = typeof value === 'bigint' ? value : value instanceof Uint ? value.value : undefined;
  switch (verb) {
    case 's':
      return shown(value);
    case 'd':
      if (whole === undefined) throw wrong();
      return String(whole);
    case 'f':
    case 'e': {
      const number = typeof value === 'number' ? value : whole === undefined ? undefined : Number(whole);
      if (number === undefined) throw wrong();
      const digits = precision === undefined ? 6 : Number(precision);
      if (!Number.isFinite(number)) return Number.isNaN(number) ? 'NaN' : number > 0 ? '∞' : '-∞';
      return verb === 'f' ? number.toFixed(Math.min(100, digits)) : scientific(number);
    }
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0';
      if (whole === undefined) throw wrong();
      return whole.toString(2);
    case 'o':
      if (whole === undefined) throw wrong();
      return whole.toString(8);
    default: {
      const hex = whole?.toString(16) ?? hexOf(value);
      if (hex === undefined) throw wrong();
      return verb === 'X' ? hex.toUpperCase() : hex;
    }
  }
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Formats a number for `%e` with six decimals, as in `1.234568×10⁰⁴`. The precision of the pattern is ignored. */
function scientific(number: number): string {
  const [mantissa = '', exponent = '0'] = number.toExponential(6).split('e');
  const digits = exponent.replace(/^[+-]/, '').padStart(2, '0');
  const raised = [...digits].map((digit) => RAISED[Number(digit)]).join('');
  return `${mantissa}×10${exponent.startsWith('-') ? '⁻' : ''}${raised}`;
}

function hexOf(value: Value): string | undefined {
  const bytes =
    typeof value === 'string' ? new TextEncoder().encode(value) : value instanceof Uint8Array ? value : undefined;
  return bytes === undefined ? undefined : [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Estimated length of a formatted value. */
function contentsOf(value: Value): number {
  if (value instanceof CelMap) return value.size * 8;
  return typeof value === 'object' && value !== null && isList(value) ? value.length * 4 : 0;
}

/** Strings inside other values are quoted. */
const within = (value: Value): string => (typeof value === 'string' ? `"${value}"` : shown(value));

function shown(value: Value): string {
  chargeCost(typeof value === 'string' ? Math.floor(value.length * 0.1) : contentsOf(value));
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return formatDouble(value);
  if (typeof value !== 'object') return String(value);
  if (value === null) return 'null';
  if (value instanceof CelMap)
    return `{${[...value.keys()]
      .map((key) => `${within(key)}:${within(value.get(key) ?? null)}`)
      .sort()
      .join(', ')}}`;
  if (isList(value)) return `[${[...value].map(within).join(', ')}]`;
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (value instanceof Timestamp) return formatTimestamp(value);
  if (value instanceof Duration) return formatDuration(value);
  if (value instanceof TypeValue) return value.type;
  if (value instanceof Optional) return value.value === undefined ? 'none' : `optional(${shown(value.value)})`;
  return value.identity;
}
