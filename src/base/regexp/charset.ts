/** Sets of code points, and the named character classes. */

export class CharSet {
  readonly #ranges: readonly (readonly [number, number])[];
  readonly #properties: readonly RegExp[];
  readonly #negated: boolean;
  readonly #fold: boolean;

  constructor(
    ranges: readonly (readonly [number, number])[],
    options: { readonly negated?: boolean; readonly fold?: boolean; readonly properties?: readonly RegExp[] } = {},
  ) {
    this.#ranges = ranges;
    this.#properties = options.properties ?? [];
    this.#negated = options.negated ?? false;
    this.#fold = options.fold ?? false;
  }

  has(code: number): boolean {
    return this.#contains(code) !== this.#negated;
  }

  #contains(code: number): boolean {
    if (this.#direct(code)) return true;
    if (!this.#fold) return false;
    const text = String.fromCodePoint(code);
    const lower = text.toLowerCase().codePointAt(0) ?? code;
    const upper = text.toUpperCase().codePointAt(0) ?? code;
    return this.#direct(lower) || this.#direct(upper);
  }

  #direct(code: number): boolean {
    for (const [low, high] of this.#ranges) if (code >= low && code <= high) return true;
    if (this.#properties.length === 0) return false;
    const text = String.fromCodePoint(code);
    return this.#properties.some((property) => property.test(text));
  }
}

export type Range = readonly [number, number];

export const LAST = 0x10ffff;
const DIGIT: readonly Range[] = [[0x30, 0x39]];
const SPACE: readonly Range[] = [
  [0x09, 0x0a],
  [0x0c, 0x0d],
  [0x20, 0x20],
];
const WORD: readonly Range[] = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
];

export const POSIX: Readonly<Record<string, readonly Range[]>> = {
  alnum: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  alpha: [
    [0x41, 0x5a],
    [0x61, 0x7a],
  ],
  ascii: [[0, 0x7f]],
  blank: [
    [0x09, 0x09],
    [0x20, 0x20],
  ],
  cntrl: [
    [0, 0x1f],
    [0x7f, 0x7f],
  ],
  digit: DIGIT,
  graph: [[0x21, 0x7e]],
  lower: [[0x61, 0x7a]],
  print: [[0x20, 0x7e]],
  punct: [
    [0x21, 0x2f],
    [0x3a, 0x40],
    [0x5b, 0x60],
    [0x7b, 0x7e],
  ],
  space: [
    [0x09, 0x0d],
    [0x20, 0x20],
  ],
  upper: [[0x41, 0x5a]],
  word: WORD,
  xdigit: [
    [0x30, 0x39],
    [0x41, 0x46],
    [0x61, 0x66],
  ],
};

export function complement(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  let next = 0;
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (low > next) result.push([next, low - 1]);
    next = Math.max(next, high + 1);
  }
  if (next <= LAST) result.push([next, LAST]);
  return result;
}

/** Perl classes such as `\d`. */
export const PERL: Readonly<Record<string, readonly Range[]>> = {
  d: DIGIT,
  D: complement(DIGIT),
  s: SPACE,
  S: complement(SPACE),
  w: WORD,
  W: complement(WORD),
};
