/** Durations in Go's format: `500ms`, `1h30m`. */

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

/** Maximum text length, because the input is not trusted. */
const MAX_TEXT = 256;

/** Milliseconds, or undefined if the text is invalid. Source: time.ParseDuration. */
export function parseDuration(text: string): number | undefined {
  if (text.length > MAX_TEXT) return undefined;
  const [, sign, rest = ''] = /^([+-]?)(.*)$/.exec(text) ?? [];
  if (rest === '0') return 0;
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(rest)) return undefined;
  let ms = 0;
  for (const [, number = '', unit = ''] of rest.matchAll(/([\d.]+)([a-zµμ]+)/g))
    ms += Number(number) * (UNIT_MS.get(unit) ?? 0);
  return sign === '-' ? -ms : ms;
}
