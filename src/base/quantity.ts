/**
 * Resource quantities: fixed-point numbers with a suffix (`500m`, `1536Mi`, `12e6`), exact to 10⁻⁹. Source:
 * k8s.io/apimachinery/pkg/api/resource Quantity (grammar, rounding up to nano, canonical form).
 */
import { CodedError } from './errors.ts';

/** Notation of a quantity. It is kept, so that `1Gi` stays binary and `12e6` exponential. */
export type QuantityFormat = 'DecimalSI' | 'BinarySI' | 'DecimalExponent';

export interface Quantity {
  /** The value in billionths. */
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

const NANO = 1_000_000_000n;
const MAX_BINARY_NANOS = (2n ** 63n - 1n) * NANO;
/**
 * Maximum length of a text. The parsing of big integers is not linear, so longer texts are rejected before any
 * arithmetic.
 */
const MAX_TEXT = 128;
/** Maximum decimal exponent. A value with a larger exponent would exceed every limit of the API. */
const MAX_EXPONENT = 64;

const GRAMMAR = /^([+-]?)(\d*)(?:\.(\d*))?([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i|)$/;
const LOOKS_LIKE = /^[+-]?(?=[\d.])\d*\.?\d*[eEinumkKMGTP]*[-+]?\d*$/;

const DECIMAL_EXPONENT: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY_POWER: Readonly<Record<string, number>> = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };
const DECIMAL_SUFFIX: ReadonlyMap<number, string> = new Map(
  Object.entries(DECIMAL_EXPONENT).map(([suffix, exponent]) => [exponent, suffix]),
);
const BINARY_SUFFIX = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

export const QUANTITY_FORMAT_MESSAGE =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Parses a quantity in JSON form. Throws `CodedError('quantity-invalid')` with upstream's message. */
export function parseQuantity(input: string | number | bigint): Quantity {
  const text = (typeof input === 'string' ? input : String(input)).trim();
  if (text === '' || text.length > MAX_TEXT) throw quantityError(QUANTITY_FORMAT_MESSAGE);
  const match = GRAMMAR.exec(text);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? [];
  if (match === null || whole + fraction === '') {
    throw quantityError(LOOKS_LIKE.test(text) ? "unable to parse quantity's suffix" : QUANTITY_FORMAT_MESSAGE);
  }
  const digits = BigInt(whole + fraction);
  const power = BINARY_POWER[suffix];
  let format: QuantityFormat;
  let nanos: bigint;
  if (power !== undefined) {
    format = 'BinarySI';
    nanos = divideUp(digits * 1024n ** BigInt(power) * NANO, 10n ** BigInt(fraction.length));
    if (nanos > MAX_BINARY_NANOS) nanos = MAX_BINARY_NANOS;
  } else {
    const short = DECIMAL_EXPONENT[suffix];
    format = short === undefined ? 'DecimalExponent' : 'DecimalSI';
    const exponent = short ?? Number(suffix.slice(1));
    if (exponent > MAX_EXPONENT || exponent < -MAX_EXPONENT) throw quantityError("unable to parse quantity's suffix");
    const shift = 9 + exponent - fraction.length;
    nanos = shift >= 0 ? digits * 10n ** BigInt(shift) : divideUp(digits, 10n ** BigInt(-shift));
  }
  return { nanos: sign === '-' ? -nanos : nanos, format };
}

/** Like `parseQuantity`; undefined if the input is not a quantity. */
export function tryParseQuantity(input: unknown): Quantity | undefined {
  if (typeof input !== 'string' && typeof input !== 'number' && typeof input !== 'bigint') return undefined;
  try {
    return parseQuantity(input);
  } catch {
    return undefined;
  }
}

/** Canonical text: an integer with the largest suffix that keeps the precision. */
export function formatQuantity(quantity: Quantity): string {
  const { nanos } = quantity;
  if (nanos === 0n) return '0';
  if (quantity.format === 'BinarySI' && nanos % NANO === 0n) {
    let value = nanos / NANO;
    if (value <= -1024n || value >= 1024n) {
      let power = 0;
      while (power < 6 && value % 1024n === 0n) {
        value /= 1024n;
        power++;
      }
      return `${value}${BINARY_SUFFIX[power] ?? ''}`;
    }
  }
  let value = nanos;
  let exponent = -9;
  const largest = quantity.format === 'DecimalExponent' ? MAX_EXPONENT + 9 : 18;
  while (exponent < largest && value % 1000n === 0n) {
    value /= 1000n;
    exponent += 3;
  }
  if (quantity.format === 'DecimalExponent') return exponent === 0 ? `${value}` : `${value}e${exponent}`;
  return `${value}${DECIMAL_SUFFIX.get(exponent) ?? ''}`;
}

/** Canonical text of a quantity; the input itself if it is not a quantity. */
export function canonicalQuantity(input: string | number | bigint): string {
  const parsed = tryParseQuantity(input);
  return parsed === undefined ? String(input) : formatQuantity(parsed);
}

/** Comparison result: negative, zero or positive. */
export function compareQuantity(a: Quantity, b: Quantity): number {
  return a.nanos < b.nanos ? -1 : a.nanos > b.nanos ? 1 : 0;
}

/** Sum of two quantities. As in upstream's `Add`, it has the format of the first operand, unless that is zero. */
export function addQuantity(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos + b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

export function subtractQuantity(a: Quantity, b: Quantity): Quantity {
  return { nanos: a.nanos - b.nanos, format: a.nanos === 0n ? b.format : a.format };
}

/** Quantity of whole units (bytes, cores, pods). `value` must be a safe integer or a bigint. */
export function quantityOf(value: number | bigint, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { nanos: BigInt(value) * NANO, format };
}

/** Quantity of thousandths, for example millicores. */
export function quantityOfMilli(value: number | bigint, format: QuantityFormat = 'DecimalSI'): Quantity {
  return { nanos: BigInt(value) * 1_000_000n, format };
}

/** Whole units, rounded up and limited to ±2^53−1. */
export function quantityValue(quantity: Quantity): number {
  return toSafeNumber(roundUp(quantity.nanos, NANO));
}

/** Thousandths, rounded up and limited to ±2^53−1. */
export function quantityMilliValue(quantity: Quantity): number {
  return toSafeNumber(roundUp(quantity.nanos, 1_000_000n));
}

/** Bytes, rounded up. Throws like `parseQuantity`. */
export function parseBytes(input: string | number): number {
  return quantityValue(parseQuantity(input));
}

/** Millicores, rounded up. Throws like `parseQuantity`. */
export function parseMillicores(input: string | number): number {
  return quantityMilliValue(parseQuantity(input));
}

function divideUp(value: bigint, divisor: bigint): bigint {
  return (value + divisor - 1n) / divisor;
}

/** Rounds away from zero, as upstream's `Value()` and `ScaledValue()`. */
function roundUp(value: bigint, unit: bigint): bigint {
  return value < 0n ? -divideUp(-value, unit) : divideUp(value, unit);
}

function toSafeNumber(value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) return Number.MAX_SAFE_INTEGER;
  if (value < BigInt(Number.MIN_SAFE_INTEGER)) return Number.MIN_SAFE_INTEGER;
  return Number(value);
}

function quantityError(message: string): CodedError {
  return new CodedError('quantity-invalid', message);
}
