/**
 * Strategic merge patch: a merge patch that supports set lists, keyed lists and directives. Errors are those of
 * upstream. Source: k8s.io/community contributors/devel/sig-api-machinery/strategic-merge-patch.md.
 */
import type { ListNode, SchemaNode } from '../../../api/schema/node.ts';
import {
  cloneJson,
  field,
  isDeeperThan,
  isObject,
  isScalar,
  type JsonObject,
  type JsonValue,
  MAX_DEPTH,
  setField,
} from './document.ts';
import { badPatch, unprocessable } from './errors.ts';
import { orderByPatch } from './list-order.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_FROM_LIST = '$deleteFromPrimitiveList/';
const ELEMENT_ORDER = '$setElementOrder/';

/**
 * Applies `patch` to `document`. Throws ApiError: BadRequest for a malformed patch, Invalid for a patch that does not
 * fit the document.
 */
export function strategicMergePatch(
  document: JsonObject,
  patch: JsonValue,
  schema: SchemaNode | undefined,
): JsonObject {
  return strategicMergeInto(cloneJson(document), patch, schema);
}

/** Like `strategicMergePatch`, but changes `document` in place. */
export function strategicMergeInto(document: JsonObject, patch: JsonValue, schema: SchemaNode | undefined): JsonObject {
  if (!isObject(patch)) throw badPatch('error decoding patch: a strategic merge patch must be an object');
  if (isDeeperThan(patch, MAX_DEPTH)) throw badPatch(`the patch nests deeper than ${MAX_DEPTH} levels`);
  return mergeObject(document, patch, schema);
}

/** Merges `patch` into `target` in place. */
function mergeObject(target: JsonObject, patch: JsonObject, schema: SchemaNode | undefined): JsonObject {
  switch (directiveOf(patch)) {
    case 'replace':
      return withoutDirectives(patch);
    case 'delete':
      return {};
    default:
  }
  retainKeys(target, patch);
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined || key === DIRECTIVE || key === RETAIN_KEYS) continue;
    if (key.startsWith(ELEMENT_ORDER)) {
      // The order of a list that the patch also sets is applied when that list is merged.
      const name = key.slice(ELEMENT_ORDER.length);
      if (!Object.hasOwn(patch, name)) orderList(target, name, undefined, value, schema);
      continue;
    }
    if (key.startsWith(DELETE_FROM_LIST)) {
      deleteFromList(target, key.slice(DELETE_FROM_LIST.length), value);
      continue;
    }
    mergeField(target, key, value, patch, schema);
  }
  return target;
}

function mergeField(
  target: JsonObject,
  key: string,
  value: JsonValue,
  patch: JsonObject,
  parent: SchemaNode | undefined,
): void {
  if (value === null) {
    delete target[key];
    return;
  }
  const schema = fieldSchema(parent, key);
  const replaces = schema?.patchStrategy.includes('replace') === true;
  const before = field(target, key);
  if (isObject(value)) {
    const merged = replaces || !isObject(before) ? created(value) : mergeObject(before, value, schema);
    if (merged === undefined) delete target[key];
    else setField(target, key, merged);
    return;
  }
  if (!Array.isArray(value)) {
    setField(target, key, value);
    return;
  }
  if (schema?.kind !== 'list' || !schema.patchStrategy.includes('merge')) {
    setField(target, key, cloneJson(value));
    return;
  }
  const list = Array.isArray(before) ? before : [];
  const order = field(patch, ELEMENT_ORDER + key);
  const { items, live } = mergeList(list, value, schema);
  setField(target, key, items);
  if (order !== undefined) orderList(target, key, { live, patched: value }, order, parent);
}

/** Value of a new object. Undefined if the patch deletes it. */
function created(value: JsonObject): JsonObject | undefined {
  return directiveOf(value) === 'delete' ? undefined : withoutDirectives(value);
}

interface MergedList {
  readonly items: JsonValue[];
  /** List whose order determines the position of items that the patch does not order. */
  readonly live: readonly JsonValue[];
}

/**
 * Without an order directive, the patch items keep the order of the patch, and new items precede the items that the
 * patch does not contain. With an order directive, the result depends on which items count as live. Upstream overwrites
 * the slice of live items in place, so new items that take the places of deleted items count as live there; `live` of
 * the result reproduces this.
 */
function mergeList(target: JsonValue[], patch: readonly JsonValue[], schema: ListNode): MergedList {
  if (!patch.some(isObject)) return { items: mergeValues(target, patch), live: target };
  const mergeKey = schema.patchMergeKey;
  if (mergeKey === undefined) throw unprocessable('the list has no merge key: its items cannot be merged');
  const items = patch.map((item) => {
    if (!isObject(item)) throw badPatch('a list in the patch mixes objects and other values');
    return item;
  });
  const replace = items.some((item) => directiveOf(item) === 'replace');
  const deleted = new Set<string>();
  const merged: JsonObject[] = [];
  for (const item of items) {
    const directive = directiveOf(item);
    if (directive === 'delete') deleted.add(keyOf(item, mergeKey));
    else if (directive === 'merge') throw badPatch('$patch: merge cannot be used on an item of a list');
    else if (directive === undefined) merged.push(item);
  }
  if (replace) return { items: merged.map((item) => withoutDirectives(item)), live: target };
  const kept = target.filter((item) => !isObject(item) || !deleted.has(identity(field(item, mergeKey))));
  const positions = new Map<string, number>();
  for (const [index, item] of kept.entries()) {
    const id = isObject(item) ? identity(field(item, mergeKey)) : '';
    if (id !== '' && !positions.has(id)) positions.set(id, index);
  }
  for (const item of merged) {
    const id = keyOf(item, mergeKey);
    const position = positions.get(id);
    const before = position === undefined ? undefined : kept[position];
    if (position === undefined || !isObject(before)) {
      positions.set(id, kept.length);
      kept.push(withoutDirectives(item));
    } else {
      kept[position] = mergeObject(before, item, schema.items);
    }
  }
  const idOf = (item: JsonValue): string => (isObject(item) ? identity(field(item, mergeKey)) : '');
  return { items: orderByPatch(kept, target, merged.map(idOf), idOf), live: kept.slice(0, target.length) };
}

