/** JSON and YAML in the form that kubectl prints: sorted keys, Go's escapes, lists that are not indented. */
/** A value with the keys of all objects in order, as Go's maps are encoded. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== undefined)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

const ESCAPED: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** JSON of encoding/json: keys in order, characters of HTML escaped. */
export const goJson = (value: unknown, indent = 0): string =>
  JSON.stringify(sorted(value), undefined, indent).replaceAll(/[<>&\u2028\u2029]/g, (char) => ESCAPED[char] ?? char);

/** JSON document as kubectl prints it. */
export const jsonDocument = (value: unknown): string => `${goJson(value, 4)}\n`;

/** The part of the module `yaml` that is used. */
export interface YamlWriter {
  stringify(value: unknown, options: object): string;
}

/** YAML document as kubectl prints it. The module `yaml` is an argument because most calls do not need it. */
export function yamlDocument(yaml: YamlWriter, value: unknown): string {
  return yaml.stringify(sorted(value), {
    lineWidth: 0,
    indentSeq: false,
    aliasDuplicateObjects: false,
    version: '1.1',
    defaultStringType: 'PLAIN',
    blockQuote: 'literal',
  });
}
