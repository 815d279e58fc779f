/** String functions. Sources: cel-spec (strings), cel-go's ext/strings.go, k8s.io/apiserver/pkg/cel/library (regex). */

import { BoundedMap } from '../../../base/bounded-map.ts';
import { messageOf } from '../../../base/errors.ts';
import { compileRegexp, type Regexp } from '../../../base/regexp/index.ts';
import { COST_PER_CHARACTER, declareFunction, declareIn, type Overload, perCharacter, times } from '../functions.ts';
import { chargeCost } from '../meter.ts';
import { EvaluationError, type List } from '../values.ts';
import { checkResultLength, format } from './format.ts';

const ofArgument = { cost: ([, argument = 0]: readonly number[]) => perCharacter(argument) };
const within = {
  cost: ([text = 0, part = 0]: readonly number[]) => times(perCharacter(text), perCharacter(part)),
};
const same = {
  cost: ([text = 0]: readonly number[]) => perCharacter(text),
  size: ([text = 0]: readonly number[]) => text,
};
/** Costs of a function that splits the text into characters. */
const apart = same;
/** Costs of a function that traverses the text and builds a new one. */
const pieces = {
  cost: ([text = 0]: readonly number[]) => perCharacter(2 * text),
  size: ([text = 0]: readonly number[]) => text,
};
/**
 * Costs of a replacement. The size of the result assumes that the shortest possible part occurs at every position and
 * that the longest possible text replaces each occurrence.
 */
const replacing = {
  cost: pieces.cost,
  size([text = 0, , by = 0]: readonly number[], _items: readonly number[], [, part = 0]: readonly number[]): number {
    if (part === 0) return times(text + 1, by) + text;
    return by <= part ? text : times(Math.ceil(text / part), by);
  },
};
/** Costs of matching a pattern: one traversal of the text for every four characters of the pattern. */
const matching = {
  cost: ([text = 0, pattern = 0]: readonly number[]) => times(perCharacter(text + 1), Math.ceil(pattern * 0.25)),
};

/** Upstream's cost estimate for `format`. The actual cost depends on the text. */
const CLAUSES_COST = 16;

/** Costs of finding the position of a match, which takes longer than matching alone. */
const finding = { cost: (sizes: readonly number[]) => matching.cost(sizes) * 16, estimate: matching.cost };

/** Cache of compiled patterns. Most patterns are literals in expressions, so a small cache is sufficient. */
const compiled = new BoundedMap<string, Regexp>(256);

export function regexp(pattern: string): Regexp {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  try {
    const made = guarded(compileRegexp(pattern));
    compiled.set(pattern, made);
    return made;
  } catch (error) {
    throw new EvaluationError(messageOf(error));
  }
}

/** Converts errors of the matcher to EvaluationErrors. */
function guarded(regexp: Regexp): Regexp {
  const run = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw new EvaluationError(messageOf(error));
    }
  };
  return {
    groups: regexp.groups,
    names: regexp.names,
    test: (text) => run(() => regexp.test(text)),
    exec: (text, from) => run(() => regexp.exec(text, from)),
    all: (text, limit) => run(() => regexp.all(text, limit)),
  };
}

const codes = (text: string): string[] => [...text];

function bounds(index: bigint, length: number): number {
  if (index < 0n || index > BigInt(length)) throw new EvaluationError(`index out of range: ${index}`);
  return Number(index);
}

function charAt(text: string, index: bigint): string {
  const all = codes(text);
  return all[bounds(index, all.length)] ?? '';
}

function indexOf(text: string, part: string, from = 0n): bigint {
  const all = codes(text);
  if (from >= BigInt(all.length)) return part === '' && from === BigInt(all.length) ? from : -1n;
  const start = bounds(from, all.length);
  const at = text.indexOf(part, all.slice(0, start).join('').length);
  return at < 0 ? -1n : BigInt(codes(text.slice(0, at)).length);
}

function lastIndexOf(text: string, part: string, from?: bigint): bigint {
  const all = codes(text);
  if (from !== undefined && from >= BigInt(all.length)) return part === '' ? BigInt(all.length) : -1n;
  const before = from === undefined ? undefined : all.slice(0, bounds(from, all.length)).join('').length;
  const at = before === undefined ? text.lastIndexOf(part) : text.lastIndexOf(part, before);
  return at < 0 ? -1n : BigInt(codes(text.slice(0, at)).length);
}

function replace(text: string, part: string, by: string, limit: bigint): string {
  if (limit === 0n) return text;
  const pieces = part === '' ? ['', ...codes(text), ''] : text.split(part);
  const count = limit < 0n ? pieces.length - 1 : Math.min(Number(limit), pieces.length - 1);
  checkResultLength(text.length + by.length * count);
  const head = pieces.slice(0, count + 1).join(by);
  const tail = pieces.slice(count + 1);
  return tail.length === 0 ? head : `${head}${part}${tail.join(part)}`;
}

function split(text: string, separator: string, limit: bigint): string[] {
  if (limit === 0n) return [];
  const all = separator === '' ? codes(text) : text.split(separator);
  if (limit < 0n || BigInt(all.length) <= limit) return all;
  const count = Number(limit);
  return [...all.slice(0, count - 1), all.slice(count - 1).join(separator)];
}

