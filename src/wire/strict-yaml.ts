/**
 * Strict parser for configuration files: an unknown or duplicate key, a custom tag, an alias or a value of the wrong
 * type is rejected with one line: file, line, field and the fix.
 */
import { readFile } from 'node:fs/promises';
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type Node as YamlNode,
} from 'yaml';
import { CodedError, messageOf } from '../base/errors.ts';

const MAX_BYTES = 1024 * 1024;
/** Characters of a value that error messages contain. */
const MAX_SHOWN = 100;

/** The type of a field. `parse` returns the value or throws a CodedError. */
export interface Field<T> {
  parse(at: Cursor): T;
  /** JSON Schema of the accepted values; absent if it is not published. */
  readonly schema?: JsonSchema;
}

/** JSON Schema, draft 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Throws an Error for a field without a schema. */
export function schemaOf(field: Field<unknown>): JsonSchema {
  if (field.schema === undefined) throw new Error('a field has no schema');
  return field.schema;
}

/** A position in a document: the node, the field's path, and its errors. */
export interface Cursor {
  readonly node: YamlNode | null;
  readonly path: string;
  fail(what: string, node?: YamlNode | null): never;
  into(node: YamlNode | null, path: string): Cursor;
}

/** The file's value; undefined if the file does not exist. Throws CodedError 'bad-config'. */
export async function readConfigFile<T>(file: string, field: Field<T>): Promise<T | undefined> {
  const text = await readIfPresent(file);
  return text === undefined ? undefined : parseConfig(text, file, field);
}

