/**
 * Merges OpenAPI v2 documents of aggregated API servers into the local document: their paths, and the definitions to
 * which the paths refer. Definitions that conflict with local ones are renamed. The documents are not trusted, so only
 * well-formed parts are used. Source: k8s.io/kube-openapi/pkg/aggregator.
 */
import type { GroupVersion } from '../discovery/index.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { fieldOf, isObject } from '../structural/schema.ts';
import type { SchemaObject } from './definitions.ts';
import type { OpenApiV2, OperationV2, ParameterV2, PathItemV2 } from './v2.ts';

const REF = '#/definitions/';
const GVK = 'x-kubernetes-group-version-kind';
const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'] as const;
const MAX_PATHS = 5_000;

type Definitions = { readonly [name: string]: SchemaObject };

/** Paths of the group and version, with all definitions that they refer to. */
export function partOfV2(document: JsonValue, groupVersion: GroupVersion): Pick<OpenApiV2, 'paths' | 'definitions'> {
  const whole = isObject(document) ? document : {};
  const declared = objectIn(whole, 'definitions');
  const used = new Set<string>();
  const read = (value: JsonValue | undefined): SchemaObject => schemaOf(value, declared, used);
  const root = `/apis/${groupVersion.group}/${groupVersion.version}`;
  const paths: [string, PathItemV2][] = [];
  for (const [path, item] of Object.entries(objectIn(whole, 'paths'))) {
    if (paths.length >= MAX_PATHS) break;
    if ((path === root || path.startsWith(`${root}/`)) && isObject(item)) paths.push([path, pathItemOf(item, read)]);
  }
  for (const [name, each] of Object.entries(declared)) if (isAbout(each, groupVersion)) used.add(name);
  const definitions: [string, SchemaObject][] = [];
  // The loop adds to `used`, because definitions refer to other definitions.
  for (const name of used) definitions.push([name, read(fieldOf(declared, name))]);
  return { paths: Object.fromEntries(paths), definitions: Object.fromEntries(definitions) };
}

function isAbout(definition: JsonValue, { group, version }: GroupVersion): boolean {
  const kinds = isObject(definition) ? fieldOf(definition, GVK) : undefined;
  if (!Array.isArray(kinds)) return false;
  return kinds.some(
    (each) => isObject(each) && fieldOf(each, 'group') === group && fieldOf(each, 'version') === version,
  );
}

function schemaOf(value: JsonValue | undefined, declared: JsonObject, used: Set<string>): SchemaObject {
  if (!isObject(value)) return {};
  const schema: { [field: string]: JsonValue } = {};
  for (const [key, each] of Object.entries(value)) {
    if (key === '$ref') {
      const name = typeof each === 'string' && each.startsWith(REF) ? each.slice(REF.length) : '';
      if (!Object.hasOwn(declared, name)) continue;
      used.add(name);
      schema[key] = each;
    } else if (key === 'type' || key === 'format' || key === 'description') {
      if (typeof each === 'string') schema[key] = each;
    } else if (key === 'required') schema[key] = textsOf(each);
    else if (key === 'items' || key === 'additionalProperties') {
      if (isObject(each)) schema[key] = schemaOf(each, declared, used) as JsonObject;
    } else if (key === 'properties') {
      const properties = Object.entries(isObject(each) ? each : {});
      schema[key] = Object.fromEntries(
        properties.map(([name, one]) => [name, schemaOf(one, declared, used) as JsonObject]),
      );
    } else if (key !== '__proto__') schema[key] = each;
  }
  return schema;
}

type Read = (value: JsonValue | undefined) => SchemaObject;

function pathItemOf(item: JsonObject, read: Read): PathItemV2 {
  const operations = METHODS.flatMap((method) => {
    const operation = fieldOf(item, method);
    return isObject(operation) ? [[method, operationOf(operation, read)] as const] : [];
  });
  return { ...Object.fromEntries(operations), parameters: parametersOf(item, read) };
}

