/**
 * Merges a configuration into an object without field ownership, for mutating policies. Source:
 * k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go.
 */
import type { SchemaNode } from '../../../api/schema/node.ts';
import { problemOfApplied } from './check-applied.ts';
import { field, isObject, type JsonObject, type JsonValue } from './document.ts';
import { mergeTyped } from './typed.ts';

/**
 * Returns `live` with `configuration` merged in. Throws an Error with upstream's wording for a configuration that does
 * not fit the schema, or that contains an atomic list, map or structure, whose missing fields would be lost unnoticed.
 */
export function mergeConfiguration(
  live: JsonObject,
  configuration: JsonObject,
  schema: SchemaNode | undefined,
): JsonObject {
  const problem = problemOfApplied(configuration, schema);
  if (problem !== undefined) throw new Error(`failed to convert patch object to typed object: ${problem}`);
  const atomics: string[] = [];
  collectAtomics(configuration, schema, '', atomics);
  if (atomics.length > 0) {
    const places = atomics.join(', ');
    throw new Error(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${places}`);
  }
  return mergeTyped(live, configuration, schema) as JsonObject;
}

const MAX_FINDINGS = 64;

function collectAtomics(value: JsonValue, schema: SchemaNode | undefined, path: string, found: string[]): void {
  if (found.length >= MAX_FINDINGS || schema === undefined) return;
  if (schema.kind === 'list' && Array.isArray(value)) {
    if (schema.listType === 'atomic') found.push(path);
    for (const [index, item] of value.entries()) collectAtomics(item, schema.items, `${path}[${index}]`, found);
  } else if ((schema.kind === 'object' || schema.kind === 'map') && isObject(value)) {
    if (schema.atomic) found.push(path);
    if (schema.kind === 'map') return;
    for (const name of Object.keys(value)) {
      collectAtomics(field(value, name) ?? null, schema.fields.get(name), `${path}.${name}`, found);
    }
  }
}
