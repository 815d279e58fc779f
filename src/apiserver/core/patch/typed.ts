/** Merges an applied configuration into a live document, and removes fields that have lost their last owner. */
import type { ListNode, SchemaNode } from '../../../api/schema/node.ts';
import { cloneJson, field, isObject, type JsonObject, type JsonValue, setField } from './document.ts';
import { child, type FieldSet, fieldElement, isMember } from './field-set.ts';
import { fieldSchema, hasDeclaredParts, isDeclared, itemElement, type Shape, shapeOf } from './merge-shape.ts';

/**
 * Merges `applied` into `live`. An applied null leaves structures and lists with owned parts unchanged, and replaces
 * other values. The result shares no objects with the arguments.
 */
export function mergeTyped(live: JsonValue | undefined, applied: JsonValue, schema: SchemaNode | undefined): JsonValue {
  const shape = shapeOf(applied, schema);
  if (shape.kind === 'fields' && isObject(applied)) {
    const merged: JsonObject = isObject(live) ? shallowClone(live, applied) : {};
    for (const name of Object.keys(applied)) {
      const value = applied[name];
      if (value === undefined) continue;
      const before = isObject(live) ? field(live, name) : undefined;
      const below = fieldSchema(shape, name);
      const kept = value === null && before !== undefined && hasDeclaredParts(before, below);
      setField(merged, name, kept ? cloneJson(before) : mergeTyped(before, value, below));
    }
    return merged;
  }
  if (shape.kind === 'list' && Array.isArray(applied) && Array.isArray(live))
    return mergeLists(live, applied, shape.schema);
  return cloneJson(applied);
}

/**
 * Copies the fields that `applied` does not contain. The other fields get a placeholder, which keeps their position.
 */
function shallowClone(live: JsonObject, applied: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const name of Object.keys(live)) {
    const value = live[name];
    if (value !== undefined) setField(copy, name, Object.hasOwn(applied, name) ? null : cloneJson(value));
  }
  return copy;
}

/** Merges two lists in the order of `applied`. An item that only `live` has stays before the item that followed it. */
function mergeLists(live: readonly JsonValue[], applied: readonly JsonValue[], schema: ListNode): JsonValue[] {
  interface Item {
    readonly element: string | undefined;
    readonly value: JsonValue;
  }
  const keyed = (value: JsonValue): Item => ({ element: itemElement(value, schema), value });
  const liveItems = live.map(keyed);
  // Items with the same key in the live list are replaced, not merged.
  const before = new Map<string, JsonValue | undefined>();
  for (const { element, value } of liveItems) {
    if (element !== undefined) before.set(element, before.has(element) ? undefined : value);
  }
  const appliedItems = applied.map(keyed);
  const known = new Set(appliedItems.map(({ element }) => element));
  const isShared = ({ element }: Item): boolean => element !== undefined && before.has(element);
  const merged: JsonValue[] = [];
  let next = 0;
  /** Copies live-only items up to the next shared item that the applied list needs. */
  const catchUp = (awaited: Item | undefined): void => {
    for (let item = liveItems[next]; item !== undefined; item = liveItems[++next]) {
      if (item.element === undefined || !known.has(item.element)) merged.push(cloneJson(item.value));
      else if (awaited === undefined || item.element === awaited.element) return;
    }
  };
  const awaitedAfter = nextShared(appliedItems, isShared);
  for (const [index, item] of appliedItems.entries()) {
    catchUp(awaitedAfter[index]);
    if (isShared(item) && liveItems[next]?.element === item.element) next++;
    merged.push(
      mergeTyped(item.element === undefined ? undefined : before.get(item.element), item.value, schema.items),
    );
  }
  const rest = liveItems.slice(next).filter(({ element }) => element === undefined || !known.has(element));
  return [...merged, ...rest.map(({ value }) => cloneJson(value))];
}

/** For each index, the next item at or after this index that both lists contain. */
function nextShared<T>(items: readonly T[], isShared: (item: T) => boolean): (T | undefined)[] {
  const result: (T | undefined)[] = [];
  let shared: T | undefined;
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index];
    if (item !== undefined && isShared(item)) shared = item;
    result[index] = shared;
  }
  return result;
}

/**
 * Removes from `value` the fields in `last` that no manager in `owned` owns. Declared fields count as owned while a
 * manager owns a field below them, so a structure is removed with its last owner.
 */
export function pruneUnowned(
  value: JsonValue,
  last: FieldSet,
  owned: FieldSet | undefined,
  schema: SchemaNode | undefined,
): JsonValue {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'fields' && isObject(value)) {
    const pruned: JsonObject = {};
    for (const name of Object.keys(value)) {
      const own = value[name];
      if (own === undefined) continue;
      const left = pruneChild(own, fieldElement(name), last, owned, shape, fieldSchema(shape, name));
      if (left !== undefined) setField(pruned, name, left);
    }
    return pruned;
  }
  if (shape.kind === 'list' && Array.isArray(value)) {
    const pruned: JsonValue[] = [];
    for (const item of value) {
      const element = itemElement(item, shape.schema);
      const left = element === undefined ? item : pruneChild(item, element, last, owned, shape, shape.schema.items);
      if (left !== undefined) pruned.push(left);
    }
    return pruned;
  }
  return value;
}

function pruneChild(
  value: JsonValue,
  element: string,
  last: FieldSet,
  owned: FieldSet | undefined,
  shape: Shape,
  schema: SchemaNode | undefined,
): JsonValue | undefined {
  const lastBelow = child(last, element);
  if (lastBelow === undefined) return value;
  const ownedBelow = owned === undefined ? undefined : child(owned, element);
  const declared = isDeclared(shape, element);
  const wasOwned = declared || isMember(lastBelow);
  const isOwned = ownedBelow !== undefined && (declared || isMember(ownedBelow));
  if (wasOwned && !isOwned) return undefined;
  return pruneUnowned(value, lastBelow, ownedBelow, schema);
}
