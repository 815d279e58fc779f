/**
 * Parser for sets of pod indexes such as `1,3-5,7`. Source: k8s.io/kubernetes/pkg/apis/batch/validation
 * validateIndexesFormat.
 */
type Interval = readonly [from: number, to: number];

/** Sorted intervals of the text, or an error message. */
export function parseIndexes(text: string, completions: number): Interval[] | string {
  const intervals: Interval[] = [];
  if (text === '') return intervals;
  let last = -1;
  for (const part of text.split(',')) {
    const bounds = part.split('-');
    if (bounds.length > 2)
      return `the fragment "${part}" violates the requirement that an index interval can have at most two parts separated by '-'`;
    const numbers = bounds.map((bound) => (/^\d{1,10}$/.test(bound) ? Number(bound) : Number.NaN));
    const [from = Number.NaN, to = from] = numbers;
    if (Number.isNaN(from) || Number.isNaN(to))
      return `cannot convert string to integer for index: "${bounds.find((_, index) => Number.isNaN(numbers[index])) ?? ''}"`;
    if (from >= completions || to >= completions)
      return `too large index: "${from >= completions ? bounds[0] : bounds[1]}"`;
    if (from <= last) return `non-increasing order, previous: ${last}, current: ${from}`;
    if (bounds.length === 2 && to <= from) return `non-increasing order, previous: ${from}, current: ${to}`;
    intervals.push([from, to]);
    last = to;
  }
  return intervals;
}

/** The first index that is in both sets. */
export function overlapOf(some: readonly Interval[], others: readonly Interval[]): number | undefined {
  let index = 0;
  for (const [from, to] of some) {
    while ((others[index]?.[1] ?? Number.POSITIVE_INFINITY) < from) index += 1;
    const other = others[index];
    if (other === undefined) return undefined;
    if (other[0] <= to) return Math.max(from, other[0]);
  }
  return undefined;
}
