import {
  cloneJson,
  field,
  isDeeperThan,
  isObject,
  type JsonObject,
  type JsonValue,
  MAX_DEPTH,
  setField,
} from './document.ts';
import { badPatch, wrongPatchType } from './errors.ts';

/** Applies an RFC 7386 merge patch: fields replace fields, objects merge, null removes. Throws ApiError BadRequest. */
export function mergePatch(document: JsonObject, patch: JsonValue): JsonObject {
  return mergeInto(cloneJson(document), patch);
}

/** Like `mergePatch`, but changes `document` in place. If this throws, `document` is unchanged. */
export function mergeInto(document: JsonObject, patch: JsonValue): JsonObject {
  if (patch === null) throw badPatch('Invalid JSON Patch');
  if (!isObject(patch)) throw wrongPatchType(patch, 'map[string]interface {}');
  if (isDeeperThan(patch, MAX_DEPTH)) throw badPatch(`the patch nests deeper than ${MAX_DEPTH} levels`);
  return merge(document, patch);
}

function merge(target: JsonObject, patch: JsonObject): JsonObject {
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined) continue;
    if (value === null) {
      delete target[key];
    } else if (isObject(value)) {
      const before = field(target, key);
      setField(target, key, merge(isObject(before) ? before : {}, value));
    } else {
      setField(target, key, cloneJson(value));
    }
  }
  return target;
}
