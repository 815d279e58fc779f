/** TypeScript types of the generated schemas: one module per group and version, `core/v1.ts`. */
import type { GeneratedType } from '../src/api/schema/types-format.ts';

/** API groups whose name is neither the name of their package nor that name with the suffix `.k8s.io`. */
const GROUPS: Readonly<Record<string, string>> = {
  core: '',
  apps: 'apps',
  autoscaling: 'autoscaling',
  batch: 'batch',
  policy: 'policy',
  rbac: 'rbac.authorization.k8s.io',
  flowcontrol: 'flowcontrol.apiserver.k8s.io',
};

const SCALARS: Readonly<Record<string, string>> = {
  string: 'string',
  byte: 'string',
  boolean: 'boolean',
  int32: 'number',
  int64: 'number',
  number: 'number',
  quantity: 'Quantity',
  'int-or-string': 'IntOrString',
  'date-time': 'Time',
  'date-time-micro': 'MicroTime',
  any: 'JsonObject',
};
const IMPORTED_SCALARS = ['IntOrString', 'MicroTime', 'Quantity', 'Time'];
const IMPORTED_JSON = ['JsonObject', 'JsonValue'];

/** Fields of JSON schemas whose values have several forms. */
const FORMS: Readonly<Record<string, string>> = {
  'JSONSchemaProps.additionalItems': 'JSONSchemaProps | boolean',
  'JSONSchemaProps.additionalProperties': 'JSONSchemaProps | boolean',
  'JSONSchemaProps.default': 'JsonValue',
  'JSONSchemaProps.dependencies': '{ [key: string]: JSONSchemaProps | string[] }',
  'JSONSchemaProps.enum': 'JsonValue[]',
  'JSONSchemaProps.example': 'JsonValue',
  'JSONSchemaProps.items': 'JSONSchemaProps | JSONSchemaProps[]',
};

/**
 * Modules by path. Types are aliases, because objects of an interface are not assignable to `JsonObject`.
 * `readOnly` contains the fields that only the server sets, as `type.field`.
 */
export function modulesOf(
  types: Readonly<Record<string, GeneratedType>>,
  readOnly: ReadonlySet<string>,
): Map<string, string> {
  const modules = new Map<string, Module>();
  for (const [name, type] of Object.entries(types)) {
    const [folder, version] = placeOf(name);
    const path = `${folder}/${version}.ts`;
    const module = modules.get(path) ?? new Module(folder, version);
    modules.set(path, module);
    module.declare(name, type, readOnly);
  }
  return new Map([...modules].map(([path, module]) => [path, module.text()]));
}

/** Folder and version of a type: `core`, `v1` for `io.k8s.api.core.v1.Pod`. */
function placeOf(typeName: string): [folder: string, version: string] {
  const parts = typeName.split('.').slice(0, -1);
  const version = parts.at(-1) ?? '';
  return /^v\d/.test(version) ? [parts.at(-2) ?? '', version] : [version, 'v1'];
}

class Module {
  readonly #folder: string;
  readonly #version: string;
  readonly #declarations: string[] = [];
  readonly #imports = new Map<string, string>();
  readonly #scalars = new Set<string>();

  constructor(folder: string, version: string) {
    this.#folder = folder;
    this.#version = version;
  }

  declare(name: string, { r: required = [], f: fields }: GeneratedType, readOnly: ReadonlySet<string>): void {
    const short = shortName(name);
    const isKind = ['apiVersion', 'kind', 'metadata'].every((field) => Object.hasOwn(fields, field));
    const group = GROUPS[this.#folder] ?? `${this.#folder}.k8s.io`;
    const literals: Readonly<Record<string, string>> = {
      apiVersion: group === '' ? `'${this.#version}'` : `'${group}/${this.#version}'`,
      kind: `'${short}'`,
    };
    const lines = Object.entries(fields).map(([field, type]) => {
      const text = (isKind ? literals[field] : undefined) ?? FORMS[`${short}.${field}`] ?? this.#typeOf(type);
      for (const word of text.match(/\w+/g) ?? []) if (IMPORTED_JSON.includes(word)) this.#scalars.add(word);
      const modifier = readOnly.has(`${name}.${field}`) ? 'readonly ' : '';
      const key = /^\w+$/.test(field) ? field : `'${field}'`;
      return `  ${modifier}${key}${required.includes(field) ? '' : '?'}: ${text};\n`;
    });
    this.#declarations.push(`export type ${short} = {\n${lines.join('')}};\n`);
  }

  #typeOf(type: string): string {
    if (type.startsWith('[]')) return `${this.#typeOf(type.slice(2))}[]`;
    if (type.startsWith('{}')) return `{ [key: string]: ${this.#typeOf(type.slice(2))} }`;
    if (type.startsWith('#')) return this.#reference(type.slice(1));
    const scalar = SCALARS[type];
    if (scalar === undefined) throw new Error(`no TypeScript type for ${type}`);
    if (IMPORTED_SCALARS.includes(scalar)) this.#scalars.add(scalar);
    return scalar;
  }

  #reference(name: string): string {
    const [folder, version] = placeOf(name);
    if (folder === this.#folder && version === this.#version) return shortName(name);
    const alias = `${folder}_${version}`;
    this.#imports.set(alias, `../${folder}/${version}.ts`);
    return `${alias}.${shortName(name)}`;
  }

  text(): string {
    const named = (names: readonly string[], from: string): string[] => {
      const used = names.filter((name) => this.#scalars.has(name));
      return used.length === 0 ? [] : [`import type { ${used.join(', ')} } from '${from}';\n`];
    };
    const imports = [
      ...named(IMPORTED_JSON, '../../meta/object.ts'),
      ...named(IMPORTED_SCALARS, '../../meta/scalars.ts'),
      ...[...this.#imports].sort().map(([alias, from]) => `import type * as ${alias} from '${from}';\n`),
    ];
    const header = '// Generated by build/generate-schemas.ts; do not edit. kubectl explain shows the documentation.\n';
    return [header, ...imports, ...this.#declarations.map((each) => `\n${each}`)].join('');
  }
}

const shortName = (typeName: string): string => typeName.slice(typeName.lastIndexOf('.') + 1);
