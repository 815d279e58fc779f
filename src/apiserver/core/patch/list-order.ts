/**
 * Order of a list after a strategic merge. Items in the patch have the order of the patch. Items that only the live
 * object has stay before the patch items that they preceded there, as far as both orders are compatible.
 */
export function orderByPatch<T>(
  merged: readonly T[],
  live: readonly T[],
  wanted: readonly string[],
  idOf: (item: T) => string,
): T[] {
  const rank = new Map<string, number>();
  for (const [index, id] of wanted.entries()) if (!rank.has(id)) rank.set(id, index);
  const place = new Map<string, number>();
  for (const [index, item] of live.entries()) {
    const id = idOf(item);
    if (!place.has(id)) place.set(id, index);
  }
  const known: T[] = [];
  const others: T[] = [];
  for (const item of merged) (rank.has(idOf(item)) ? known : others).push(item);
  known.sort((a, b) => (rank.get(idOf(a)) ?? 0) - (rank.get(idOf(b)) ?? 0));
  return interleave(others, known, (item) => place.get(idOf(item)));
}

/**
 * Merges two lists and keeps the order of each. An item of `others` precedes an item of `known` if both have a place
 * and the place of the former item is lower.
 */
function interleave<T>(others: readonly T[], known: readonly T[], placeOf: (item: T) => number | undefined): T[] {
  const result: T[] = [];
  let next = 0;
  for (const item of known) {
    const place = placeOf(item);
    for (; place !== undefined && next < others.length; next++) {
      const other = others[next];
      const otherPlace = other === undefined ? undefined : placeOf(other);
      if (other === undefined || otherPlace === undefined || otherPlace > place) break;
      result.push(other);
    }
    result.push(item);
  }
  result.push(...others.slice(next));
  return result;
}
