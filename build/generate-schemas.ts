/**
 * Generates the built-in schemas and their TypeScript types from `@kubernetes/client-node` (attribute maps, required
 * fields, documentation) and `build/field-facts.json` (which strings are quantities; documentation of fields that refer
 * to other types).
 *
 *   node build/generate-schemas.ts      writes src/api/schema/generated/{types.ts,descriptions.json} and
 *                                       src/api/generated/<group>/<version>.ts, which are in the repository
 *
 * The type of a field is a compact text: a scalar name or `#full.type.name`, after any number of `[]` and `{}`.
 */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { GeneratedType } from '../src/api/schema/types-format.ts';
import { modulesOf } from './declare-types.ts';
import fieldFacts from './field-facts.json' with { type: 'json' };
import { META_TYPES, RENAMED, ROOTS } from './schema-roots.ts';

interface Attribute {
  /** Name of the property in the client. It differs from `baseName` if that is a reserved word: `_default`. */
  readonly name: string;
  readonly baseName: string;
  readonly type: string;
  readonly format: string;
}

interface Documentation {
  readonly type: string;
  readonly fields: ReadonlyMap<string, string>;
}

const here = dirname(fileURLToPath(import.meta.url));
const outDir = join(here, '../src/api/schema/generated');
const typesDir = join(here, '../src/api/generated');
const require = createRequire(import.meta.url);
const modelsDir = join(dirname(require.resolve('@kubernetes/client-node')), 'gen/models');
const quantities: ReadonlySet<string> = new Set(fieldFacts.quantities);
const moreDescriptions: Readonly<Record<string, Readonly<Record<string, string>>>> = fieldFacts.descriptions;

const SCALARS: Readonly<Record<string, string>> = { string: 'string', boolean: 'boolean', any: 'any', object: 'any' };

/** Short type name of a client class: `PodSpec` for `V1PodSpec`. */
const shortName = (className: string): string =>
  RENAMED[className] ?? className.replace(/^V\d+(?:(?:alpha|beta)\d+)?/, '');

const loaded = new Map<
  string,
  { attributes: readonly Attribute[]; required: readonly string[]; docs: Documentation }
>();

async function load(className: string) {
  const known = loaded.get(className);
  if (known !== undefined) return known;
  const module = (await import(pathToFileURL(join(modelsDir, `${className}.js`)).href)) as Record<
    string,
    { getAttributeTypeMap(): Attribute[] }
  >;
  const declared = module[className];
  if (declared === undefined) throw new Error(`${className} is not exported by its module`);
  const source = readFileSync(join(modelsDir, `${className}.d.ts`), 'utf8');
  const result = {
    attributes: declared.getAttributeTypeMap(),
    required: [...source.matchAll(/^ {4}'([^']+)':/gm)].map((match) => match[1] ?? ''),
    docs: documentationOf(source, className),
  };
  loaded.set(className, result);
  return result;
}

function documentationOf(source: string, className: string): Documentation {
  const fields = new Map<string, string>();
  for (const match of source.matchAll(/\/\*\*\n((?: +\*.*\n)+?) +\*\/\n {4}'([^']+)'\??:/g)) {
    fields.set(match[2] ?? '', commentText(match[1] ?? ''));
  }
  const type = new RegExp(`/\\*\\*\\n((?: *\\*.*\\n)+?) *\\*/\\nexport declare class ${className} `).exec(source);
  return { type: commentText(type?.[1] ?? ''), fields };
}

