/**
 * Fields of a new object, which are all owned by its creator. One pass builds the set in storage order, because every
 * create needs it. Equivalent to comparing the object with the kind's skeleton and removing fields without an owner.
 */
import type { ListNode, ObjectNode, SchemaNode } from '../../../api/schema/node.ts';
import type { Steps } from '../../../base/concurrency/steps.ts';
import { isHeavy, Pieces, ValueWeights } from '../../../base/json/value-weight.ts';
import { compare } from './compare.ts';
import { field, isObject, type JsonObject, type JsonValue, jsonEqual, setField } from './document.ts';
import { child, EMPTY_SET, type FieldSet, fieldElement, fieldUnion, isEmpty, SELF, sorted } from './field-set.ts';
import { isUnowned, isUnownedMetadata } from './managed-fields.ts';
import { EqualItems, hasParts, isComparedByParts, isContainer, itemsOf } from './merge-shape.ts';

type Node = Record<string, FieldSet>;
/** Reports whether the field of this name has no owner. */
type Passed = (name: string) => boolean;

const NONE: Passed = () => false;

/** Fields that the creator of the object owns: all fields except those in `skeleton` and those that the server sets. */
export function createdFields(object: JsonObject, schema: SchemaNode | undefined, skeleton: JsonObject): FieldSet {
  return newFields(object, schema, skeleton, isUnowned, 'root');
}

/** Like `createdFields`, but yields between parts of a large object. */
export function* createdFieldsSteps(
  object: JsonObject,
  schema: SchemaNode | undefined,
  skeleton: JsonObject,
): Steps<FieldSet> {
  return yield* new LargeWalk().newFields(object, schema, skeleton, isUnowned, 'root');
}

/** Same algorithm for a large object: large parts are processed in steps, small parts at once. */
class LargeWalk {
  readonly #weigher = new ValueWeights();
  readonly #pieces = new Pieces();

