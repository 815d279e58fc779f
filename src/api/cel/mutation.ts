/**
 * Types for mutating policies: `Object.spec{replicas: 3}` and `JSONPatch{op: "add", …}`. Source:
 * k8s.io/apiserver/pkg/cel/mutation (DynamicTypeResolver).
 */
import type { Structure } from './compiled-expression.ts';
import { DYN, STRING, type Type } from './types.ts';
import { CelMap, isList, StructValue, type Value } from './values.ts';

export const PATCH_TYPE: Structure = {
  kind: 'object',
  name: 'JSONPatch',
  fields: new Map([
    ['op', STRING],
    ['path', STRING],
    ['from', STRING],
    ['value', DYN],
  ]),
};

/**
 * Fields of a message type. Every field name exists and has the dynamic type, because the real fields are known only
 * with the object.
 */
class AnyFields extends Map<string, Type> {
  override get(): Type {
    return DYN;
  }
}

const ANY_FIELDS = new AnyFields();
const ROOT = 'Object';

export const APPLY_TYPE: Structure = { kind: 'object', name: ROOT, fields: ANY_FIELDS };

export function mutationStructure(name: string): Structure | undefined {
  if (name === PATCH_TYPE.name) return PATCH_TYPE;
  if (name !== ROOT && !name.startsWith(`${ROOT}.`)) return undefined;
  return { kind: 'object', name, fields: ANY_FIELDS };
}

/** Errors of messages whose type name does not match their path, in upstream's wording. */
export function misplacedTypes(value: Value): string[] {
  const found: string[] = [];
  if (value instanceof StructValue) collect(value, value.typeName, found, 0);
  return found;
}

const MAX_FINDINGS = 16;
const MAX_DEPTH = 200;

function collect(value: Value, path: string, found: string[], depth: number): void {
  if (found.length >= MAX_FINDINGS || depth > MAX_DEPTH) return;
  if (value instanceof StructValue) {
    if (value.typeName !== path) {
      found.push(
        `unexpected type name ${JSON.stringify(value.typeName)}, expected ${JSON.stringify(path)}, which matches field name path from root Object type`,
      );
    }
    for (const key of value.keys()) collect(value.get(key) ?? null, `${path}.${String(key)}`, found, depth + 1);
  } else if (value instanceof CelMap) {
    for (const key of value.keys()) collect(value.get(key) ?? null, path, found, depth + 1);
  } else if (isList(value)) {
    for (const item of value) collect(item, path, found, depth + 1);
  }
}