function operationOf(operation: JsonObject, read: Read): OperationV2 {
  const gvk = objectIn(operation, GVK);
  const responses = Object.entries(objectIn(operation, 'responses')).flatMap(([code, response]) => {
    if (!isObject(response)) return [];
    const schema = fieldOf(response, 'schema');
    const description = textIn(response, 'description');
    return [[code, { description, ...(schema === undefined ? {} : { schema: read(schema) }) }] as const];
  });
  return {
    tags: textsOf(fieldOf(operation, 'tags')),
    description: textIn(operation, 'description'),
    operationId: textIn(operation, 'operationId'),
    consumes: textsOf(fieldOf(operation, 'consumes')),
    produces: textsOf(fieldOf(operation, 'produces')),
    parameters: parametersOf(operation, read),
    responses: Object.fromEntries(responses),
    'x-kubernetes-action': textIn(operation, 'x-kubernetes-action'),
    [GVK]: { group: textIn(gvk, 'group'), version: textIn(gvk, 'version'), kind: textIn(gvk, 'kind') },
  };
}

/** Inline parameters. References to shared parameters are ignored, because clients do not need them. */
function parametersOf(holder: JsonObject, read: Read): ParameterV2[] {
  const listed = fieldOf(holder, 'parameters');
  return (Array.isArray(listed) ? listed : []).filter(isObject).flatMap((each): ParameterV2[] => {
    const [name, place] = [textIn(each, 'name'), textIn(each, 'in')];
    if (name === '' || (place !== 'body' && place !== 'path' && place !== 'query')) return [];
    const schema = fieldOf(each, 'schema');
    return [
      {
        name,
        in: place,
        description: textIn(each, 'description'),
        required: fieldOf(each, 'required') === true,
        ...(place === 'body' ? { schema: read(schema) } : { type: textIn(each, 'type') || 'string' }),
      },
    ];
  });
}

/**
 * Returns `part` without definitions that `known` also contains. Definitions that differ from `known` get new names.
 */
export function withUniqueDefinitions(
  part: Pick<OpenApiV2, 'paths' | 'definitions'>,
  known: Definitions,
): Pick<OpenApiV2, 'paths' | 'definitions'> {
  const entries = Object.entries(part.definitions);
  const differing = new Set<string>();
  for (const [name, definition] of entries) {
    if (Object.hasOwn(known, name) && factsOf(definition) !== factsOf(known[name])) differing.add(name);
  }
  // A definition that refers to a renamed definition is also renamed.
  for (let size = -1; size !== differing.size; ) {
    size = differing.size;
    for (const [name, definition] of entries) {
      if (Object.hasOwn(known, name) && refsIn(definition).some((each) => differing.has(each))) differing.add(name);
    }
  }
  const names = new Map<string, string>();
  for (const name of differing) {
    let number = 2;
    while (Object.hasOwn(known, `${name}_v${number}`) || Object.hasOwn(part.definitions, `${name}_v${number}`))
      number += 1;
    names.set(name, `${name}_v${number}`);
  }
  const own = entries.filter(([name]) => !Object.hasOwn(known, name) || differing.has(name));
  return {
    paths: renamed(part.paths, names),
    definitions: Object.fromEntries(own.map(([name, each]) => [names.get(name) ?? name, renamed(each, names)])),
  };
}

/** JSON text of a definition without its kinds, because definitions of shared types list the kinds of their server. */
function factsOf(definition: SchemaObject | undefined): string {
  const { [GVK]: _kinds, ...facts } = (definition ?? {}) as { [field: string]: JsonValue };
  return JSON.stringify(inOrder(facts));
}

function inOrder(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(inOrder);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, each]) => [key, inOrder(each)]),
  );
}

function refsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) =>
    key === '$ref' && typeof each === 'string' ? [each.slice(REF.length)] : refsIn(each),
  );
}

function renamed<T>(value: T, names: ReadonlyMap<string, string>): T {
  if (names.size === 0) return value;
  const visit = (each: unknown): unknown => {
    if (Array.isArray(each)) return each.map(visit);
    if (typeof each !== 'object' || each === null) return each;
    return Object.fromEntries(
      Object.entries(each).map(([key, inner]) => {
        const name = key === '$ref' && typeof inner === 'string' ? names.get(inner.slice(REF.length)) : undefined;
        return [key, name === undefined ? visit(inner) : `${REF}${name}`];
      }),
    );
  };
  return visit(value) as T;
}

function objectIn(value: JsonObject, field: string): JsonObject {
  const found = fieldOf(value, field);
  return isObject(found) ? found : {};
}

function textIn(value: JsonObject, field: string): string {
  const found = fieldOf(value, field);
  return typeof found === 'string' ? found : '';
}

function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}