/** Merges a mergeable list of scalars as a set. */
function mergeValues(target: readonly JsonValue[], patch: readonly JsonValue[]): JsonValue[] {
  const seen = new Set<string>();
  const merged = [...target, ...patch].filter((value) => {
    const id = identity(value);
    if (id === '') return true;
    if (seen.has(id)) return false;
    seen.add(id);
    return true;
  });
  return orderByPatch(merged, target, patch.map(identity), identity);
}

function deleteFromList(target: JsonObject, key: string, values: JsonValue): void {
  if (!Array.isArray(values) || values.some((value) => !isScalar(value))) {
    throw badPatch(`${DELETE_FROM_LIST}${key} must be a list of plain values`);
  }
  const list = field(target, key);
  if (!Array.isArray(list)) return;
  const unwanted = new Set(values.map(identity));
  setField(
    target,
    key,
    list.filter((value) => !unwanted.has(identity(value))),
  );
}

function retainKeys(target: JsonObject, patch: JsonObject): void {
  const keys = field(patch, RETAIN_KEYS);
  if (keys === undefined) return;
  if (!Array.isArray(keys)) throw badPatch(`${RETAIN_KEYS} must be a list of field names`);
  const retained = new Set<JsonValue>(keys);
  for (const key of Object.keys(patch)) {
    if (patch[key] !== null && !key.startsWith('$') && !retained.has(key)) {
      throw badPatch(`${RETAIN_KEYS} must name every field that the patch sets: ${JSON.stringify(key)} is missing`);
    }
  }
  for (const key of Object.keys(target)) {
    if (!retained.has(key)) delete target[key];
  }
}

/**
 * Sorts list `key` of `target` by `order`. Items that are not in `order` keep their position relative to the others.
 */
function orderList(
  target: JsonObject,
  key: string,
  change: { readonly live: readonly JsonValue[]; readonly patched: readonly JsonValue[] } | undefined,
  order: JsonValue,
  parent: SchemaNode | undefined,
): void {
  if (!Array.isArray(order)) throw badPatch(`${ELEMENT_ORDER}${key} must be a list`);
  const list = field(target, key);
  const schema = fieldSchema(parent, key);
  if (!Array.isArray(list) || schema?.kind !== 'list') return;
  const idOf = (item: JsonValue): string => {
    if (!isObject(item)) return identity(item);
    if (schema.patchMergeKey === undefined) throw unprocessable(`${key} has no merge key: it cannot be ordered`);
    return keyOf(item, schema.patchMergeKey);
  };
  const wanted = order.map(idOf);
  if (change !== undefined) requireInOrder(change.patched.filter(isKept).map(idOf), wanted, key);
  const live = change?.live ?? list;
  setField(target, key, orderByPatch(list, live, wanted, idOf));
}

function isKept(item: JsonValue): boolean {
  return !isObject(item) || directiveOf(item) === undefined;
}

/** Throws an ApiError if the items of the patch do not occur in the order directive in the same order. */
function requireInOrder(patched: readonly string[], wanted: readonly string[], key: string): void {
  let at = 0;
  for (const id of patched) {
    const found = wanted.indexOf(id, at);
    if (found < 0) throw badPatch(`the order in the patch does not match ${ELEMENT_ORDER}${key}`);
    at = found + 1;
  }
}

function directiveOf(patch: JsonObject): 'replace' | 'delete' | 'merge' | undefined {
  const directive = field(patch, DIRECTIVE);
  switch (directive) {
    case undefined:
    case 'replace':
    case 'delete':
    case 'merge':
      return directive;
    default:
      throw badPatch(`unknown patch type: ${JSON.stringify(directive)}`);
  }
}

/** Removes directives and nulls from a part of a patch that becomes part of the document. */
function withoutDirectives(patch: JsonObject): JsonObject {
  const plain: JsonObject = {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === undefined || value === null) continue;
    if (key === DIRECTIVE || key === RETAIN_KEYS || key.startsWith(DELETE_FROM_LIST) || key.startsWith(ELEMENT_ORDER)) {
      continue;
    }
    setField(plain, key, plainValue(value));
  }
  return plain;
}

function plainValue(value: JsonValue): JsonValue {
  if (isObject(value)) return withoutDirectives(value);
  if (!Array.isArray(value)) return value;
  return value.filter(isKept).map(plainValue);
}

function fieldSchema(parent: SchemaNode | undefined, key: string): SchemaNode | undefined {
  if (parent?.kind === 'object') return parent.fields.get(key);
  return parent?.kind === 'map' ? parent.items : undefined;
}

function keyOf(item: JsonObject, mergeKey: string): string {
  const id = identity(field(item, mergeKey));
  if (id === '') throw unprocessable(`map: ${summary(item)} does not contain declared merge key: ${mergeKey}`);
  return id;
}

/** Text that is equal for equal scalars; '' for a value that cannot identify an item. */
function identity(value: JsonValue | undefined): string {
  return isScalar(value) ? JSON.stringify(value) : '';
}

function summary(item: JsonObject): string {
  const text = JSON.stringify(item);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
