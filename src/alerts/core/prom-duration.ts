/** Durations in Prometheus' format: `30s`, `5m`, `1h30m`, `1d`. */

const UNITS = [
  ['y', 31_536_000_000],
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

const FORMAT = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** Parses a duration to milliseconds; undefined if it is invalid. Source: prometheus/common model.ParseDuration. */
export function parsePromDuration(text: string): number | undefined {
  if (text === '0') return 0;
  const match = text === '' || text.length > 64 ? null : FORMAT.exec(text);
  if (match === null) return undefined;
  return UNITS.reduce((sum, [, unit], index) => sum + Number(match[index + 1] ?? 0) * unit, 0);
}