  /** Variant of the function `besides` that walks large new parts in separate steps. */
  *newFields(
    object: JsonObject,
    schema: SchemaNode | undefined,
    before: JsonObject,
    passed: Passed,
    level: 'root' | 'nested',
  ): Steps<FieldSet> {
    const structure = schema?.kind === 'object' ? schema : undefined;
    const items = schema?.kind === 'map' ? schema.items : undefined;
    const rest: JsonObject = {};
    const apart: Node = {};
    for (const name of this.#weigher.names(object)) {
      const value = object[name];
      if (value === undefined || passed(name)) continue;
      const known = field(before, name);
      const own = structure === undefined ? items : structure.fields.get(name);
      if (own === undefined || !isHeavy(this.#weigher.weight(value))) setField(rest, name, value);
      else if (known === undefined)
        apart[elementIn(structure, name)] = yield* this.#node(value, own, selfIn(structure, value));
      else if (level === 'root' && name === 'metadata' && isObject(value) && isObject(known)) {
        const found = yield* this.newFields(value, own, known, isUnownedMetadata, 'nested');
        if (found !== NOTHING) apart[elementIn(structure, name)] = found;
      } else if (known === null && hasParts(value, own)) {
        const parts = yield* this.#node(value, own, false);
        if (!isEmpty(parts)) apart[elementIn(structure, name)] = parts;
      } else if (isObject(value) && isObject(known) && isComparedByParts(known, value, own)) {
        const found = yield* this.newFields(value, own, known, NONE, 'nested');
        if (found !== NOTHING) apart[elementIn(structure, name)] = found;
      } else setField(rest, name, value);
    }
    yield;
    const set = newFields(rest, schema, before, passed, level);
    const elements = Object.keys(apart);
    if (elements.length === 0) return set;
    const all: Node = {};
    for (const element of [...elements, ...Object.keys(set)].sort())
      all[element] = apart[element] ?? child(set, element) ?? EMPTY_SET;
    return all;
  }

  /** Like `node`, in steps. */
  *#node(value: JsonValue, schema: SchemaNode | undefined, self: boolean): Steps<FieldSet> {
    const weight = this.#weigher.weight(value);
    if (!isHeavy(weight)) {
      if (this.#pieces.isOver(weight)) yield;
      return node(value, schema, self);
    }
    if (Array.isArray(value)) {
      if (schema?.kind !== 'list' || schema.listType === 'atomic') return EMPTY_SET;
      return yield* this.#items(value, schema, self);
    }
    const below = fieldsBelow(schema);
    return below === undefined || !isObject(value) ? EMPTY_SET : yield* this.#fields(value, below, self);
  }

  *#items(list: readonly JsonValue[], schema: ListNode, self: boolean): Steps<FieldSet> {
    yield;
    const items = itemsOf(list, schema);
    if (items === undefined || items.size === 0) return EMPTY_SET;
    yield;
    const elements = [...items.keys()].sort();
    const set = begun(self);
    for (const element of elements) {
      const item = items.get(element) ?? null;
      set[element] = item instanceof EqualItems ? EMPTY_SET : yield* this.#node(item, schema.items, true);
    }
    return set;
  }

  *#fields(value: JsonObject, schema: FieldsSchema, self: boolean): Steps<FieldSet> {
    yield;
    const names = inOrder(this.#weigher.names(value).slice());
    yield;
    const set = begun(self);
    for (const name of names) {
      const own = value[name];
      if (own === undefined) continue;
      const { structure, items } = schema;
      const below = structure === undefined ? items : structure.fields.get(name);
      set[elementIn(structure, name)] = yield* this.#node(own, below, selfIn(structure, own));
    }
    return set;
  }
}

/** Fields of an object that are not in `before`. */
function newFields(
  object: JsonObject,
  schema: SchemaNode | undefined,
  before: JsonObject,
  passed: Passed,
  level: 'root' | 'nested',
): FieldSet {
  const structure = schema?.kind === 'object' ? schema : undefined;
  const items = schema?.kind === 'map' ? schema.items : undefined;
  let set: Node | undefined;
  for (const name of inOrder(Object.keys(object))) {
    const value = object[name];
    if (value === undefined || passed(name)) continue;
    const own = structure === undefined ? items : structure.fields.get(name);
    const known = field(before, name);
    const found =
      level === 'root' && name === 'metadata' && isObject(value) && isObject(known)
        ? newFields(value, own, known, isUnownedMetadata, 'nested')
        : known === undefined
          ? node(value, own, selfIn(structure, value))
          : changed(value, own, known);
    // A field that existed before and has no new contents is skipped.
    if (found === undefined || (found === NOTHING && known !== undefined)) continue;
    set ??= {};
    set[elementIn(structure, name)] = found;
  }
  return set ?? NOTHING;
}

/** Marks an existing field without new contents. An empty set would mean that the field is owned. */
const NOTHING: FieldSet = Object.freeze({});

function changed(value: JsonValue, schema: SchemaNode | undefined, known: JsonValue): FieldSet | undefined {
  if (value === known) return undefined;
  if (known === null && hasParts(value, schema)) {
    const parts = node(value, schema, false);
    return isEmpty(parts) ? undefined : parts;
  }
  if (!isComparedByParts(known, value, schema)) return jsonEqual(known, value) ? undefined : EMPTY_SET;
  if (isObject(value) && isObject(known)) return newFields(value, schema, known, NONE, 'nested');
  const { added, modified } = compare(known, value, schema);
  const both = sorted(fieldUnion(added, modified));
  return isEmpty(both) ? undefined : both;
}

/**
 * Reports whether a field is owned itself, in addition to the fields below it. Holds for containers and for fields that
 * no structure declares.
 */
function selfIn(structure: ObjectNode | undefined, value: JsonValue): boolean {
  return structure === undefined || isContainer(value);
}

/** `self`: the field itself is owned, too. An empty node also expresses this. */
function node(value: JsonValue, schema: SchemaNode | undefined, self: boolean): FieldSet {
  if (typeof value !== 'object' || value === null) return EMPTY_SET;
  if (Array.isArray(value)) {
    return schema?.kind === 'list' && schema.listType !== 'atomic' ? itemsNode(value, schema, self) : EMPTY_SET;
  }
  const below = fieldsBelow(schema);
  return below === undefined ? EMPTY_SET : fieldsNode(value, below, self);
}

/** Schema of an object's fields: of a structure, of a map, or unknown. */
interface FieldsSchema {
  readonly structure: ObjectNode | undefined;
  readonly items: SchemaNode | undefined;
}

const UNKNOWN_FIELDS: FieldsSchema = { structure: undefined, items: undefined };

/** Schema of the fields below a value, which have owners of their own. Undefined for atomic values. */
function fieldsBelow(schema: SchemaNode | undefined): FieldsSchema | undefined {
  if (schema === undefined || (schema.kind === 'scalar' && schema.type === 'any')) return UNKNOWN_FIELDS;
  if (schema.kind === 'object') return schema.atomic ? undefined : { structure: schema, items: undefined };
  return schema.kind === 'map' && !schema.atomic ? { structure: undefined, items: schema.items } : undefined;
}

function fieldsNode(value: JsonObject, { structure, items }: FieldsSchema, self: boolean): FieldSet {
  let set: Node | undefined;
  for (const name of inOrder(Object.keys(value))) {
    const own = value[name];
    if (own === undefined) continue;
    const below = structure === undefined ? items : structure.fields.get(name);
    set ??= begun(self);
    set[elementIn(structure, name)] = node(own, below, selfIn(structure, own));
  }
  return set ?? EMPTY_SET;
}

function itemsNode(list: readonly JsonValue[], schema: ListNode, self: boolean): FieldSet {
  const items = itemsOf(list, schema);
  if (items === undefined || items.size === 0) return EMPTY_SET;
  const set = begun(self);
  for (const element of [...items.keys()].sort()) {
    const item = items.get(element) ?? null;
    set[element] = item instanceof EqualItems ? EMPTY_SET : node(item, schema.items, true);
  }
  return set;
}

function begun(self: boolean): Node {
  return self ? { [SELF]: EMPTY_SET } : {};
}

/** Up to this many names are sorted by insertion, which is faster than `sort` for few names. */
const FEW = 16;

/** Sorts field names in place. An object usually has few fields, which are often sorted already. */
function inOrder(names: string[]): string[] {
  for (let index = 1; index < names.length; index++) {
    const name = names[index] ?? '';
    if ((names[index - 1] ?? '') <= name) continue;
    if (names.length > FEW) return names.sort();
    let place = index;
    for (; place > 0 && (names[place - 1] ?? '') > name; place--) names[place] = names[place - 1] ?? '';
    names[place] = name;
  }
  return names;
}

/** Cached path elements of declared fields, whose number is limited. */
const declaredElements = new Map<string, string>();

function elementIn(structure: ObjectNode | undefined, name: string): string {
  if (structure === undefined || !structure.fields.has(name)) return fieldElement(name);
  let element = declaredElements.get(name);
  if (element === undefined) {
    element = fieldElement(name);
    declaredElements.set(name, element);
  }
  return element;
}
