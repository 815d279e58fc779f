/**
 * JSON whose integers are exact within 64 bits, as Kubernetes' are: one that a number would round is read to a BigInt,
 * and BigInts print as the digits that they are. Every other number is a number; what is beyond 64 bits, or is written
 * with a point or an exponent, is the nearest double. Source: sigs.k8s.io/json, UnmarshalCaseSensitivePreserveInts.
 * docs/decisions/0013.
 */

declare global {
  interface JSON {
    /** ECMAScript's "JSON.parse source text access", which the library of types does not have yet. */
    rawJSON(text: string): unknown;
  }
}

// Such an integer is always created here, so its printed form is known wherever there is one. No integer of a document
// was ever a BigInt before.
Object.defineProperty(BigInt.prototype, 'toJSON', {
  value(this: bigint): unknown {
    return JSON.rawJSON(String(this));
  },
  configurable: true,
  writable: true,
});

/** The shortest integer that a number may round has so many digits. */
const DIGITS = 16;
const ZERO = 0x30;
const NINE = 0x39;
/**
 * What stands before a number in a document: `:` `,` `[` `-` and space. Digits after anything else are in a text or
 * behind a point.
 */
const BEFORE: ReadonlySet<number> = new Set([0x3a, 0x2c, 0x5b, 0x2d, 0x20, 0x0a, 0x0d, 0x09]);

/** As `JSON.parse`, with exact integers. Throws SyntaxError. Only a text that may hold a long integer pays for them. */
export function parseJson(text: string): unknown {
  return mayHaveLongInteger(text) ? (JSON.parse(text, exactly as Reviver) as unknown) : JSON.parse(text);
}

/** What `number` is when the document says `source`: itself, or a BigInt where it would be rounded. */
export function exactInteger(number: number, source: string): number | bigint {
  if (Number.isSafeInteger(number) || !/^-?\d+$/.test(source)) return number;
  // Longer ones have more than 64 bits.
  if (source.length > 20) return number;
  const exact = BigInt(source);
  return BigInt.asIntN(64, exact) === exact ? exact : number;
}

/** A whole number as documents hold it: a BigInt only where a number would round it. */
export function integerOf(exact: bigint): number | bigint {
  const number = Number(exact);
  return Number.isSafeInteger(number) ? number : exact;
}

type Reviver = (this: unknown, key: string, value: unknown) => unknown;

function exactly(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? exactInteger(value, context.source) : value;
}

/**
 * A run of so many digits has one of them at a place that the number of them divides: the others need not be looked at.
 */
function mayHaveLongInteger(text: string): boolean {
  for (let at = DIGITS - 1; at < text.length; at += DIGITS) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let start = at;
    while (isDigit(text.charCodeAt(start - 1))) start -= 1;
    let end = at + 1;
    while (isDigit(text.charCodeAt(end))) end += 1;
    if (end - start >= DIGITS && (start === 0 || BEFORE.has(text.charCodeAt(start - 1)))) return true;
    // Nothing of this run is looked at twice.
    at += Math.floor((end - 1 - at) / DIGITS) * DIGITS;
  }
  return false;
}

/** False beyond the ends of the text. */
function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
