/**
 * Semantic versions. Source: semver.org 2.0.0. Numbers have at most 19 digits, because upstream's library
 * (github.com/blang/semver) parses them as 64-bit integers.
 */

export interface SemanticVersion {
  readonly major: bigint;
  readonly minor: bigint;
  readonly patch: bigint;
  /** Identifiers of the pre-release, which dots separate in the text; empty for a release. */
  readonly pre: readonly string[];
}

const MAX_LENGTH = 256;
const NUMBER = '(0|[1-9]\\d{0,18})';
const IDENTIFIERS = '[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*';
const VERSION = new RegExp(`^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-(${IDENTIFIERS}))?(?:\\+${IDENTIFIERS})?$`);

/** Parses a semantic version; undefined if `text` is invalid. Build metadata is dropped. */
export function parseSemver(text: string): SemanticVersion | undefined {
  const match = text.length > MAX_LENGTH ? null : VERSION.exec(text);
  if (match === null) return undefined;
  const [, major = '', minor = '', patch = '', suffix] = match;
  const pre = suffix?.split('.') ?? [];
  // Numeric identifiers of a pre-release must not have leading zeros.
  if (pre.some((identifier) => /^0\d+$/.test(identifier))) return undefined;
  return { major: BigInt(major), minor: BigInt(minor), patch: BigInt(patch), pre };
}

/** Compares two versions: negative if `a` is older than `b`, zero if their precedence is equal. */
export function compareSemver(a: SemanticVersion, b: SemanticVersion): number {
  return (
    compareNumbers(a.major, b.major) ||
    compareNumbers(a.minor, b.minor) ||
    compareNumbers(a.patch, b.patch) ||
    comparePre(a.pre, b.pre)
  );
}

/**
 * Compares the pre-release identifiers of two versions. A release, which has none, is newer than all its pre-releases.
 * Numbers are older than words, and words are ordered by ASCII. Source: semver.org 2.0.0, section 11.
 */
export function comparePre(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return Math.sign(b.length) - Math.sign(a.length);
  for (const [index, own] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    if (own === other) continue;
    const [first, second] = [/^\d+$/.test(own), /^\d+$/.test(other)];
    if (first !== second) return first ? -1 : 1;
    const order = first ? compareNumbers(BigInt(own), BigInt(other)) : 0;
    if (order !== 0) return order;
    return own < other ? -1 : 1;
  }
  return Math.sign(a.length - b.length);
}

function compareNumbers(a: bigint, b: bigint): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
