/** Release versions: semantic versions without build metadata. Source: semver.org 2.0.0, section 11. */
import { comparePre } from './semver.ts';

const RELEASE = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9a-z]+(?:[.-][0-9a-z]+)*))?$/;
const MAX_LENGTH = 63;

/** Whether the text is a valid release version. It must be lower case, because files and objects are named after it. */
export const isReleaseVersion = (text: string): boolean => text.length <= MAX_LENGTH && RELEASE.test(text);

/**
 * Compares two releases. The result is negative if `a` is older than `b`. An invalid text is older than all versions.
 */
export function compareReleases(a: string, b: string): number {
  const [left, right] = [RELEASE.exec(a), RELEASE.exec(b)];
  if (left === null || right === null) return Number(left !== null) - Number(right !== null);
  for (const index of [1, 2, 3]) {
    const difference = Number(left[index]) - Number(right[index]);
    if (difference !== 0) return difference;
  }
  return comparePre(left[4]?.split('.') ?? [], right[4]?.split('.') ?? []);
}

/** The oldest of the versions; undefined for an empty list. */
export const oldestVersion = (versions: readonly string[]): string | undefined => versions.toSorted(compareReleases)[0];

/** Whether the minor or major version differs. */
export function isMinorChange(from: string, to: string): boolean {
  const [left, right] = [RELEASE.exec(from), RELEASE.exec(to)];
  return left === null || right === null || left[1] !== right[1] || left[2] !== right[2];
}