function commentText(block: string): string {
  return block
    .split('\n')
    .map((line) => line.replace(/^ *\* ?/, ''))
    .join('\n')
    .trim()
    .replaceAll(/\\(["'\\])/g, '$1');
}

/** Class name in a type text of the client; undefined if the text refers to no class. */
const referencedClass = (type: string): string | undefined =>
  /\b((?:[A-Z][a-z]+)?V\d\w*)\b/.exec(stripMicro(type))?.[1];
const stripMicro = (type: string): string => type.replaceAll(/\bV1MicroTime\b/g, 'MicroTime');

async function reach(roots: readonly string[], skip: ReadonlyMap<string, string>, assign: (className: string) => void) {
  const queue = [...roots];
  const seen = new Set<string>();
  for (let className = queue.pop(); className !== undefined; className = queue.pop()) {
    if (seen.has(className)) continue;
    seen.add(className);
    if (!skip.has(className)) assign(className);
    for (const attribute of (await load(className)).attributes) {
      const referenced = referencedClass(attribute.type);
      if (referenced !== undefined) queue.push(referenced);
    }
  }
}

/**
 * Client classes of the kinds and their lists, by package. The registry cannot be imported, because it imports the
 * generated files.
 */
function kindClasses(): Map<string, string[]> {
  const classes = new Map<string, string[]>();
  for (const file of globSync(join(here, '../src/**/kinds/**/*.ts')).sort()) {
    for (const [, prefix = '', kind = ''] of readFileSync(file, 'utf8').matchAll(/schemaName: '([^']+)\.(\w+)'/g)) {
      if (!ROOTS.some((root) => root.prefix === prefix)) continue;
      const [version = '', group = ''] = prefix.split('.').reverse();
      const found = [kind, `${kind}List`].flatMap((name) => classOf(group, version, name) ?? []);
      if (found.length === 0) throw new Error(`${file}: ${prefix}.${kind}: the client has no such class`);
      classes.set(prefix, [...(classes.get(prefix) ?? []), ...found]);
    }
  }
  return classes;
}

/** Client class of a kind. If several packages have a type with this name, the class name begins with the group. */
function classOf(group: string, version: string, kind: string): string | undefined {
  const plain = `${capitalized(version)}${kind}`;
  return [`${capitalized(group)}${plain}`, plain].find((name) => existsSync(join(modelsDir, `${name}.js`)));
}

const capitalized = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/** Full upstream names, for example `io.k8s.api.core.v1.PodSpec`, of all classes that the roots reach. */
async function nameClasses(): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (const className of META_TYPES) {
    names.set(className, `io.k8s.apimachinery.pkg.apis.meta.v1.${shortName(className)}`);
  }
  const ofKinds = kindClasses();
  for (const { prefix, classes } of ROOTS) {
    const named = classes.flatMap((name) =>
      name.endsWith('+') ? [name.slice(0, -1), `${name.slice(0, -1)}List`] : [name],
    );
    const roots = [...named, ...(ofKinds.get(prefix) ?? [])];
    await reach(roots, names, (className) => names.set(className, `${prefix}.${shortName(className)}`));
  }
  return names;
}

function compactType(
  type: string,
  attribute: Attribute,
  names: ReadonlyMap<string, string>,
  quantity: boolean,
): string {
  const list = /^Array<(.*)>$/.exec(type);
  if (list !== null) return `[]${compactType(list[1] ?? '', attribute, names, quantity)}`;
  const map = /^\{ \[key: string\]: (.*); \}$/.exec(type);
  if (map !== null) return `{}${compactType(map[1] ?? '', attribute, names, quantity)}`;
  if (type === 'IntOrString') return 'int-or-string';
  if (type === 'Date') return 'date-time';
  if (type === 'V1MicroTime') return 'date-time-micro';
  if (type === 'number')
    return attribute.format === 'double' ? 'number' : attribute.format === 'int32' ? 'int32' : 'int64';
  if (type === 'string' && quantity) return 'quantity';
  if (type === 'string' && attribute.format === 'byte') return 'byte';
  const scalar = SCALARS[type];
  if (scalar !== undefined) return scalar;
  const name = names.get(type);
  if (name === undefined) throw new Error(`no schema name for the client type ${type}`);
  return `#${name}`;
}

type MutableDescriptions = Record<string, { d: string; f: Record<string, string> }>;

/** Fields that only the server sets, as `type.field`. */
function readOnlyFields(descriptions: MutableDescriptions): Set<string> {
  return new Set(
    Object.entries(descriptions).flatMap(([name, { f }]) =>
      Object.keys(f)
        .filter((field) => /\bRead-only\b/.test(f[field] ?? ''))
        .map((field) => `${name}.${field}`),
    ),
  );
}

async function main(): Promise<void> {
  const names = await nameClasses();
  const types: Record<string, GeneratedType> = {};
  const descriptions: MutableDescriptions = {};
  for (const [className, name] of [...names].sort(([, a], [, b]) => (a < b ? -1 : 1))) {
    const { attributes, required, docs } = await load(className);
    const more = moreDescriptions[name] ?? {};
    const fields: Record<string, string> = {};
    const texts: Record<string, string> = {};
    for (const attribute of attributes) {
      const field = attribute.baseName;
      fields[field] = compactType(attribute.type, attribute, names, quantities.has(`${name}.${field}`));
      // For IntOrString fields the client has the documentation of the type instead of the field.
      const own = attribute.type === 'IntOrString' ? '' : docs.fields.get(attribute.name);
      const text = own || more[field] || docs.fields.get(attribute.name) || '';
      if (text !== '') texts[field] = text;
    }
    types[name] = { ...(required.length === 0 ? {} : { r: [...required] }), f: fields };
    descriptions[name] = { d: docs.type, f: texts };
  }
  mkdirSync(outDir, { recursive: true });
  const literal = JSON.stringify(JSON.stringify(types));
  writeFileSync(
    join(outDir, 'types.ts'),
    `// Generated by build/generate-schemas.ts. A string that is parsed once is cheaper to start with than an object literal.\n` +
      `import type { GeneratedTypes } from '../types-format.ts';\nexport const generatedTypes = JSON.parse(${literal}) as GeneratedTypes;\n`,
  );
  writeFileSync(join(outDir, 'descriptions.json'), JSON.stringify(descriptions));
  for (const [path, text] of modulesOf(types, readOnlyFields(descriptions))) {
    const file = join(typesDir, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  process.stdout.write(`schemas: ${Object.keys(types).length} types\n`);
}

await main();
