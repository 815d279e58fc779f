const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Size with a unit, for example `1.5MiB`. `space`: text between number and unit. */
export function bytesText(bytes: number, space = ''): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)}${space}${UNITS[unit]}`;
}
