/** JSON in the form that kubectl prints: sorted keys and Go's escapes. Source: encoding/json. */

const ESCAPED: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** JSON as Go's encoding/json writes it: sorted keys, and `<`, `>` and `&` escaped. */
export const goJson = (value: unknown, indent = 0): string => write(value, indent, '\n');

/** JSON document as kubectl prints it. */
export const jsonDocument = (value: unknown): string => `${goJson(value, 4)}\n`;

/** Writes JSON. `JSON.stringify` cannot be used for objects, because it moves keys that are numbers to the front. */
function write(value: unknown, indent: number, line: string): string {
  if (typeof value !== 'object' || value === null)
    return (JSON.stringify(value) ?? 'null').replaceAll(/[<>&\u2028\u2029]/g, (char) => ESCAPED[char] ?? char);
  const inner = indent === 0 ? '' : line + ' '.repeat(indent);
  const end = indent === 0 ? '' : line;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[${value.map((each) => inner + write(each, indent, inner)).join(',')}${end}]`;
  }
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  if (entries.length === 0) return '{}';
  const colon = indent === 0 ? ':' : ': ';
  const fields = entries
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, each]) => inner + write(key, indent, inner) + colon + write(each, indent, inner));
  return `{${fields.join(',')}${end}}`;
}
