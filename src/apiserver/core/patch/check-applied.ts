/** Checks whether an applied configuration fits the schema. */
import type { ListNode, ScalarType, SchemaNode } from '../../../api/schema/node.ts';
import { parseJson } from '../../../base/json/json.ts';
import { goText } from '../../../base/text/go-text.ts';
import { isObject, isScalar, type JsonObject, type JsonValue } from './document.ts';
import { untyped } from './errors.ts';
import { itemElement } from './merge-shape.ts';

/** Throws ApiError Unknown with the path if an applied configuration does not fit the schema. */
export function checkApplied(value: JsonValue, schema: SchemaNode | undefined, subject: string): void {
  const problem = problemOfApplied(value, schema);
  if (problem !== undefined) throw untyped(`failed to create typed patch object (${subject}): ${problem}`);
}

/** The path and problem of a configuration that does not fit the schema. Undefined if the configuration fits. */
export function problemOfApplied(value: JsonValue, schema: SchemaNode | undefined): string | undefined {
  return findProblem(value, schema, '');
}

function findProblem(value: JsonValue, schema: SchemaNode | undefined, path: string): string | undefined {
  if (schema === undefined || value === null) return undefined;
  switch (schema.kind) {
    case 'scalar':
      return scalarProblem(value, schema.type, path);
    case 'list':
      return findListProblem(value, schema, path);
    default:
      if (!isObject(value)) return `${path}: expected map, got &{${goText(value)}}`;
      for (const name of Object.keys(value)) {
        const below = schema.kind === 'object' ? schema.fields.get(name) : schema.items;
        if (below === undefined) return `${path}.${name}: field not declared in schema`;
        const problem = findProblem(value[name] ?? null, below, `${path}.${name}`);
        if (problem !== undefined) return problem;
      }
      return undefined;
  }
}

function findListProblem(value: JsonValue, schema: ListNode, path: string): string | undefined {
  if (!Array.isArray(value)) return `${path}: expected list, got &{${goText(value)}}`;
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    let at = `${path}[${index}]`;
    if (schema.listType !== 'atomic') {
      const element = itemElement(item, schema);
      if (element === undefined) {
        const keys = schema.mapKeys.map((key) => JSON.stringify(key)).join(', ');
        return schema.listType === 'set'
          ? `${path}: element ${index}: expected a scalar, got ${typeName(item)}`
          : !isObject(item)
            ? `${path}: element ${index}: associative list with keys may not have non-map elements`
            : `${path}: element ${index}: associative list with keys has an element that omits key field ${keys} (and doesn't have default value)`;
      }
      if (seen.has(element)) return `${path}: duplicate entries for key ${describeItem(element)}`;
      seen.add(element);
      at = `${path}${describeItem(element)}`;
    }
    const problem = findProblem(item, schema.items, at);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function describeItem(element: string): string {
  if (element.startsWith('v:')) return `[=${element.slice(2)}]`;
  const key = parseJson(element.slice(2)) as JsonObject;
  return `[${Object.entries(key)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(',')}]`;
}

/** Problem in the wording of structured-merge-diff. Values that may be numbers or strings are checked on decoding. */
function scalarProblem(value: JsonValue, type: ScalarType, path: string): string | undefined {
  switch (type) {
    case 'any':
      return undefined;
    case 'quantity':
    case 'int-or-string':
      return isScalar(value) ? undefined : `${path}: expected any scalar, got &{${goText(value)}}`;
    case 'boolean':
      return typeof value === 'boolean' ? undefined : `${path}: expected boolean, got &{${goText(value)}}`;
    case 'int32':
    case 'int64':
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint'
        ? undefined
        : `${path}: expected numeric (int or float), got ${goTypeName(value)}`;
    default:
      return typeof value === 'string'
        ? undefined
        : `${path}: expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`;
  }
}

function goTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'number' : typeof value;
}

function goSyntax(value: JsonValue): string {
  return typeof value === 'object' ? `${goTypeName(value)}{…}` : JSON.stringify(value);
}

function typeName(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (isObject(value)) return 'map';
  return typeof value === 'bigint' ? 'number' : typeof value;
}
