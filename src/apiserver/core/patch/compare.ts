/** Compares two states of a document by field, and lists the fields of a document. */
import type { SchemaNode } from '../../../api/schema/node.ts';
import type { Steps } from '../../../base/concurrency/steps.ts';
import { isHeavy, Pieces, ValueWeights } from '../../../base/json/value-weight.ts';
import { field, isObject, type JsonValue, jsonEqual } from './document.ts';
import { EMPTY_SET, type FieldSet, fieldElement, isEmpty, memberNode } from './field-set.ts';
import {
  declaresField,
  EqualItems,
  fieldSchema,
  hasParts,
  isComparedByParts,
  isContainer,
  itemsOf,
  type ListItem,
  shapeOf,
} from './merge-shape.ts';

/** Fields of an applied configuration (structured-merge-diff's ToFieldSet). */
export function fieldsOf(value: JsonValue, schema: SchemaNode | undefined): FieldSet {
  return ownBelow(value, schema, false);
}

function isEmptyList(value: JsonValue, schema: SchemaNode | undefined): boolean {
  return Array.isArray(value) && value.length === 0 && shapeOf(value, schema).kind === 'list';
}

/** Fields that are new if `value` is new: like `fieldsOf`, but including the structures, maps and lists themselves. */
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
      // An empty list of keyed items has no owner.
      if (!containers && isEmptyList(own, fieldSchema(shape, name))) continue;
      const below = ownBelow(own, fieldSchema(shape, name), containers);
      const self = !declaresField(shape, name) || (containers && isContainer(own));
      set[fieldElement(name)] = self ? memberNode(below) : below;
    }
  } else if (shape.kind === 'list' && Array.isArray(value)) {
    const items = itemsOf(value, shape.schema);
    for (const [element, item] of items ?? [])
      set[element] =
        item instanceof EqualItems ? EMPTY_SET : memberNode(ownBelow(item, shape.schema.items, containers));
  }
  return set;
}

export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Added, modified and removed fields between two states of a document. */
export function compare(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Comparison {
  const shape = shapeOf(after, schema);
  if (before === after) return SAME;
  if (shape.kind === 'fields' && isObject(before) && isObject(after)) {
    const found = new ComparisonBuilder();
    for (const name of Object.keys(after)) {
      const was = field(before, name);
      const is = after[name];
      if (was !== is)
        found.compareChild(fieldElement(name), was, is, fieldSchema(shape, name), !declaresField(shape, name));
    }
    for (const name of Object.keys(before)) {
      if (!Object.hasOwn(after, name)) {
        found.compareChild(
          fieldElement(name),
          field(before, name),
          undefined,
          fieldSchema(shape, name),
          !declaresField(shape, name),
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

/** Like `compare`, but yields between parts of a large document. */
export function* compareSteps(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Steps<Comparison> {
  return yield* new LargeComparison().compare(before, after, schema);
}

/** Compares a large document: large parts in steps, small parts at once. */
class LargeComparison {
  readonly #weigher = new ValueWeights();
  readonly #pieces = new Pieces();

  *compare(before: JsonValue, after: JsonValue, schema: SchemaNode | undefined): Steps<Comparison> {
    const shape = shapeOf(after, schema);
    const found = new ComparisonBuilder();
    if (before === after) return SAME;
    if (shape.kind === 'fields' && isObject(before) && isObject(after)) {
      for (const name of this.#weigher.names(after)) {
        const self = !declaresField(shape, name);
        const below = fieldSchema(shape, name);
        yield* this.#child(found, fieldElement(name), field(before, name), after[name], below, self);
      }
      yield;
      for (const name of this.#weigher.names(before)) {
        if (Object.hasOwn(after, name)) continue;
        const self = !declaresField(shape, name);
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
    if (before instanceof EqualItems || after instanceof EqualItems) found.compareItem(element, before, after, schema);
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
      if (isComparedByParts(before ?? null, after ?? null, schema)) {
        found.putBelow(element, yield* this.compare(before ?? null, after ?? null, schema));
        return;
      }
    }
    found.compareChild(element, before, after, schema, self);
    if (this.#pieces.isOver(weight)) yield;
  }
}

const SAME: Comparison = { added: EMPTY_SET, modified: EMPTY_SET, removed: EMPTY_SET };

/** Builds a comparison. The sets are created only if there is a difference, because most fields are unchanged. */
class ComparisonBuilder {
  #added: Record<string, FieldSet> | undefined;
  #modified: Record<string, FieldSet> | undefined;
  #removed: Record<string, FieldSet> | undefined;

  /** `self`: the element itself is owned, not only fields below it. */
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
      // As upstream, an empty value counts as null: the field existed, and only its contents are new.
      const parts = addedBelow(after, schema);
      if (!isEmpty(parts)) this.#added = put(this.#added, element, parts);
      return;
    }
    // Most lists are unchanged, and comparing them is cheaper than identifying their items.
    if (Array.isArray(before) && Array.isArray(after) && jsonEqual(before, after)) return;
    const below = isComparedByParts(before, after, schema) ? compare(before, after, schema) : undefined;
    if (below === undefined) {
      if (jsonEqual(before, after)) return;
      this.#modified = put(this.#modified, element, EMPTY_SET);
      // If the type changes from or to an object, the fields of the old value are removed.
      if (isObject(before) !== isObject(after) && hasParts(before, schema))
        this.#removed = put(this.#removed, element, addedBelow(before, schema));
      return;
    }
    this.putBelow(element, below);
  }

  /** Compares an item of a list. Items with the same key are one member of the set; their fields are not compared. */
  compareItem(
    element: string,
    before: ListItem | undefined,
    after: ListItem | undefined,
    schema: SchemaNode | undefined,
  ): void {
    if (before instanceof EqualItems) {
      if (!(after instanceof EqualItems)) {
        this.compareChild(element, undefined, after, schema, true);
        this.#removed = put(this.#removed, element, EMPTY_SET);
      } else if (!jsonEqual(before.items, after.items)) this.#modified = put(this.#modified, element, EMPTY_SET);
    } else if (after instanceof EqualItems) {
      this.compareChild(element, before, undefined, schema, true);
      this.#added = put(this.#added, element, EMPTY_SET);
    } else this.compareChild(element, before, after, schema, true);
  }

  /** Adds the differences below an element. */
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

/** Adds to `set`, which is created if it is undefined. */
function put(set: Record<string, FieldSet> | undefined, element: string, node: FieldSet): Record<string, FieldSet> {
  const into = set ?? {};
  into[element] = node;
  return into;
}
