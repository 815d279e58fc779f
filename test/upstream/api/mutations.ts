/** Requests that are derived from a valid document by changing one field, with types from an OpenAPI v2 document. */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Step = string | number;

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
}

export interface Mutation {
  readonly path: string;
  readonly value: Json | undefined;
  readonly document: Json;
}

const LONG = 'x'.repeat(300);
const STRINGS: readonly Json[] = [
  '',
  'a',
  'Not Valid!',
  LONG,
  'a/b',
  '-1',
  '10',
  '../x',
  42,
  'http',
  '10.0.0.300',
  'A_b.c',
];
const INTEGERS: readonly Json[] = [-1, 0, 1, 70_000, 2_147_483_648, '5', 1.5];
const QUANTITIES: readonly Json[] = ['1', '-1', 'abc', '1.5', '0', 2, '100m'];
const EITHER: readonly Json[] = [-1, 0, 70_000, '', 'abc', '50%', '150%', 'Not Valid!'];
const TIMES: readonly Json[] = ['2026-01-02T03:04:05Z', 'yesterday', ''];
const MAPS: readonly Json[] = [
  {},
  { 'bad key!': 'v' },
  { '': 'v' },
  { a: 'Not Valid!' },
  { k: LONG },
  { 'a/b/c': 'd' },
  { a: 1 },
  'x',
];

/** Types whose fields are only changed in one kind, because they are the same everywhere. */
const COMMON = new Set(['io.k8s.api.core.v1.PodTemplateSpec', 'io.k8s.api.core.v1.PodSpec']);
const RECURSIVE = /JSONSchemaProps|PersistentVolumeSpec/;
/** Metadata is only changed in one kind, names in every kind. */
const isCommon = (kind: string, field: string): boolean => kind !== 'ConfigMap' && field !== 'name';
const SERVER_SET = new Set([
  'managedFields',
  'creationTimestamp',
  'deletionTimestamp',
  'resourceVersion',
  'uid',
  'selfLink',
]);

export class Mutations {
  readonly #definitions: Readonly<Record<string, Schema>>;
  #kind = '';

  constructor(openApi: { readonly definitions: Readonly<Record<string, Schema>> }) {
    this.#definitions = openApi.definitions;
  }

  definitionOf(apiVersion: string, kind: string): string | undefined {
    const [version = '', group = ''] = apiVersion.split('/').toReversed();
    return Object.entries(this.#definitions).find(([, schema]) =>
      schema['x-kubernetes-group-version-kind']?.some(
        (each) => each.group === group && each.version === version && each.kind === kind,
      ),
    )?.[0];
  }

  /** `deep`: also change fields of pod templates. */
  *of(document: Json, apiVersion: string, kind: string, deep: boolean): Generator<Mutation> {
    this.#kind = kind;
    const name = this.definitionOf(apiVersion, kind);
    if (name === undefined) return;
    for (const [path, value] of this.#walk(this.#resolve({ $ref: name }), document, [], deep, [name])) {
      yield { path: path.join('.'), value, document: replaced(document, path, value) };
    }
  }

  #resolve(schema: Schema): Schema {
    if (schema.$ref === undefined) return schema;
    return this.#definitions[schema.$ref.replace('#/definitions/', '')] ?? {};
  }

  *#walk(
    schema: Schema,
    present: Json | undefined,
    path: readonly Step[],
    deep: boolean,
    seen: readonly string[],
    beyond = 0,
  ): Generator<[readonly Step[], Json | undefined]> {
    for (const [name, each] of Object.entries(schema.properties ?? {})) {
      if (path.length === 0 && (name === 'apiVersion' || name === 'kind' || name === 'status')) continue;
      if (SERVER_SET.has(name) || (path.length === 1 && path[0] === 'metadata' && isCommon(this.#kind, name))) continue;
      const at = [...path, name];
      const value = isObject(present) ? present[name] : undefined;
      const ref = each.$ref ?? each.items?.$ref ?? each.additionalProperties?.$ref;
      const type = ref?.replace('#/definitions/', '') ?? '';
      if (value !== undefined) yield [at, undefined];
      if (RECURSIVE.test(type) && (seen.includes(type) || this.#kind === 'VolumeAttachment')) continue;
      if (seen.length > 0 && !deep && COMMON.has(type)) continue;
      if (seen.filter((one) => one === type).length > 1 && type !== '') continue;
      yield* this.#field(each, value, at, deep, type === '' ? seen : [...seen, type], beyond);
    }
  }

  *#field(
    schema: Schema,
    value: Json | undefined,
    path: readonly Step[],
    deep: boolean,
    seen: readonly string[],
    beyond: number,
  ): Generator<[readonly Step[], Json | undefined]> {
    const resolved = this.#resolve(schema);
    const candidates = simple(resolved, schema.$ref ?? '');
    if (candidates !== undefined) {
      for (const candidate of candidates) yield [path, candidate];
      return;
    }
    if (resolved.type === 'array') {
      yield [path, []];
      yield [path, 'x'];
      const items = this.#resolve(resolved.items ?? {});
      const list = Array.isArray(value) ? (value as readonly Json[]) : [];
      const [first] = list;
      if (first !== undefined) yield [path, [...list, first]];
      const inner = simple(items, resolved.items?.$ref ?? '');
      if (inner !== undefined) {
        for (const candidate of inner) yield [path, [candidate]];
        return;
      }
      yield [path, [{}]];
      if (beyond > 1) return;
      if (first === undefined) {
        for (const [rest, changed] of this.#walk(items, {}, [], deep, seen, beyond + 1))
          if (changed !== undefined) yield [path, [replaced({}, rest, changed)]];
      } else yield* this.#walk(items, first, [...path, 0], deep, seen, beyond);
      return;
    }
    if (resolved.additionalProperties !== undefined && resolved.properties === undefined) {
      const inner = simple(this.#resolve(resolved.additionalProperties), resolved.additionalProperties.$ref ?? '');
      for (const candidate of MAPS) yield [path, candidate];
      for (const candidate of inner ?? []) yield [path, { a: candidate }];
      return;
    }
    if (resolved.properties === undefined) {
      for (const candidate of [{}, 'x', 1, [], { a: 1 }] as Json[]) yield [path, candidate];
      return;
    }
    yield [path, {}];
    yield [path, 'x'];
    if (value === undefined && beyond > 1) return;
    yield* this.#walk(resolved, value ?? {}, path, deep, seen, value === undefined ? beyond + 1 : beyond);
  }
}

function simple(schema: Schema, ref: string): readonly Json[] | undefined {
  if (ref.endsWith('resource.Quantity')) return QUANTITIES;
  if (schema.format === 'int-or-string') return EITHER;
  if (schema.format === 'date-time') return TIMES;
  if (schema.type === 'string') return STRINGS;
  if (schema.type === 'integer' || schema.type === 'number') return INTEGERS;
  if (schema.type === 'boolean') return [true, false, 'true'];
  return undefined;
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy with `value` at `path`. Missing objects on the path are created. */
export function replaced(document: Json | undefined, path: readonly Step[], value: Json | undefined): Json {
  const [step, ...rest] = path;
  if (step === undefined) return value ?? null;
  if (typeof step === 'number') {
    const list = Array.isArray(document) ? [...(document as readonly Json[])] : [];
    list[step] = replaced(list[step], rest, value);
    return list;
  }
  const copy: Record<string, Json> = isObject(document) ? { ...document } : {};
  if (rest.length === 0 && value === undefined) delete copy[step];
  else copy[step] = replaced(copy[step], rest, value);
  return copy;
}
