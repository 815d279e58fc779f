/**
 * Semantic versions and ranges as catalogs use them. Source: semver.org 2.0.0, and the parser of ranges in
 * github.com/blang/semver: all comparisons of an alternative must hold, alternatives are separated by `||`, and `x`
 * stands for any number. Unlike in npm, a range includes every pre-release between its bounds.
 */

import { compareSemver, parseSemver, type SemanticVersion } from '../../../../../base/versions/semver.ts';

export type Version = SemanticVersion;

export interface Range {
  /** Whether the version satisfies at least one alternative of the range. */
  includes(version: Version): boolean;
}

const MAX_LENGTH = 256;
const NUMBER = '(0|[1-9]\\d{0,18})';
const SUFFIX = '(?:-([0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*))?(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?';
const PARTIAL = new RegExp(`^v?${NUMBER}(?:\\.(?:${NUMBER}|[xX*])(?:\\.(?:${NUMBER}|[xX*])${SUFFIX})?)?$`);
const COMPARISON = /^(>=|<=|!=|==|=|>|<|!)?(.+)$/;

/** Parses a semantic version; undefined if it is invalid. A leading `v` and surrounding spaces are accepted. */
export function parseVersion(text: string): Version | undefined {
  return text.length > MAX_LENGTH ? undefined : parseSemver(text.trim().replace(/^v/, ''));
}

type Test = (version: Version) => boolean;

/** Parses a range; undefined if it is invalid. */
export function parseRange(text: string): Range | undefined {
  if (text.length > MAX_LENGTH || text.trim() === '') return undefined;
  const alternatives: Test[][] = [];
  for (const alternative of text.split('||')) {
    const tests: Test[] = [];
    // Spaces are allowed between a comparison operator and its version.
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
  const [major, minor] = [BigInt(partial[1] ?? 0), partial[2] === undefined ? undefined : BigInt(partial[2])];
  const low: Version = { major, minor: minor ?? 0n, patch: 0n, pre: [] };
  const high: Version =
    minor === undefined
      ? { major: major + 1n, minor: 0n, patch: 0n, pre: [] }
      : { major, minor: minor + 1n, patch: 0n, pre: [] };
  switch (operator) {
    case '=':
    case '==':
      return [testOf('>=', low), testOf('<', high)];
    case '!=':
    case '!':
      return [(version) => compareSemver(version, low) < 0 || compareSemver(version, high) >= 0];
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
      return (version) => compareSemver(version, bound) > 0;
    case '>=':
      return (version) => compareSemver(version, bound) >= 0;
    case '<':
      return (version) => compareSemver(version, bound) < 0;
    case '<=':
      return (version) => compareSemver(version, bound) <= 0;
    case '!=':
    case '!':
      return (version) => compareSemver(version, bound) !== 0;
    default:
      return (version) => compareSemver(version, bound) === 0;
  }
}
