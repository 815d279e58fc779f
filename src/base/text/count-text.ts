/** A count with its noun in the singular or plural: `1 file`, `2 files`. */
export function countText(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}
