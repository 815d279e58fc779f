/**
 * Walks over documents guided by their schema, for server-side apply. Where there is no schema (custom resources without one,
 * RawExtension) objects merge field by field and lists are atomic, as upstream deduces.
 */
import type { ListNode, ScalarType, SchemaNode } from '../../api/schema/node.ts';
import { goText } from '../../base/go-text.ts';
import { parseJson } from '../../base/json.ts';
import type { Steps } from '../../base/steps.ts';
import { isHeavy, Pieces, Weigher } from '../../base/weight.ts';
import { clone, equal, field, isObject, isScalar, type JsonObject, type JsonValue, setField } from './document.ts';
import { untyped } from './errors.ts';
import { child, EMPTY_SET, type FieldSet, fieldElement, isEmpty, isMember, memberNode } from './field-set.ts';

/** How a place in a document merges. */
type Shape =
  | { readonly kind: 'fields'; readonly schema: SchemaNode | undefined; readonly declared: boolean }
  | { readonly kind: 'list'; readonly schema: ListNode }
  | { readonly kind: 'leaf' };

const LEAF: Shape = { kind: 'leaf' };

function shapeOf(value: JsonValue | undefined, schema: SchemaNode | undefined): Shape {
  if (isObject(value)) {
    if (schema?.kind === 'object' || schema?.kind === 'map') {
      return schema.atomic ? LEAF : { kind: 'fields', schema, declared: schema.kind === 'object' };
    }
    return schema === undefined || (schema.kind === 'scalar' && schema.type === 'any')
      ? { kind: 'fields', schema: undefined, declared: false }
      : LEAF;
  }
  if (Array.isArray(value) && schema?.kind === 'list' && schema.listType !== 'atomic') return { kind: 'list', schema };
  return LEAF;
}

function fieldSchema(shape: Extract<Shape, { kind: 'fields' }>, name: string): SchemaNode | undefined {
  if (shape.schema?.kind === 'object') return shape.schema.fields.get(name);
  return shape.schema?.kind === 'map' ? shape.schema.items : undefined;
}

/** Declared fields belong to the managers that own something below them; preserved unknown fields to the manager that created them. */
function declares(shape: Extract<Shape, { kind: 'fields' }>, name: string): boolean {
  return shape.declared && shape.schema?.kind === 'object' && shape.schema.fields.has(name);
}

/** True where the path element names a field that the type declares. */
function isDeclared(shape: Shape, element: string): boolean {
  return shape.kind === 'fields' && element.startsWith('f:') && declares(shape, element.slice(2));
}

/** The path element of an item; undefined when nothing identifies it. */
function itemElement(item: JsonValue, list: ListNode): string | undefined {
  if (list.listType === 'set') return isScalar(item) ? `v:${JSON.stringify(item)}` : undefined;
  if (!isObject(item)) return undefined;
  const key: JsonObject = {};
  let found = false;
  for (const name of [...list.mapKeys].sort()) {
    const value =
      field(item, name) ?? (Object.hasOwn(list.mapKeyDefaults, name) ? list.mapKeyDefaults[name] : undefined);
    if (!isScalar(value)) continue;
    setField(key, name, value);
    found = true;
  }
  return found ? `k:${JSON.stringify(key)}` : undefined;
}

/** Items of one list that have the same path element. They are owned, compared and replaced together. */
export class Twins {
  readonly items: JsonValue[];

  constructor(first: JsonValue) {
    this.items = [first];
  }
}

type ListItem = JsonValue | Twins;

/** Items by path element; undefined when an item has none: such a list can only be treated as a whole. */
export function itemsOf(list: readonly JsonValue[], schema: ListNode): Map<string, ListItem> | undefined {
  const items = new Map<string, ListItem>();
  for (const item of list) {
    const element = itemElement(item, schema);
    if (element === undefined) return undefined;
    const before = items.get(element);
    if (before === undefined) {
      items.set(element, item);
      continue;
    }
    const twins = before instanceof Twins ? before : new Twins(before);
    twins.items.push(item);
    items.set(element, twins);
  }
  return items;
}

/** The fields that an applied configuration names (structured-merge-diff's ToFieldSet). */
export function fieldsOf(value: JsonValue, schema: SchemaNode | undefined): FieldSet {
  return ownBelow(value, schema, false);
}

