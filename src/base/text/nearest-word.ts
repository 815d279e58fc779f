/**
 * The candidate that is most similar to a mistyped word; undefined if none is similar. Two swapped letters count as one
 * mistake.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const most = Math.min(3, Math.max(1, Math.floor(word.length / 3)));
  let best: string | undefined;
  let least = most + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const distance = distanceOf(word, candidate);
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

const LONGEST = 64;

/** Optimal string alignment distance. Words of more than 64 characters have a large distance to all others. */
function distanceOf(left: string, right: string): number {
  if (left.length > LONGEST || right.length > LONGEST) return LONGEST;
  const rows: number[][] = [Array.from({ length: right.length + 1 }, (_, at) => at)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0;
  for (let row = 1; row <= left.length; row += 1) {
    rows.push([row]);
    for (let column = 1; column <= right.length; column += 1) {
      const differs = left[row - 1] === right[column - 1] ? 0 : 1;
      const isSwap =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      rows[row]?.push(
        Math.min(
          at(row - 1, column) + 1,
          at(row, column - 1) + 1,
          at(row - 1, column - 1) + differs,
          isSwap ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(left.length, right.length);
}