/** Undefined when there is no such file. Throws CodedError 'bad-config' when it cannot be read. */
export async function readIfPresent(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('bad-config', `cannot read ${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Throws CodedError 'bad-config': `file:line: field: what is wrong; the fix`. */
export function parseConfig<T>(text: string, file: string, field: Field<T>): T {
  return parseWithLines(text, file, field).value;
}

/**
 * Like parseConfig, with a function that returns the line of a field's path; undefined for a path that is not given.
 */
export function parseWithLines<T>(
  text: string,
  file: string,
  field: Field<T>,
): { readonly value: T; readonly lineOf: (path: readonly string[]) => number | undefined } {
  if (text.length > MAX_BYTES) throw new CodedError('bad-config', `${file}: larger than ${MAX_BYTES} bytes`);
  const lines = new LineCounter();
  const lineOf = (offset: number): number => lines.linePos(offset).line;
  const refuse = (line: number, what: string): never => {
    throw new CodedError('bad-config', `${file}:${line}: ${what}`);
  };
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, schema: 'core', logLevel: 'error' });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined) {
    const what = (problem.message.split('\n')[0] ?? '').replace(/ at line \d+.*$/, '').replace(/:$/, '');
    refuse(Math.min(lineOf(problem.pos[0]), text.split('\n').length), what);
  }
  visit(document, {
    Alias: (_, node) => refuse(lineOf(node.range?.[0] ?? 0), 'aliases are not accepted: write the value out'),
    Node: (_, node) => {
      // Core schema tags are resolved from the value, so every explicit tag is a custom tag.
      if (node.tag?.startsWith('!')) refuse(lineOf(node.range?.[0] ?? 0), `tag "${node.tag}" is not accepted`);
      return undefined;
    },
  });
  const cursor = (node: YamlNode | null, path: string): Cursor => ({
    node,
    path,
    into: cursor,
    fail: (what, at = node) => refuse(lineOf(at?.range?.[0] ?? 0), path === '' ? what : `${path}: ${what}`),
  });
  return {
    value: field.parse(cursor(document.contents as YamlNode | null, '')),
    lineOf: (path) => {
      const node = document.getIn(path, true) as YamlNode | undefined;
      return node?.range == null ? undefined : lineOf(node.range[0]);
    },
  };
}

/** `secret`: errors do not contain the value. */
export function string(check?: {
  readonly pattern: RegExp;
  readonly fix: string;
  readonly secret?: boolean;
}): Field<string> {
  return {
    schema: {
      type: 'string',
      ...(check === undefined ? {} : { pattern: check.pattern.source, description: check.fix }),
    },
    parse: (at) => {
      const value = scalar(at);
      if (typeof value !== 'string') return at.fail(`must be a string, not ${describe(at.node)}`);
      if (check === undefined || check.pattern.test(value)) return value;
      return at.fail(`${check.secret === true ? 'the value' : shown(value)} is not accepted; ${check.fix}`);
    },
  };
}

/** A string that `test` accepts; otherwise `test` returns the fix. */
export function checkedString(test: (value: string) => string | undefined, description?: string): Field<string> {
  const base = string();
  return {
    schema: { type: 'string', ...(description === undefined ? {} : { description }) },
    parse: (at) => {
      const value = base.parse(at);
      const fix = test(value);
      return fix === undefined ? value : at.fail(`${shown(value)} is not accepted; ${fix}`);
    },
  };
}

export function oneOf<const T extends string>(...values: readonly T[]): Field<T> {
  return {
    schema: { enum: values },
    parse: (at) => {
      const value = scalar(at);
      const found = values.find((each) => each === value);
      return found ?? at.fail(`must be one of ${values.join(', ')}, not ${describe(at.node)}`);
    },
  };
}

export function integer(min: number, max: number): Field<number> {
  return {
    schema: { type: 'integer', minimum: min, maximum: max },
    parse: (at) => {
      const value = scalar(at);
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
        return at.fail(`must be a whole number from ${min} to ${max}, not ${describe(at.node)}`);
      }
      return value;
    },
  };
}

export function boolean(): Field<boolean> {
  return {
    schema: { type: 'boolean' },
    parse: (at) => {
      const value = scalar(at);
      return typeof value === 'boolean' ? value : at.fail(`must be true or false, not ${describe(at.node)}`);
    },
  };
}

export function list<T>(element: Field<T>): Field<T[]> {
  return {
    ...(element.schema === undefined ? {} : { schema: { type: 'array', items: element.schema } }),
    parse: (at) => {
      if (!isSeq(at.node)) return at.fail(`must be a list, not ${describe(at.node)}`);
      return at.node.items.map((item, index) => element.parse(at.into(item as YamlNode, `${at.path}[${index}]`)));
    },
  };
}

/** A mapping with arbitrary keys. */
export function dictionary<T>(element: Field<T>): Field<ReadonlyMap<string, T>> {
  return {
    ...(element.schema === undefined ? {} : { schema: { type: 'object', additionalProperties: element.schema } }),
    parse: (at) => {
      const entries = pairsOf(at).map(
        ([key, value]) => [key, element.parse(at.into(value, join(at.path, key)))] as const,
      );
      return new Map(entries);
    },
  };
}

type Shape = Readonly<Record<string, Field<unknown>>>;
type ValueOf<F> = F extends Field<infer T> ? T : never;
export type Parsed<S extends Shape, R extends keyof S> = { readonly [K in R]: ValueOf<S[K]> } & {
  readonly [K in Exclude<keyof S, R>]?: ValueOf<S[K]>;
};

/**
 * A mapping with only these keys. With `onUnknown`, other keys are reported to this function and ignored, and a key
 * without a value counts as absent, because files of OKD contain both.
 */
export function object<const S extends Shape, R extends keyof S & string = never>(
  shape: S,
  required: readonly R[] = [],
  onUnknown?: (path: string) => void,
): Field<Parsed<S, R>> {
  const fields = Object.entries(shape);
  return {
    ...(fields.some(([, field]) => field.schema === undefined) ? {} : { schema: objectSchema(fields, required) }),
    parse: (at) => {
      const result: Record<string, unknown> = {};
      for (const [key, value, keyNode] of pairsOf(at)) {
        const field = Object.hasOwn(shape, key) ? shape[key] : undefined;
        const isEmpty = value === null || (isScalar(value) && value.value === null);
        if (onUnknown !== undefined && (field === undefined || isEmpty)) {
          if (!isEmpty) onUnknown(join(at.path, key));
          continue;
        }
        if (field === undefined) {
          const known = Object.keys(shape).join(', ');
          return at.into(keyNode, join(at.path, key)).fail(`unknown field; known fields are ${known}`);
        }
        const next = at.into(value ?? keyNode, join(at.path, key));
        if (isEmpty) next.fail('has no value; give one or remove the line');
        result[key] = field.parse(next);
      }
      for (const key of required) {
        if (!Object.hasOwn(result, key)) at.fail(`${join(at.path, key)} is missing`);
      }
      return result as Parsed<S, R>;
    },
  };
}

const objectSchema = (
  fields: readonly (readonly [string, Field<unknown>])[],
  required: readonly string[],
): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(fields.map(([key, field]) => [key, field.schema])),
  ...(required.length === 0 ? {} : { required }),
  additionalProperties: false,
});

function pairsOf(at: Cursor): [string, YamlNode | null, YamlNode][] {
  if (!isMap(at.node)) return at.fail(`must be a mapping of fields, not ${describe(at.node)}`);
  const seen = new Set<string>();
  return at.node.items.map((item) => {
    const pair = item as Pair<YamlNode, YamlNode | null>;
    const key = isScalar(pair.key) ? String(pair.key.value) : at.fail('keys must be plain strings', pair.key);
    if (seen.has(key)) at.into(pair.key, join(at.path, key)).fail('given twice; remove one');
    seen.add(key);
    return [key, pair.value, pair.key];
  });
}

function scalar(at: Cursor): unknown {
  return isScalar(at.node) ? at.node.value : undefined;
}

function describe(node: YamlNode | null): string {
  if (isMap(node)) return 'a mapping';
  if (isSeq(node)) return 'a list';
  if (isAlias(node) || node === null) return 'nothing';
  if (isScalar(node)) return node.value === null ? 'nothing' : shown(node.value);
  return 'something else';
}

/** A value on one line. Long values are truncated. */
function shown(value: unknown): string {
  const text = typeof value === 'string' && value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value;
  return JSON.stringify(text);
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