function isEmptyList(value: JsonValue, schema: SchemaNode | undefined): boolean {
  return Array.isArray(value) && value.length === 0 && shapeOf(value, schema).kind === 'list';
}

/** The fields that came into being with `value`: as `fieldsOf`, with structures, maps and lists themselves. */
function addedBelow(value: JsonValue, schema: SchemaNode | undefined): FieldSet {
  return ownBelow(value, schema, true);
}

function ownBelow(value: JsonValue, schema: SchemaNode | undefined, containers: boolean): FieldSet {
  const shape = shapeOf(value, schema);
  const set: Record<string, FieldSet> = {};
  if (shape.kind === 'fields' && isObject(value)) {
    for (const name of Object.keys(value)) {
      const own = value[name];
      if (own === undefined) continue;
      // An empty list of items has no owner.
      if (!containers && isEmptyList(own, fieldSchema(shape, name))) continue;
      const below = ownBelow(own, fieldSchema(shape, name), containers);
      const self = !declares(shape, name) || (containers && isContainer(own));
      set[fieldElement(name)] = self ? memberNode(below) : below;
    }
  } else if (shape.kind === 'list' && Array.isArray(value)) {
    const items = itemsOf(value, shape.schema);
    for (const [element, item] of items ?? [])
      set[element] = item instanceof Twins ? EMPTY_SET : memberNode(ownBelow(item, shape.schema.items, containers));
  }
  return set;
}

