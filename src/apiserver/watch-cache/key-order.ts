/**
 * Order of store keys: namespace, then name, as bytes. Keys are ASCII; '/' sorts before letters but not before '-' and
 * '.'.
 */
import type { CachedObject } from './cached-object.ts';

export const byKey = (left: CachedObject, right: CachedObject): number =>
  compareKeys(left, right.namespace, right.name);

function compareKeys(left: CachedObject, namespace: string, name: string): number {
  if (left.namespace !== namespace) return `${left.namespace}/` < `${namespace}/` ? -1 : 1;
  return left.name < name ? -1 : left.name > name ? 1 : 0;
}

/** Index of an object with this key in `sorted`, or the index at which it would be inserted. */
export function lowerBound(sorted: readonly CachedObject[], namespace: string, name: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const candidate = sorted[middle];
    if (candidate !== undefined && compareKeys(candidate, namespace, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Start and end index of the objects of a namespace in `sorted`. */
export function boundsOf(sorted: readonly CachedObject[], namespace: string): readonly [number, number] {
  // Names are ASCII, so every name sorts before '\uffff'.
  return [lowerBound(sorted, namespace, ''), lowerBound(sorted, namespace, '\uffff')];
}
