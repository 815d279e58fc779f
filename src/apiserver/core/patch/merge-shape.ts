/**
 * Merge behaviour of values by their schema. For values without a schema (some custom resources, RawExtension), objects
 * are merged field by field and lists are atomic, as in upstream's deduced schema.
 */
import type { ListNode, SchemaNode } from '../../../api/schema/node.ts';
import { field, isObject, isScalar, type JsonObject, type JsonValue, setField } from './document.ts';

export type Shape =
  | { readonly kind: 'fields'; readonly schema: SchemaNode | undefined; readonly declared: boolean }
  | { readonly kind: 'list'; readonly schema: ListNode }
  | { readonly kind: 'leaf' };

const LEAF: Shape = { kind: 'leaf' };

export function shapeOf(value: JsonValue | undefined, schema: SchemaNode | undefined): Shape {
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

export function fieldSchema(shape: Extract<Shape, { kind: 'fields' }>, name: string): SchemaNode | undefined {
  if (shape.schema?.kind === 'object') return shape.schema.fields.get(name);
  return shape.schema?.kind === 'map' ? shape.schema.items : undefined;
}

/**
 * Reports whether the type declares the field. A declared field is owned by the managers that own fields below it. A
 * preserved unknown field is owned by the manager that created it.
 */
export function declaresField(shape: Extract<Shape, { kind: 'fields' }>, name: string): boolean {
  return shape.declared && shape.schema?.kind === 'object' && shape.schema.fields.has(name);
}

/** Reports whether the path element is a field that the type declares. */
export function isDeclared(shape: Shape, element: string): boolean {
  return shape.kind === 'fields' && element.startsWith('f:') && declaresField(shape, element.slice(2));
}

/** Path element of a list item. Undefined if it has no key. */
export function itemElement(item: JsonValue, list: ListNode): string | undefined {
  if (list.listType === 'set') return isScalar(item) ? `v:${JSON.stringify(item)}` : undefined;
  if (!isObject(item)) return undefined;
  const [only, another] = list.mapKeys;
  if (only !== undefined && another === undefined) {
    const value = keyValue(item, only, list);
    return isScalar(value) ? `k:{${JSON.stringify(only)}:${JSON.stringify(value)}}` : undefined;
  }
  const key: JsonObject = {};
  let found = false;
  for (const name of [...list.mapKeys].sort()) {
    const value = keyValue(item, name, list);
    if (!isScalar(value)) continue;
    setField(key, name, value);
    found = true;
  }
  return found ? `k:${JSON.stringify(key)}` : undefined;
}

function keyValue(item: JsonObject, name: string, { mapKeyDefaults }: ListNode): JsonValue | undefined {
  return field(item, name) ?? (Object.hasOwn(mapKeyDefaults, name) ? mapKeyDefaults[name] : undefined);
}

/** Items of a list with the same path element. They are owned, compared and replaced together. */
export class EqualItems {
  readonly items: JsonValue[];

  constructor(first: JsonValue) {
    this.items = [first];
  }
}

export type ListItem = JsonValue | EqualItems;

/** Items by path element. Undefined if an item has no path element; the list must then be treated as a whole. */
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
    const twins = before instanceof EqualItems ? before : new EqualItems(before);
    twins.items.push(item);
    items.set(element, twins);
  }
  return items;
}

/**
 * Reports whether the value is a structure, map or list. The manager that adds a container owns it in addition to its
 * fields.
 */
export function isContainer(value: JsonValue): boolean {
  return typeof value === 'object' && value !== null;
}

/** Reports whether the parts of the value have owners, or only the value as a whole. */
export function hasParts(value: JsonValue, schema: SchemaNode | undefined): boolean {
  const shape = shapeOf(value, schema);
  if (shape.kind === 'list')
    return Array.isArray(value) && value.length > 0 && itemsOf(value, shape.schema) !== undefined;
  return shape.kind === 'fields' && isObject(value) && Object.keys(value).length > 0;
}

/** Like `hasParts`, but false for values whose type the schema does not declare as a structure, map or list. */
export function hasDeclaredParts(value: JsonValue, schema: SchemaNode | undefined): boolean {
  return schema !== undefined && schema.kind !== 'scalar' && hasParts(value, schema);
}

/** Reports whether two values are compared by their parts or as a whole. */
export function isComparedByParts(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): boolean {
  const shape = shapeOf(after, schema);
  if (shape.kind === 'fields') return isObject(before);
  if (shape.kind !== 'list' || !Array.isArray(before) || !Array.isArray(after)) return false;
  return itemsOf(before, shape.schema) !== undefined && itemsOf(after, shape.schema) !== undefined;
}