/** What holds other fields comes into being by somebody's hand, as they do. */
export function isContainer(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null;
}

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** What differs between two states of a document. */
export function compare(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Comparison {
  const shape = shapeOf(after, schema);
  if (before === after) return SAME;
  if (shape.kind === 'fields' && isObject(before) && isObject(after)) {
    const found = new ComparisonBuilder();
    for (const name of Object.keys(after)) {
      const was = field(before, name);
      const is = after[name];
      if (was !== is) found.compareChild(fieldElement(name), was, is, fieldSchema(shape, name), !declares(shape, name));
    }
    for (const name of Object.keys(before)) {
      if (!Object.hasOwn(after, name)) {
        found.compareChild(
          fieldElement(name),
          field(before, name),
          undefined,
          fieldSchema(shape, name),
          !declares(shape, name),
        );
      }
    }
    return found.result();
  }
  if (shape.kind === 'list' && Array.isArray(before) && Array.isArray(after)) {
    const old = itemsOf(before, shape.schema);
    const now = itemsOf(after, shape.schema);
    if (old !== undefined && now !== undefined) {
      const found = new ComparisonBuilder();
      for (const [element, item] of now) found.compareItem(element, old.get(element), item, shape.schema.items);
      for (const [element, item] of old) {
        if (!now.has(element)) found.compareItem(element, item, undefined, shape.schema.items);
      }
      return found.result();
    }
  }
  return SAME;
}

/** As `compare`, a piece at a time. */
export function* compareSteps(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Steps<Comparison> {
  return yield* new LargeComparison().compare(before, after, schema);
}

/** Goes step by step into what is large; the rest is compared at once. */
class LargeComparison {
  readonly #weigher = new Weigher();
  readonly #pieces = new Pieces();

  *compare(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Steps<Comparison> {
    const shape = shapeOf(after, schema);
    const found = new ComparisonBuilder();
    if (before === after) return SAME;
    if (shape.kind === 'fields' && isObject(before) && isObject(after)) {
      for (const name of this.#weigher.names(after)) {
        const self = !declares(shape, name);
        const below = fieldSchema(shape, name);
        yield* this.#child(found, fieldElement(name), field(before, name), after[name], below, self);
      }
      yield;
      for (const name of this.#weigher.names(before)) {
        if (Object.hasOwn(after, name)) continue;
        const self = !declares(shape, name);
        const below = fieldSchema(shape, name);
        yield* this.#child(found, fieldElement(name), field(before, name), undefined, below, self);
      }
      return found.result();
    }
    if (shape.kind !== 'list' || !Array.isArray(before) || !Array.isArray(after)) return SAME;
    const old = itemsOf(before, shape.schema);
    yield;
    const now = itemsOf(after, shape.schema);
    if (old === undefined || now === undefined) return SAME;
    for (const [element, item] of now) yield* this.#item(found, element, old.get(element), item, shape.schema.items);
    for (const [element, item] of old) {
      if (!now.has(element)) yield* this.#item(found, element, item, undefined, shape.schema.items);
    }
    return found.result();
  }

  *#item(
    found: ComparisonBuilder,
    element: string,
    before: ListItem | undefined,
    after: ListItem | undefined,
    schema: SchemaNode | undefined,
  ): Steps<void> {
    if (before instanceof Twins || after instanceof Twins) found.compareItem(element, before, after, schema);
    else yield* this.#child(found, element, before, after, schema, true);
  }

  *#child(
    found: ComparisonBuilder,
    element: string,
    before: JsonValue | undefined,
    after: JsonValue | undefined,
    schema: SchemaNode | undefined,
    self: boolean,
  ): Steps<void> {
    if (before === after) {
      if (this.#pieces.isOver()) yield;
      return;
    }
    const weight = this.#weigher.weight(after ?? before);
    if (isHeavy(weight) && isContainer(before ?? null) && isContainer(after ?? null)) {
      yield;
      if (descends(before ?? null, after ?? null, schema)) {
        found.putBelow(element, yield* this.compare(before ?? null, after ?? null, schema));
        return;
      }
    }
    found.compareChild(element, before, after, schema, self);
    if (this.#pieces.isOver(weight)) yield;
  }
}

const SAME: Comparison = { added: EMPTY_SET, modified: EMPTY_SET, removed: EMPTY_SET };

/** Most places are as they were: sets are made when there is something to put into them. */
class ComparisonBuilder {
  #added: Record<string, FieldSet> | undefined;
  #modified: Record<string, FieldSet> | undefined;
  #removed: Record<string, FieldSet> | undefined;

  /** `self`: the element itself is owned, not only what is below it. */
  compareChild(
    element: string,
    before: JsonValue | undefined,
    after: JsonValue | undefined,
    schema: SchemaNode | undefined,
    self: boolean,
  ): void {
    if (before === after) return;
    if (after === undefined) {
      if (before !== undefined) this.#removed = put(this.#removed, element, memberNode(addedBelow(before, schema)));
      return;
    }
    if (before === undefined) {
      const below = addedBelow(after, schema);
      this.#added = put(this.#added, element, self || isContainer(after) ? memberNode(below) : below);
      return;
    }
    if (before === null && hasParts(after, schema)) {
      // Upstream writes what is empty as null: it was there, what is in it now was not.
      const parts = addedBelow(after, schema);
      if (!isEmpty(parts)) this.#added = put(this.#added, element, parts);
      return;
    }
    const below = descends(before, after, schema) ? compare(before, after, schema) : undefined;
    if (below === undefined) {
      if (equal(before, after)) return;
      this.#modified = put(this.#modified, element, EMPTY_SET);
      // What becomes something else altogether loses its parts.
      if (isObject(before) !== isObject(after) && hasParts(before, schema))
        this.#removed = put(this.#removed, element, addedBelow(before, schema));
      return;
    }
    this.putBelow(element, below);
  }

  /** An item of a list. Twins as such are a member of the set, and nothing is said of what is in them. */
  compareItem(
    element: string,
    before: ListItem | undefined,
    after: ListItem | undefined,
    schema: SchemaNode | undefined,
  ): void {
    if (before instanceof Twins) {
      if (!(after instanceof Twins)) {
        this.compareChild(element, undefined, after, schema, true);
        this.#removed = put(this.#removed, element, EMPTY_SET);
      } else if (!equal(before.items, after.items)) this.#modified = put(this.#modified, element, EMPTY_SET);
    } else if (after instanceof Twins) {
      this.compareChild(element, before, undefined, schema, true);
      this.#added = put(this.#added, element, EMPTY_SET);
    } else this.compareChild(element, before, after, schema, true);
  }

  /** What differs below the element. */
  putBelow(element: string, below: Comparison): void {
    if (!isEmpty(below.added)) this.#added = put(this.#added, element, below.added);
    if (!isEmpty(below.modified)) this.#modified = put(this.#modified, element, below.modified);
    if (!isEmpty(below.removed)) this.#removed = put(this.#removed, element, below.removed);
  }

  result(): Comparison {
    return {
      added: this.#added ?? EMPTY_SET,
      modified: this.#modified ?? EMPTY_SET,
      removed: this.#removed ?? EMPTY_SET,
    };
  }
}

/** Into `set`, made when there is none yet. */
function put(set: Record<string, FieldSet> | undefined, element: string, node: FieldSet): Record<string, FieldSet> {
  const into = set ?? {};
  into[element] = node;
  return into;
}

/** Whether the value is owned part by part, or as a whole. */
export function hasParts(value: JsonValue, schema: SchemaNode | undefined): boolean {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'list')
    return Array.isArray(value) && value.length > 0 && itemsOf(value, shape.schema) !== undefined;
  return shape.kind === 'fields' && isObject(value) && Object.keys(value).length > 0;
}

/** As `hasParts`, of what the schema itself makes a structure or a list. */
function hasDeclaredParts(value: JsonValue, schema: SchemaNode | undefined): boolean {
  return schema !== undefined && schema.kind !== 'scalar' && hasParts(value, schema);
}

/** Whether two values are compared part by part, or as wholes. */
export function descends(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): boolean {
  const shape = shapeOf(after, schema);
  if (shape.kind === 'fields') return isObject(before);
  if (shape.kind !== 'list' || !Array.isArray(before) || !Array.isArray(after)) return false;
  return itemsOf(before, shape.schema) !== undefined && itemsOf(after, shape.schema) !== undefined;
}

/**
 * `live` with what `applied` says laid over it. Null says nothing of a structure or a list that has parts, which belong to their owners; else
 * it is a value like any other. Shares nothing with its arguments.
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
      setField(merged, name, kept ? clone(before) : mergeTyped(before, value, below));
    }
    return merged;
  }
  if (shape.kind === 'list' && Array.isArray(applied) && Array.isArray(live))
    return mergeLists(live, applied, shape.schema);
  return clone(applied);
}

/** A copy of what `applied` does not touch; places are kept, so that fields keep their order. */
function shallowClone(live: JsonObject, applied: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const name of Object.keys(live)) {
    const value = live[name];
    if (value !== undefined) setField(copy, name, Object.hasOwn(applied, name) ? null : clone(value));
  }
  return copy;
}

/** The applied items in their order; items that only the live list has keep their place before what followed them. */
function mergeLists(live: readonly JsonValue[], applied: readonly JsonValue[], schema: ListNode): JsonValue[] {
  interface Item {
    readonly element: string | undefined;
    readonly value: JsonValue;
  }
  const keyed = (value: JsonValue): Item => ({ element: itemElement(value, schema), value });
  const liveItems = live.map(keyed);
  // What there is twice is replaced, not merged with.
  const before = new Map<string, JsonValue | undefined>();
  for (const { element, value } of liveItems) {
    if (element !== undefined) before.set(element, before.has(element) ? undefined : value);
  }
  const appliedItems = applied.map(keyed);
  const known = new Set(appliedItems.map(({ element }) => element));
  const isShared = ({ element }: Item): boolean => element !== undefined && before.has(element);
  const merged: JsonValue[] = [];
  let next = 0;
  /** Takes over live-only items up to the one that the applied list wants next of those that both have. */
  const catchUp = (awaited: Item | undefined): void => {
    for (let item = liveItems[next]; item !== undefined; item = liveItems[++next]) {
      if (item.element === undefined || !known.has(item.element)) merged.push(clone(item.value));
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
  return [...merged, ...rest.map(({ value }) => clone(value))];
}

/** For each item the first one from there on that both lists have. */
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
 * `value` without what `last` owned and no manager in `owned` owns any more. Declared fields count as owned by the managers that own something
 * below them, so that a structure goes as a whole with the last of its owners.
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

/** Refuses an applied configuration that does not fit the schema. Throws ApiError Unknown naming the place. */
export function checkApplied(value: JsonValue, schema: SchemaNode | undefined, subject: string): void {
  const problem = problemOfApplied(value, schema);
  if (problem !== undefined) throw untyped(`failed to create typed patch object (${subject}): ${problem}`);
}

/** Where, and how, a configuration does not fit the schema. */
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

/** In the words of upstream's structured merge. What takes numbers and texts alike is looked at where it is read. */
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

/** A value as Go names its type, and as its source would say it. */
function goTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : typeof value === 'bigint' ? 'number' : typeof value;
}

function goSyntax(value: JsonValue): string {
  return typeof value === 'object' ? `${goTypeName(value)}{…}` : JSON.stringify(value);
}

function typeName(value: JsonValue): string {
  return value === null
    ? 'null'
    : Array.isArray(value)
      ? 'list'
      : isObject(value)
        ? 'map'
        : typeof value === 'bigint'
          ? 'number'
          : typeof value;
}
