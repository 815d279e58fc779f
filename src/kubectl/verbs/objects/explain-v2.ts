/**
 * Layout of `explain --output=plaintext-openapiv2`, which kubectl printed before version 1.27. kubectl reads the
 * OpenAPI document of version 2 for it; this client derives the same types from the document of version 3. Source: the
 * output of kubectl 1.32.
 */
import { ClientError } from '../../core/errors.ts';
import { referenceOf, resolve, type Schema, type Schemas } from '../../core/openapi.ts';
import { apiVersionOf, type ResourceInfo } from '../../core/resources.ts';

const WIDTH = 80;
const DESCRIPTION_INDENT = 5;
const FIELD_INDENT = 3;
const MAX_DEPTH = 20;

export interface ExplainedField {
  readonly resource: ResourceInfo;
  readonly schemas: Schemas;
  /** Schema of the resource's kind. */
  readonly start: Schema;
  /** Names of the fields below the kind. */
  readonly path: readonly string[];
  readonly isRecursive: boolean;
}

/** Page about a kind or a field. Throws ClientError if the field does not exist. */
export function pageByV2({ resource, schemas, start, path, isRecursive }: ExplainedField): string {
  let schema = start;
  for (const name of path) {
    const field = innermost(schemas, schema).schema.properties?.[name];
    if (field === undefined) throw new ClientError(`field "${name}" does not exist`);
    schema = field;
  }
  const { schema: inner, descriptions } = innermost(schemas, schema);
  const type = typeOf(schemas, schema);
  const isObject = inner.properties !== undefined;
  const lines = [`KIND:     ${resource.kind}`, `VERSION:  ${apiVersionOf(resource)}`, ''];
  const name = path.at(-1);
  if (name !== undefined && isObject) lines.push(`RESOURCE: ${name} <${type}>`, '');
  else if (name !== undefined && isPrimitive(schemas, inner)) lines.push(`FIELD:    ${name} <${type}>`, '');
  lines.push('DESCRIPTION:');
  if (descriptions.every((each) => each === '')) lines.push(...indented('<empty>', DESCRIPTION_INDENT));
  for (const [index, text] of descriptions.entries()) {
    if (text === '') continue;
    if (index > 0) lines.push('');
    lines.push(...indented(text, DESCRIPTION_INDENT));
  }
  if (isObject) {
    lines.push('', 'FIELDS:');
    lines.push(
      ...(isRecursive ? tree(schemas, inner, { level: 1, seen: new Set([inner]) }) : fieldLines(schemas, inner)),
    );
  }
  return `${lines.join('\n')}\n`;
}

/** The schema inside of references, lists and maps, with the descriptions of all parts on the way. */
function innermost(schemas: Schemas, schema: Schema): { readonly schema: Schema; readonly descriptions: string[] } {
  const descriptions: string[] = [];
  let current = schema;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    descriptions.push(current.description ?? '');
    const next = contentOf(schemas, current);
    if (next === undefined) break;
    current = next;
  }
  return { schema: current, descriptions };
}

/** Target of a reference, item of a list or value of a map; undefined for other schemas. */
function contentOf(schemas: Schemas, schema: Schema): Schema | undefined {
  if (referenceOf(schema) !== undefined) {
    const target = resolve(schemas, schema);
    return target === schema ? undefined : target;
  }
  if (schema.items !== undefined) return schema.items;
  const isMap = schema.properties === undefined && typeof schema.additionalProperties === 'object';
  return isMap ? (schema.additionalProperties as Schema) : undefined;
}

function isPrimitive(schemas: Schemas, schema: Schema): boolean {
  const type = typeOf(schemas, schema);
  return type !== '' && !type.startsWith('map[');
}

/** Type of a field. It is empty for values of any type. */
function typeOf(schemas: Schemas, schema: Schema, depth = 0): string {
  if (depth > MAX_DEPTH) return '';
  if (schema.properties !== undefined) return 'Object';
  const next = contentOf(schemas, schema);
  if (next !== undefined) {
    const inner = typeOf(schemas, next, depth + 1);
    if (schema.items !== undefined) return `[]${inner}`;
    return referenceOf(schema) === undefined ? `map[string]${inner}` : inner;
  }
  // The document of version 2 has no alternatives: a number or a text is a text.
  if (schema.oneOf !== undefined) return 'string';
  if (schema.type !== 'object') return schema.type ?? '';
  return schema['x-kubernetes-preserve-unknown-fields'] === true ? '' : 'map[string]';
}

const fieldsOf = (schema: Schema): [name: string, field: Schema][] =>
  Object.entries(schema.properties ?? {}).sort(([left], [right]) => (left < right ? -1 : 1));

function fieldLines(schemas: Schemas, schema: Schema): string[] {
  return fieldsOf(schema).flatMap(([name, field]) => {
    const required = schema.required?.includes(name) === true ? ' -required-' : '';
    const head = `${' '.repeat(FIELD_INDENT)}${name}\t<${typeOf(schemas, field)}>${required}`;
    return [head, ...indented(field.description ?? '', DESCRIPTION_INDENT), ''];
  });
}

interface Position {
  readonly level: number;
  /** Schemas that contain this one, so that recursive types end. */
  readonly seen: ReadonlySet<Schema>;
}

function tree(schemas: Schemas, schema: Schema, { level, seen }: Position): string[] {
  return fieldsOf(schema).flatMap(([name, field]) => {
    const inner = innermost(schemas, field).schema;
    const head = `${' '.repeat(FIELD_INDENT * level)}${name}\t<${typeOf(schemas, field)}>`;
    if (inner.properties === undefined || seen.has(inner) || level > MAX_DEPTH) return [head];
    return [head, ...tree(schemas, inner, { level: level + 1, seen: new Set([...seen, inner]) })];
  });
}

const indented = (text: string, indent: number): string[] =>
  wrapped(text, WIDTH - indent).map((line) => (line === '' ? '' : `${' '.repeat(indent)}${line}`));

/**
 * Fills paragraphs up to the width. Code, which begins with four spaces, empty lines, items of lists and the line after
 * a colon begin a new line.
 */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let words: string[] = [];
  const endLine = (): void => {
    if (words.length > 0) lines.push(words.join(' '));
    words = [];
  };
  for (const line of text.split('\n')) {
    const isCode = line.startsWith('    ');
    const isEmpty = line.trim() === '';
    if (isCode || isEmpty || words.at(-1)?.endsWith(':') === true || /^(?:\d+\.?|-|\*)\s/.test(line.trim())) endLine();
    if (isCode) lines.push(line);
    else if (isEmpty && lines.length > 0) lines.push('');
    else
      for (const word of line.split(/\s+/).filter((each) => each !== '')) {
        if (words.length > 0 && [...words, word].join(' ').length > width) endLine();
        words.push(word);
      }
  }
  endLine();
  return lines;
}
