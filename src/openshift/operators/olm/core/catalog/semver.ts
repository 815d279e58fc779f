/**
 * Semantic versions and ranges as used in catalogs. Source: semver.org 2.0.0; ranges as github.com/blang/semver parses
 * them: comparisons that must all hold, alternatives separated by `||`, and `x` for any number. Unlike in npm, a range
 * includes every pre-release between its bounds.
 */

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  readonly pre: readonly (string | number)[];
}

export interface Range {
  /** Whether one of the alternatives holds. */
  includes(version: Version): boolean;
}

const MAX_LENGTH = 256;
const NUMBER = '(0|[1-9]\\d{0,14})';
const SUFFIX = '(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?';
const VERSION = new RegExp(`^v?${NUMBER}\\.${NUMBER}\\.${NUMBER}${SUFFIX}$`);
const PARTIAL = new RegExp(`^v?${NUMBER}(?:\\.(?:${NUMBER}|[xX*])(?:\\.(?:${NUMBER}|[xX*])${SUFFIX})?)?$`);
const COMPARISON = /^(>=|<=|!=|==|=|>|<|!)?(.+)$/;

/** Undefined if `text` is no semantic version. A leading `v` is accepted. */
export function parseVersion(text: string): Version | undefined {
  if (text.length > MAX_LENGTH) return undefined;
  const match = VERSION.exec(text.trim());
  if (match === null) return undefined;
  const pre = preOf(match[4]);
  if (pre === undefined) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3]), pre };
}

function preOf(text: string | undefined): (string | number)[] | undefined {
  if (text === undefined) return [];
  const parts = text.split('.');
  // Numbers of a pre-release must not have leading zeros.
  if (parts.some((part) => /^0\d+$/.test(part))) return undefined;
  return parts.map((part) => (/^\d{1,15}$/.test(part) ? Number(part) : part));
}

/**
 * Compares versions as specified by semver.org, ignoring build metadata. Returns a negative number, zero or a positive
 * number.
 */
export function compareVersions(a: Version, b: Version): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch || comparePre(a.pre, b.pre);
}

function comparePre(a: readonly (string | number)[], b: readonly (string | number)[]): number {
  if (a.length === 0 || b.length === 0) return Math.sign(b.length) - Math.sign(a.length);
  for (const [index, own] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (own === other) continue;
    if (typeof own === 'number') return typeof other === 'number' ? own - other : -1;
    if (typeof other === 'number') return 1;
    return own < other ? -1 : 1;
  }
  return a.length - b.length;
}

type Test = (version: Version) => boolean;

/** Undefined if `text` is no range. */
export function parseRange(text: string): Range | undefined {
  if (text.length > MAX_LENGTH || text.trim() === '') return undefined;
  const alternatives: Test[][] = [];
  for (const alternative of text.split('||')) {
    const tests: Test[] = [];
    // Operators may be separated from their version by spaces.
    const joined = alternative.replace(/([<>=!]+)\s+/g, '$1').trim();
    if (joined === '') return undefined;
    for (const part of joined.split(/[\s,]+/)) {
      const test = comparisonOf(part);
      if (test === undefined) return undefined;
      tests.push(...test);
    }
    alternatives.push(tests);
  }
  return { includes: (version) => alternatives.some((tests) => tests.every((test) => test(version))) };
}

function comparisonOf(part: string): readonly Test[] | undefined {
  const match = COMPARISON.exec(part);
  if (match === null) return undefined;
  const [, operator = '=', text = ''] = match;
  const exact = parseVersion(text);
  if (exact !== undefined) return [testOf(operator, exact)];
  const partial = PARTIAL.exec(text);
  if (partial === null || partial[4] !== undefined) return undefined;
  // `1.2.x` means 1.2.0 up to, but not including, 1.3.0.
  const [major, minor] = [Number(partial[1]), partial[2] === undefined ? undefined : Number(partial[2])];
  const low: Version = { major, minor: minor ?? 0, patch: 0, pre: [] };
  const high: Version =
    minor === undefined
      ? { major: major + 1, minor: 0, patch: 0, pre: [] }
      : { major, minor: minor + 1, patch: 0, pre: [] };
  switch (operator) {
    case '=':
    case '==':
      return [testOf('>=', low), testOf('<', high)];
    case '!=':
    case '!':
      return [(version) => compareVersions(version, low) < 0 || compareVersions(version, high) >= 0];
    case '>':
      return [testOf('>=', high)];
    case '<=':
      return [testOf('<', high)];
    default:
      return [testOf(operator, low)];
  }
}

function testOf(operator: string, bound: Version): Test {
  switch (operator) {
    case '>':
      return (version) => compareVersions(version, bound) > 0;
    case '>=':
      return (version) => compareVersions(version, bound) >= 0;
    case '<':
      return (version) => compareVersions(version, bound) < 0;
    case '<=':
      return (version) => compareVersions(version, bound) <= 0;
    case '!=':
    case '!':
      return (version) => compareVersions(version, bound) !== 0;
    default:
      return (version) => compareVersions(version, bound) === 0;
  }
}
