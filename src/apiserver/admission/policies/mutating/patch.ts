/**
 * Applies one mutation to an object. Sources:
 * k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/{json_patch,smd}.go.
 */

import { toJson } from '../../../../api/cel/json.ts';
import { misplacedTypes } from '../../../../api/cel/mutation.ts';
import { CelMap, isList, type Value } from '../../../../api/cel/values.ts';
import type { JsonObject } from '../../../../api/meta/object.ts';
import type { SchemaNode } from '../../../../api/schema/node.ts';
import { messageOf } from '../../../../base/errors.ts';
import { isFailedTest, jsonPatch, mergeConfiguration, reasonOf } from '../../../core/patch/index.ts';

/** Merges the configuration that an expression returned into `live`. Throws an Error with upstream's wording. */
export function withConfiguration(live: JsonObject, value: Value, schema: SchemaNode | undefined): JsonObject {
  const configuration = toJson(value) as JsonObject;
  checkTypes(value);
  const { apiVersion, kind } = live;
  try {
    return mergeConfiguration(live, { ...configuration, apiVersion: apiVersion ?? '', kind: kind ?? '' }, schema);
  } catch (error) {
    throw new Error(`error applying patch: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Applies the JSON patches that an expression returned to `live`. Returns `live` unchanged if a `test` operation fails.
 * Throws an Error with upstream's wording.
 */
export function withPatches(live: JsonObject, value: Value): JsonObject {
  const patches: JsonObject[] = [];
  for (const each of isList(value) ? value : []) if (each instanceof CelMap) patches.push(operationOf(each));
  try {
    return jsonPatch(live, patches);
  } catch (error) {
    if (isFailedTest(error)) return live;
    throw new Error(`JSONPath: ${reasonOf(error)}`, { cause: error });
  }
}

function operationOf(patch: CelMap): JsonObject {
  const text = (name: string): string => {
    const value = patch.get(name);
    return typeof value === 'string' ? value : '';
  };
  const value = patch.get('value');
  if (value !== undefined) checkTypes(value);
  return {
    op: text('op'),
    path: text('path'),
    ...(text('from') === '' ? {} : { from: text('from') }),
    ...(value === undefined ? {} : { value: toJson(value, 'text') }),
  };
}

function checkTypes(value: Value): void {
  const problems = misplacedTypes(value);
  if (problems.length > 0) throw new Error(`type mismatch: ${problems.join('\n')}`);
}
