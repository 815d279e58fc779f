/** Formats JSON values as Go's `%v` does, for upstream's error messages. */

type Printed = null | boolean | number | bigint | string | readonly Printed[] | { readonly [key: string]: Printed };

const MAX_SHOWN = 253;

/** The value as text of at most `atMost` characters. */
export function goText(value: Printed, atMost = MAX_SHOWN): string {
  if (value === null) return '<nil>';
  if (typeof value !== 'object') return String(value).slice(0, atMost);
  const names = Array.isArray(value) ? undefined : Object.keys(value).sort();
  let text = names === undefined ? '[' : 'map[';
  const parts = names ?? (value as readonly Printed[]);
  for (let at = 0; at < parts.length && text.length < atMost; at += 1) {
    const name = names?.[at];
    const part = (name === undefined ? parts[at] : (value as { readonly [key: string]: Printed })[name]) ?? null;
    text += `${at === 0 ? '' : ' '}${name === undefined ? '' : `${name}:`}${goText(part, atMost - text.length)}`;
  }
  return `${text}]`;
}
