/**
 * Field paths in rules and selectable fields, for example `.spec.size` or `.labels['a.b']`. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go (ValidFieldPath).
 */
import type { Schema } from './schema.ts';

export interface FieldPath {
  /** Form for errors: `spec.size`, `labels[a.b]`. */
  readonly text: string;
  readonly steps: readonly string[];
  /** Schema of the field; undefined below `additionalProperties: true`. */
  readonly schema: Schema | undefined;
}

/** A quoted name, a delimiter, or a name up to the next delimiter. An unterminated quote is a token of its own. */
const TOKEN = /'(?:[^'\\]|\\.)*'|[.[\]]|[^.[\]']+|'/gs;

/** Throws an Error that describes an invalid path. `brackets`: whether `['name']` is allowed. */
export function resolveFieldPath(
  schema: Schema,
  path: string,
  { brackets }: { readonly brackets: boolean },
): FieldPath {
  const tokens = path.match(TOKEN) ?? [];
  const steps: string[] = [];
  let text = '';
  let at: Schema | undefined = schema;
  let next = 0;
  const take = (): string => {
    const token = tokens[next++];
    if (token === undefined) throw new Error('unexpected end of JSON path');
    return token;
  };
  const enter = (name: string): void => {
    const named: boolean = (at?.properties.size ?? 0) > 0;
    if (at === undefined || (!named && at.additional === undefined)) throw new Error('does not refer to a valid field');
    const below: Schema | undefined = named
      ? at.properties.get(name)
      : typeof at.additional === 'object'
        ? at.additional
        : undefined;
    if (named && below === undefined) throw new Error('does not refer to a valid field');
    text += named ? `${text === '' ? '' : '.'}${name}` : `[${name}]`;
    steps.push(name);
    at = below;
  };
  while (next < tokens.length) {
    const token = take();
    if (token === '.') enter(take());
    else if (token === '[') {
      if (!brackets) throw new Error('array notation is not allowed');
      const quoted = take();
      if (!/^'.*'$/s.test(quoted)) throw new Error(`expected single quoted string but got ${quoted}`);
      enter(unquoted(quoted.slice(1, -1)));
      const close = take();
      if (close !== ']') throw new Error(`expected ] but got ${close}`);
    } else throw new Error(`expected [ or . but got: ${token}`);
  }
  return { text, steps, schema: at };
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '\\': '\\',
};

function unquoted(text: string): string {
  return text.replaceAll(/\\(.)/gs, (match, char: string) => {
    const meant = ESCAPES[char];
    if (meant === undefined) throw new Error(`invalid string literal: invalid escape char ${match}`);
    return meant;
  });
}
