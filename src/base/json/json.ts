/**
 * JSON with exact 64-bit integers, as Kubernetes requires. An integer that a double would round is parsed to a BigInt,
 * and BigInts are serialized as integers. All other numbers are doubles, including integers beyond 64 bits and numbers
 * with a fraction or an exponent. Source: sigs.k8s.io/json, UnmarshalCaseSensitivePreserveInts. docs/decisions/0013.
 */

declare global {
  interface JSON {
    /** Part of the ECMAScript proposal "JSON.parse source text access". The TypeScript library does not declare it. */
    rawJSON(text: string): unknown;
  }
}

// The method is defined in the module that creates BigInts, so it is always present when a BigInt is serialized.
Object.defineProperty(BigInt.prototype, 'toJSON', {
  value(this: bigint): unknown {
    return JSON.rawJSON(String(this));
  },
  configurable: true,
  writable: true,
});

/** Number of digits of the shortest integer that a double may round. */
const DIGITS = 16;
const ZERO = 0x30;
const NINE = 0x39;
/**
 * Characters that can precede a number in a document: `:` `,` `[` `-` and white space. Digits after other characters
 * are part of a string or of a fraction.
 */
const BEFORE: ReadonlySet<number> = new Set([0x3a, 0x2c, 0x5b, 0x2d, 0x20, 0x0a, 0x0d, 0x09]);

/** Like `JSON.parse`, with exact integers. Text without long integers takes a fast path. Throws SyntaxError. */
export function parseJson(text: string): unknown {
  return mayHaveLongInteger(text) ? (JSON.parse(text, exactly as Reviver) as unknown) : JSON.parse(text);
}

/**
 * Value of a number in a document. `source`: its text in the document. Returns a BigInt if the double `number` is
 * rounded.
 */
export function exactInteger(number: number, source: string): number | bigint {
  if (Number.isSafeInteger(number) || !/^-?\d+$/.test(source)) return number;
  // An integer with more digits exceeds 64 bits.
  if (source.length > 20) return number;
  const exact = BigInt(source);
  return BigInt.asIntN(64, exact) === exact ? exact : number;
}

/** An integer as it is stored in documents: a BigInt only if a double would round it. */
export function integerOf(exact: bigint): number | bigint {
  const number = Number(exact);
  return Number.isSafeInteger(number) ? number : exact;
}

type Reviver = (this: unknown, key: string, value: unknown) => unknown;

function exactly(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? exactInteger(value, context.source) : value;
}

/**
 * Whether the text may contain an integer of at least DIGITS digits. It samples every DIGITS-th character, because each
 * run of DIGITS digits contains one of these positions.
 */
function mayHaveLongInteger(text: string): boolean {
  for (let at = DIGITS - 1; at < text.length; at += DIGITS) {
    if (!isDigit(text.charCodeAt(at))) continue;
    let start = at;
    while (isDigit(text.charCodeAt(start - 1))) start -= 1;
    let end = at + 1;
    while (isDigit(text.charCodeAt(end))) end += 1;
    if (end - start >= DIGITS && (start === 0 || BEFORE.has(text.charCodeAt(start - 1)))) return true;
    // The run of digits was too short or not a number. Continue after it, with the same spacing.
    at += Math.floor((end - 1 - at) / DIGITS) * DIGITS;
  }
  return false;
}

/** Whether a character code is a digit. False for NaN, which `charCodeAt` returns beyond the ends of the text. */
function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
