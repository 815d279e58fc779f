/** `explain`: prints the documentation of a kind or field, from the server's OpenAPI document. Source: kubectl 1.36. */
import { ClientError } from '../../core/errors.ts';
import { openApiPath, referenceOf, resolve, type Schema, type Schemas, schemaOfKind } from '../../core/openapi.ts';
import { apiVersionOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import { pageByV2 } from './explain-v2.ts';

const WIDTH = 76;
const MAX_DEPTH = 20;
/** Number of values of an enumeration that a list of fields shows. */
const MAX_ENUM_VALUES = 4;

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, io } = context;
    const [text] = args;
    if (text === undefined || args.length > 1)
      throw new ClientError(
        `You must specify the type of resource to explain. Use "${context.program} api-resources" for a complete list of supported resources.`,
      );
    const [type = '', ...path] = text.split('.');
    const wanted = flags.text('api-version');
    const found = await session.resource(type).catch((error: unknown) => {
      throw error instanceof ClientError ? new ClientError(error.message, { isPlain: true }) : error;
    });
    const format = flags.text('output');
    if (!['', 'plaintext', 'plaintext-openapiv2'].includes(format))
      throw new ClientError(`unrecognized format: ${format}`);
    const index = await session.resources();
    const resource = wanted === '' ? found : index.byKind(wanted, found.kind);
    const { components } = await session.openApi(openApiPath(resource));
    const schemas = components?.schemas ?? {};
    const start = schemaOfKind(schemas, resource);
    if (start === undefined)
      throw new ClientError(`couldn't find resource for "${apiVersionOf(resource)}, Kind=${resource.kind}"`);
    if (format === 'plaintext-openapiv2') {
      io.out(pageByV2({ resource, schemas, start, path, isRecursive: flags.bool('recursive') }));
      return 0;
    }
    let schema = resolve(schemas, start);
    let field: Schema | undefined;
    const title = `${resource.group === '' ? '' : `GROUP:      ${resource.group}\n`}KIND:       ${resource.kind}\nVERSION:    ${resource.version}\n`;
    for (const name of path) {
      const inner = contentOf(schemas, schema);
      field = inner.properties?.[name];
      if (field === undefined) {
        io.out(`${title}\n`);
        throw new ClientError(`field "${path.at(-1) ?? ''}" does not exist`);
      }
      schema = field;
    }
    const head = [title];
    const shown = contentOf(schemas, schema);
    if (field !== undefined)
      head.push(
        `FIELD: ${path.at(-1) ?? ''} <${typeOf(schemas, field)}>${field.enum === undefined ? '' : `\nENUM:\n${enumText(field)}`}\n`,
      );
    const description = [
      field?.description ?? (field === undefined ? shown.description : undefined),
      field !== undefined && shown !== field ? shown.description : undefined,
    ];
    const parts = description
      .filter((each) => each !== undefined && each !== '')
      .map((each) => `    ${wrapped(each as string, 4)}\n`);
    const gap = field === undefined || field.enum !== undefined ? '' : '\n';
    const description_ = parts.length === 0 ? '    <empty>\n' : `${parts.join('')}    \n`;
    io.out(`${head.join('\n')}${gap}\nDESCRIPTION:\n${description_}`);
    if (shown.properties !== undefined) {
      io.out('FIELDS:\n');
      io.out(flags.bool('recursive') ? tree(schemas, shown, 1, new Set()) : fieldList(schemas, shown));
    }
    io.out('\n');
    return 0;
  });

const enumText = ({ enum: values = [] }: Schema): string => values.map((value) => `    ${enumValue(value)}`).join('\n');

const enumValue = (value: unknown): string => (value === '' ? '""' : String(value));

/** Line of a field list with the values of an enumeration; empty if the field is none. */
function enumLine({ enum: values }: Schema, indent: string): string {
  if (values === undefined) return '';
  const shown = values.slice(0, MAX_ENUM_VALUES).map(enumValue);
  return `${indent}enum: ${[...shown, ...(values.length > shown.length ? ['....'] : [])].join(', ')}\n`;
}

/** The schema of the object inside of lists, maps and references. */
function contentOf(schemas: Schemas, schema: Schema): Schema {
  let current = schema;
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const resolved = resolve(schemas, current);
    const next =
      resolved.items ?? (typeof resolved.additionalProperties === 'object' ? resolved.additionalProperties : undefined);
    if (next === undefined || resolved.properties !== undefined) return resolved;
    current = next;
  }
  return current;
}

function typeOf(schemas: Schemas, schema: Schema): string {
  if (schema.items !== undefined) return `[]${typeOf(schemas, schema.items)}`;
  if (typeof schema.additionalProperties === 'object')
    return `map[string]${typeOf(schemas, schema.additionalProperties)}`;
  const name = referenceOf(schema);
  if (name !== undefined) {
    const target = schemas[name];
    if (
      target !== undefined &&
      target.properties === undefined &&
      target.type !== undefined &&
      target.type !== 'object'
    )
      return name.split('.').at(-1) === 'Time' || name.endsWith('.MicroTime') || name.endsWith('.Duration')
        ? target.type
        : (name.split('.').at(-1) ?? target.type);
    return name.split('.').at(-1) ?? 'Object';
  }
  if (schema.oneOf !== undefined) return 'IntOrString';
  return schema.type === undefined ? 'Object' : schema.type === 'object' ? 'Object' : schema.type;
}

function fieldList(schemas: Schemas, schema: Schema): string {
  return Object.entries(schema.properties ?? {})
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, field]) => {
      const required = schema.required?.includes(name) === true ? ' -required-' : '';
      const text = field.description || '<no description>';
      return `  ${name}\t<${typeOf(schemas, field)}>${required}\n${enumLine(field, '  ')}    ${wrapped(text, 4)}\n\n`;
    })
    .join('');
}

function tree(schemas: Schemas, schema: Schema, level: number, seen: ReadonlySet<Schema>): string {
  return Object.entries(schema.properties ?? {})
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, field]) => {
      const required = schema.required?.includes(name) === true ? ' -required-' : '';
      const inner = contentOf(schemas, field);
      const below =
        inner.properties === undefined || seen.has(inner) || level > MAX_DEPTH
          ? ''
          : tree(schemas, inner, level + 1, new Set([...seen, inner]));
      const indent = '  '.repeat(level);
      return `${indent}${name}\t<${typeOf(schemas, field)}>${required}\n${enumLine(field, indent)}${below}`;
    })
    .join('');
}

/** Wraps paragraphs at the width of kubectl's output. Lines that begin with a space or a dash are not changed. */
function wrapped(text: string, indent: number): string {
  const space = ' '.repeat(indent);
  return text
    .split('\n')
    .map((line) => {
      const lines: string[] = [];
      let current: string | undefined;
      for (const word of line.split(' ')) {
        if (current !== undefined && current.trim() !== '' && current.length + 1 + word.length > WIDTH) {
          lines.push(current);
          current = word;
        } else current = current === undefined ? word : `${current} ${word}`;
      }
      lines.push(current ?? '');
      return lines.join(`\n${space}`);
    })
    .join(`\n${space}`);
}
