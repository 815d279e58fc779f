/** Range of rows of a long list that is in the page, and the heights of the spaces for the others, in pixels. */
export interface RowWindow {
  readonly first: number;
  /** Index after the last row. */
  readonly end: number;
  readonly before: number;
  readonly after: number;
}

export interface RowWindowFacts {
  readonly count: number;
  /** Height of a row; undefined if the row was not measured yet. */
  readonly heightOf: (index: number) => number | undefined;
  /** Height of rows that were not measured. */
  readonly estimate: number;
  readonly top: number;
  readonly height: number;
  /** Distance above and below the visible part in which rows are in the page too. */
  readonly margin: number;
}

/** Rows between `margin` above and below the visible part. If the list ends above it, the last rows are the result. */
export function rowWindow({ count, heightOf, estimate, top, height, margin }: RowWindowFacts): RowWindow {
  const heights = Array.from({ length: count }, (_, index) => heightOf(index) ?? estimate);
  const total = heights.reduce((sum, each) => sum + each, 0);
  const from = Math.max(0, Math.min(top, total - height) - margin);
  const to = from + height + 2 * margin;
  let first = 0;
  let before = 0;
  while (first < count - 1 && before + (heights[first] ?? 0) <= from) before += heights[first++] ?? 0;
  let end = first;
  let bottom = before;
  while (end < count && bottom < to) bottom += heights[end++] ?? 0;
  return { first, end, before, after: total - bottom };
}
