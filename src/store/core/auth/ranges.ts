/**
 * Permissions as sets of keys. Overlapping and adjacent ranges are merged, so that two adjacent grants permit a range
 * across both, as in etcd (server/auth/range_perm_cache.go).
 */
import { type AuthPermission, PermissionType } from '../messages/auth.ts';

/** Keys from `start` up to, but not including, `end`; undefined for no end. */
interface KeyRange {
  readonly start: string;
  readonly end: string | undefined;
}

export function keyRange(key: string, end: string): KeyRange {
  if (end === '') return { start: key, end: `${key}\0` };
  return { start: key, end: end === '\0' ? undefined : end };
}

/** Sorted list of disjoint ranges that are not adjacent. */
export class KeySet {
  readonly #ranges: readonly KeyRange[];

  constructor(ranges: readonly KeyRange[]) {
    const sorted = ranges
      .filter(({ start, end }) => end === undefined || start < end)
      .sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
    const merged: KeyRange[] = [];
    for (const range of sorted) {
      const last = merged.at(-1);
      if (last === undefined || (last.end !== undefined && last.end < range.start)) merged.push(range);
      else merged[merged.length - 1] = { start: last.start, end: later(last.end, range.end) };
    }
    this.#ranges = merged;
  }

  /** Whether every key of `range` is in the set. */
  contains(range: KeyRange): boolean {
    let low = 0;
    let high = this.#ranges.length;
    // Find the last range that starts at or before the first key.
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ranges[middle] as KeyRange).start <= range.start) low = middle + 1;
      else high = middle;
    }
    const candidate = this.#ranges[low - 1];
    if (candidate === undefined) return false;
    if (candidate.end === undefined) return true;
    return range.start < candidate.end && range.end !== undefined && range.end <= candidate.end;
  }
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return undefined;
  return a > b ? a : b;
}

export interface Grants {
  readonly read: KeySet;
  readonly write: KeySet;
}

export function mergeGrants(permissions: readonly AuthPermission[]): Grants {
  const of = (wanted: number): KeySet =>
    new KeySet(
      permissions
        .filter(({ type }) => type === wanted || type === PermissionType.readwrite)
        .map(({ key, end }) => keyRange(key, end)),
    );
  return { read: of(PermissionType.read), write: of(PermissionType.write) };
}

/**
 * False for permissions that could never match: without a key, or with an end not after the key. Source: etcd 3.5
 * server/auth/store.go.
 */
export function isValidPermission({ type, key, end }: AuthPermission): boolean {
  if (type !== PermissionType.read && type !== PermissionType.write && type !== PermissionType.readwrite) return false;
  if (key === '') return false;
  return end === '' || end === '\0' || key < end;
}