function substring(text: string, start: bigint, end?: bigint): string {
  const all = codes(text);
  const to = end === undefined ? all.length : bounds(end, all.length);
  const from = bounds(start, all.length);
  if (from > to) throw new EvaluationError(`invalid substring range. start: ${start}, end: ${to}`);
  return all.slice(from, to).join('');
}

const joined = (list: List, separator: string): string => {
  const texts: string[] = [];
  let length = 0;
  for (const item of list) {
    if (typeof item !== 'string') throw new EvaluationError('no such overload');
    length += item.length + separator.length;
    texts.push(item);
  }
  checkResultLength(length);
  chargeCost(Math.max(0, perCharacter(length) - perCharacter(list.length)));
  return texts.join(separator);
};

/** Total length of the texts and the separators between them. */
const whole = ([list = 0, by = 0]: readonly number[], [item = 0]: readonly number[]): number =>
  times(list, item) + times(Math.max(0, list - 1), by);
const walked = (sizes: readonly number[], items: readonly number[]): number => perCharacter(whole(sizes, items));

const ascii = (text: string, from: RegExp, change: (part: string) => string): string => text.replaceAll(from, change);

const QUOTED: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

/** Quotes a text. Only control characters, quotes and backslashes are escaped. */
const quote = (text: string): string => `"${text.replaceAll(/[\p{Cc}\\"]/gu, (char) => QUOTED[char] ?? char)}"`;

export const strings: readonly Overload[] = [
  declareFunction('string.contains(string): bool', (text: string, part: string) => text.includes(part), within),
  declareFunction('string.startsWith(string): bool', (text: string, part: string) => text.startsWith(part), ofArgument),
  declareFunction('string.endsWith(string): bool', (text: string, part: string) => text.endsWith(part), ofArgument),
  declareFunction(
    'string.matches(string): bool',
    (text: string, pattern: string) => regexp(pattern).test(text),
    matching,
  ),
  declareFunction(
    'matches(string, string): bool',
    (text: string, pattern: string) => regexp(pattern).test(text),
    matching,
  ),
  declareFunction('string.charAt(int): string', charAt, { ...COST_PER_CHARACTER, estimate: () => 1 }),
  declareFunction('string.indexOf(string): int', (text: string, part: string) => indexOf(text, part), within),
  declareFunction(
    'string.indexOf(string, int): int',
    (text: string, part: string, from: bigint) => indexOf(text, part, from),
    within,
  ),
  declareFunction('string.lastIndexOf(string): int', (text: string, part: string) => lastIndexOf(text, part), within),
  declareFunction(
    'string.lastIndexOf(string, int): int',
    (text: string, part: string, from: bigint) => lastIndexOf(text, part, from),
    within,
  ),
  declareFunction(
    'string.lowerAscii(): string',
    (text: string) => ascii(text, /[A-Z]+/g, (part) => part.toLowerCase()),
    same,
  ),
  declareFunction(
    'string.upperAscii(): string',
    (text: string) => ascii(text, /[a-z]+/g, (part) => part.toUpperCase()),
    same,
  ),
  declareFunction(
    'string.replace(string, string): string',
    (text: string, part: string, by: string) => replace(text, part, by, -1n),
    replacing,
  ),
  declareFunction('string.replace(string, string, int): string', replace, replacing),
  declareFunction(
    'string.split(string): list<string>',
    (text: string, separator: string) => split(text, separator, -1n),
    pieces,
  ),
  declareFunction('string.split(string, int): list<string>', split, pieces),
  declareFunction('string.substring(int): string', (text: string, start: bigint) => substring(text, start), apart),
  declareFunction(
    'string.substring(int, int): string',
    (text: string, start: bigint, end: bigint) => substring(text, start, end),
    apart,
  ),
  declareFunction('string.trim(): string', (text: string) => text.trim(), same),
  declareFunction('list<string>.join(): string', (list: List) => joined(list, ''), {
    // Joining also visits empty texts, so the cost depends on the number of texts.
    cost: ([list = 0]) => perCharacter(list),
    estimate: walked,
    size: whole,
  }),
  declareFunction('list<string>.join(string): string', joined, {
    // Joining also visits empty texts, so the cost depends on the number of texts.
    cost: ([list = 0]) => perCharacter(list),
    estimate: walked,
    size: whole,
  }),
  declareFunction('string.format(list<dyn>): string', format, {
    cost: ([text = 0]) => perCharacter(text) + CLAUSES_COST,
    estimate: ([text = 0]) => perCharacter(text),
  }),
  declareIn('strings', 'quote(string): string', quote, same),
  declareFunction(
    'string.find(string): string',
    (text: string, pattern: string) => {
      const match = regexp(pattern).exec(text);
      return match === undefined ? '' : text.slice(match.start, match.end);
    },
    { ...finding, size: ([text = 0]) => text },
  ),
  declareFunction(
    'string.findAll(string): list<string>',
    (text: string, pattern: string) => findAll(text, pattern, -1n),
    {
      ...finding,
      size: ([text = 0]) => text,
    },
  ),
  declareFunction('string.findAll(string, int): list<string>', findAll, { ...finding, size: ([text = 0]) => text }),
];

function findAll(text: string, pattern: string, limit: bigint): string[] {
  const matches = regexp(pattern).all(text, limit < 0n ? Number.POSITIVE_INFINITY : Number(limit));
  return matches.map(({ start, end }) => text.slice(start, end));
}
