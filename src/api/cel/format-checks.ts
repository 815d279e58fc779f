/**
 * Static checks of a format string: its clauses, and the types of the arguments. Source: cel-go's ext/formatting.go.
 */
import { formatType, type Type } from './types.ts';

export interface FormatProblem {
  /** Index of the value. Undefined: the problem is in the text or in the number of values. */
  readonly index: number | undefined;
  readonly message: string;
}

type Kind = Type['kind'];

const EVERYTHING: readonly Kind[] = [
  'list',
  'map',
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'timestamp',
  'bytes',
  'duration',
  'type',
  'null',
];
const CLAUSES: Readonly<Record<string, readonly [kinds: readonly Kind[], what: string]>> = {
  s: [
    EVERYTHING,
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
  ],
  d: [['int', 'uint'], 'decimal clause can only be used on integers'],
  f: [['double', 'string'], 'fixed-point clause can only be used on doubles'],
  e: [['double', 'string'], 'scientific clause can only be used on doubles'],
  b: [['int', 'uint', 'bool'], 'only integers and bools can be formatted as binary'],
  x: [['int', 'uint', 'string', 'bytes'], 'only integers, byte buffers, and strings can be formatted as hex'],
  o: [['int', 'uint'], 'octal clause can only be used on integers'],
};

/**
 * Returns a problem of the format string `pattern`; undefined if there is none. `values`: types of the arguments;
 * undefined if the arguments are not a list literal, so that only the text can be checked.
 */
export function formatProblem(pattern: string, values: readonly Type[] | undefined): FormatProblem | undefined {
  const whole = (message: string): FormatProblem => ({ index: undefined, message });
  const parse = (message: string): FormatProblem => whole(`could not parse formatting clause: ${message}`);
  let next = 0;
  for (let at = pattern.indexOf('%'); at >= 0; at = pattern.indexOf('%', at)) {
    const rest = pattern.slice(at + 1);
    if (rest === '') return whole('unexpected end of string');
    if (rest.startsWith('%')) {
      at += 2;
      continue;
    }
    if (values !== undefined && next >= values.length) return whole(`index ${next} out of range`);
    const precision = /^\.(\d*)/.exec(rest);
    const digits = precision?.[1];
    if (precision !== null && precision[0].length === rest.length)
      return parse('error while parsing precision: could not find end of precision specifier');
    if (digits === '')
      return parse(
        'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
      );
    const length = precision?.[0].length ?? 0;
    const verb = String.fromCodePoint(rest.codePointAt(length) ?? 0);
    const clause = CLAUSES[verb === 'X' ? 'x' : verb];
    if (clause === undefined) return parse(`unrecognized formatting clause "${verb}"`);
    const type = values?.[next];
    if (type !== undefined && type.kind !== 'dyn' && type.kind !== 'param' && !clause[0].includes(type.kind))
      return { index: next, message: `error during formatting: ${clause[1]}, was given ${nameOf(type)}` };
    next += 1;
    at += 1 + length + verb.length;
  }
  return values !== undefined && next < values.length
    ? whole(`too many arguments supplied to string.format (expected ${next}, got ${values.length})`)
    : undefined;
}

const nameOf = (type: Type): string =>
  type.kind === 'list' || type.kind === 'map' ? type.kind : type.kind === 'null' ? 'null_type' : formatType(type);
