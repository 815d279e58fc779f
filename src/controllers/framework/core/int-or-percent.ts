/** Resolves `maxSurge` and similar fields: an absolute number or a percentage of a total. */
export function resolveIntOrPercent(
  value: number | string | undefined,
  total: number,
  round: 'up' | 'down',
  fallback: number | string,
): number {
  const given = value ?? fallback;
  if (typeof given === 'number') return Math.max(0, given);
  const match = /^(\d{1,9})(%?)$/.exec(given);
  if (match === null) return 0;
  const number = Number(match[1]);
  if (match[2] === '') return number;
  const exact = (number * total) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}
