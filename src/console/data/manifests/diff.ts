/** Line differences of two short texts, for the preview of an apply. */

export interface DiffLine {
  readonly kind: ' ' | '+' | '-';
  readonly text: string;
}

/** Limit of the table for the comparison. Above it, the old text is shown as removed and the new text as added. */
const MAX_CELLS = 4_000_000;

export function diffLines(before: string, after: string): readonly DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (text: string): DiffLine => ({ kind: ' ', text });
  return [
    ...a.slice(0, start).map(same),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ];
}

/** Differences by the longest common subsequence, computed with dynamic programming. */
function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = a.map((text): DiffLine => ({ kind: '-', text }));
  const added = b.map((text): DiffLine => ({ kind: '+', text }));
  if (a.length === 0 || b.length === 0 || a.length * b.length > MAX_CELLS) return [...removed, ...added];
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let row = a.length - 1; row >= 0; row--)
    for (let column = b.length - 1; column >= 0; column--)
      lengths[row * width + column] =
        a[row] === b[column]
          ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(lengths[(row + 1) * width + column] ?? 0, lengths[row * width + column + 1] ?? 0);
  const lines: DiffLine[] = [];
  let row = 0;
  let column = 0;
  while (row < a.length && column < b.length)
    if (a[row] === b[column]) {
      lines.push({ kind: ' ', text: a[row++] ?? '' });
      column++;
    } else if ((lengths[(row + 1) * width + column] ?? 0) >= (lengths[row * width + column + 1] ?? 0))
      lines.push({ kind: '-', text: a[row++] ?? '' });
    else lines.push({ kind: '+', text: b[column++] ?? '' });
  return [...lines, ...removed.slice(row), ...added.slice(column)];
}

/** Changed lines with `context` unchanged lines around each. */
export function hunks(lines: readonly DiffLine[], context = 3): readonly DiffLine[] {
  const kept = new Set<number>();
  for (const [index, { kind }] of lines.entries())
    if (kind !== ' ') for (let near = index - context; near <= index + context; near++) kept.add(near);
  return lines.filter((_, index) => kept.has(index));
}
