/** Release versions: semantic versions without build metadata. Source: semver.org 2.0.0, section 11. */

const RELEASE = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})(?:-([0-9a-z]+(?:[.-][0-9a-z]+)*))?$/;
const MAX_LENGTH = 63;

/** Whether the text is a valid release version. It must be lower case, because files and objects are named after it. */
export const isReleaseVersion = (text: string): boolean => text.length <= MAX_LENGTH && RELEASE.test(text);

/** Negative if `a` is older than `b`. Invalid text is older than all versions. */
export function compareReleases(a: string, b: string): number {
  const [left, right] = [RELEASE.exec(a), RELEASE.exec(b)];
  if (left === null || right === null) return Number(left !== null) - Number(right !== null);
  for (const index of [1, 2, 3]) {
    const difference = Number(left[index]) - Number(right[index]);
    if (difference !== 0) return difference;
  }
  return comparePre(left[4], right[4]);
}

/** A pre-release is older than its release. */
function comparePre(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [left, right] = [a.split('.'), b.split('.')];
  for (let index = 0; index < Math.max(left.length, right.length); index++) {
    const [one, other] = [left[index], right[index]];
    if (one === undefined || other === undefined) return one === undefined ? -1 : 1;
    if (one === other) continue;
    const [first, second] = [/^\d+$/.test(one), /^\d+$/.test(other)];
    if (first && second && Number(one) !== Number(other)) return Number(one) - Number(other);
    if (first !== second) return first ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return 0;
}

/** Undefined for an empty list. */
export const oldestVersion = (versions: readonly string[]): string | undefined => versions.toSorted(compareReleases)[0];

/** Whether the minor or major version differs. */
export function isMinorChange(from: string, to: string): boolean {
  const [left, right] = [RELEASE.exec(from), RELEASE.exec(to)];
  return left === null || right === null || left[1] !== right[1] || left[2] !== right[2];
}
