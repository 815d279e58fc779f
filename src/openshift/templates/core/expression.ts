/**
 * Generates values of parameters with `generate: expression`. In the expression, each `[CLASS]{COUNT}` is replaced by
 * COUNT random characters. A class contains ranges (`a-z`, `0-9`), single characters, `\w` (letters, digits, `_`), `\d`
 * (digits), `\a` (letters and digits) and `\A` (punctuation). Source: OpenShift's templates, "Generating parameter
 * values".
 */

/** Returns a random number, uniformly distributed in [0, 1). */
export type Random = () => number;

/** Maximum COUNT of a class. It is the same in upstream. */
const MAX_COUNT = 255;
/** Maximum length of a generated value. */
const MAX_LENGTH = 4096;
/**
 * Maximum length of all generated values of a template. Typical passwords and keys have a few hundred characters
 * together.
 */
export const MAX_GENERATED = 64 * 1024;

const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const LETTERS = `${LOWER}${LOWER.toUpperCase()}`;
const DIGITS = '0123456789';
const PUNCTUATION = '~!@#$%^&*()-_+={}[]\\|<,>.?/"\';:`';
const CLASSES: ReadonlyMap<string, string> = new Map([
  ['\\w', `${LETTERS}${DIGITS}_`],
  ['\\d', DIGITS],
  ['\\a', `${LETTERS}${DIGITS}`],
  ['\\A', PUNCTUATION],
]);
const TERM = /\[([a-zA-Z0-9\-\\]+)\]\{(\d+)\}/g;

/** Generated value, or the reason why the expression is invalid. */
export type Generated = { readonly value: string } | { readonly problem: string };

/** Number of characters that the expressions of one template may still read and generate. */
export class ExpressionBudget {
  #left = MAX_GENERATED;

  /** Subtracts characters from the budget. Returns false if the budget is exhausted. */
  spend(characters: number): boolean {
    this.#left -= characters;
    return this.#left >= 0;
  }
}

const EXHAUSTED = {
  problem: `the expressions of a template must have and generate at most ${MAX_GENERATED} characters`,
};

export function generateValue(expression: string, random: Random, budget = new ExpressionBudget()): Generated {
  if (!budget.spend(expression.length)) return EXHAUSTED;
  const parts: string[] = [];
  let length = 0;
  let end = 0;
  for (const match of expression.matchAll(TERM)) {
    const [term, characterClass = '', digits = ''] = match;
    const count = Number(digits);
    if (count < 1 || count > MAX_COUNT)
      return { problem: `range must be within [1-${MAX_COUNT}] characters (${digits.slice(0, 20)})` };
    const alphabet = alphabetOf(characterClass);
    if (typeof alphabet !== 'string') return alphabet;
    const text = expression.slice(end, match.index);
    end = match.index + term.length;
    length += text.length + count;
    if (length > MAX_LENGTH) return { problem: `the value must have at most ${MAX_LENGTH} characters` };
    if (!budget.spend(count)) return EXHAUSTED;
    parts.push(text);
    for (let index = 0; index < count; index++) parts.push(alphabet.charAt(Math.floor(random() * alphabet.length)));
  }
  parts.push(expression.slice(end));
  const value = parts.join('');
  return value.length > MAX_LENGTH ? { problem: `the value must have at most ${MAX_LENGTH} characters` } : { value };
}

/** Characters of a class without duplicates, in ASCII order. */
function alphabetOf(characterClass: string): string | { readonly problem: string } {
  const characters = new Set<string>();
  for (let at = 0; at < characterClass.length; at++) {
    const first = characterClass.charAt(at);
    if (first === '\\') {
      const named = CLASSES.get(characterClass.slice(at, at + 2));
      if (named === undefined) return { problem: `malformed expression syntax: [${characterClass}]` };
      for (const character of named) characters.add(character);
      at += 1;
      continue;
    }
    if (characterClass.charAt(at + 1) !== '-' || at + 2 >= characterClass.length) {
      characters.add(first);
      continue;
    }
    const last = characterClass.charAt(at + 2);
    if (!isRange(first, last)) return { problem: `invalid range specified: ${first}-${last}` };
    for (let code = first.charCodeAt(0); code <= last.charCodeAt(0); code++) characters.add(String.fromCharCode(code));
    at += 2;
  }
  return [...characters].sort().join('');
}

/**
 * Whether the characters form a range: both are lower-case letters, upper-case letters or digits, in ascending order.
 */
function isRange(first: string, last: string): boolean {
  const isOneSort = [LOWER, LOWER.toUpperCase(), DIGITS].some((sort) => sort.includes(first) && sort.includes(last));
  return isOneSort && first <= last;
}
