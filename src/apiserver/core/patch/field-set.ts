/**
 * Sets of field paths in their stored form, `metadata.managedFields[].fieldsV1`. A key is a path element: `f:name` a
 * field, `k:{"name":"x"}` an item of a keyed list, `v:"x"` an item of a set, `i:0` an index. `.` means that the path so
 * far is itself a member; an empty object means the same. Source: structured-merge-diff's fieldpath serialisation.
 *
 * Sets are immutable: operations return new ones and share unchanged parts, so that "nothing changed" can be tested by
 * identity.
 */

import { parseJson } from '../../../base/json/json.ts';
import { isObject, type JsonObject, type JsonValue, shallowCopy } from './document.ts';

export interface FieldSet {
  readonly [element: string]: FieldSet;
}

export const SELF = '.';

export const EMPTY_SET: FieldSet = Object.freeze({});

export function isEmpty(set: FieldSet): boolean {
  for (const _element in set) return false;
  return true;
}

/** Reports whether the path to `node` is a member. `node` must not be the root of a set. */
export function isMember(node: FieldSet): boolean {
  return Object.hasOwn(node, SELF) || isEmpty(node);
}

export function child(set: FieldSet, element: string): FieldSet | undefined {
  return Object.hasOwn(set, element) ? set[element] : undefined;
}

export function elements(set: FieldSet): string[] {
  return Object.keys(set).filter((element) => element !== SELF);
}

export function fieldElement(name: string): string {
  return `f:${name}`;
}

/** The node of a member with the nodes in `below` under it. */
export function memberNode(below: FieldSet): FieldSet {
  if (isEmpty(below)) return EMPTY_SET;
  const node: Record<string, FieldSet> = { [SELF]: EMPTY_SET };
  for (const element of Object.keys(below)) node[element] = below[element] ?? EMPTY_SET;
  return node;
}

export function fieldUnion(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(a) ? b : isEmpty(b) ? a : joined(a, b);
}

/** Union of many sets, in pairs, so that each element is merged only a logarithmic number of times. */
export function unionAll(sets: readonly FieldSet[]): FieldSet {
  let left = sets;
  while (left.length > 1) {
    const pairs: FieldSet[] = [];
    for (let index = 0; index < left.length; index += 2)
      pairs.push(fieldUnion(left[index] ?? EMPTY_SET, left[index + 1] ?? EMPTY_SET));
    left = pairs;
  }
  return left[0] ?? EMPTY_SET;
}

/** Union of two nodes, or of two non-empty roots. */
function joined(a: FieldSet, b: FieldSet): FieldSet {
  if (a === b) return a;
  // An empty node is a member; if the other node has children, the union needs a dot.
  if (isEmpty(a)) return isEmpty(b) ? a : isMember(b) ? b : memberNode(b);
  const names = Object.keys(b);
  if (names.length === 0) return Object.hasOwn(a, SELF) ? a : memberNode(a);
  let result: Record<string, FieldSet> | undefined;
  for (const element of names) {
    const theirs = b[element];
    if (theirs === undefined) continue;
    const ours = child(a, element);
    const both = ours === undefined ? theirs : element === SELF ? ours : joined(ours, theirs);
    if (both === ours) continue;
    result ??= shallowCopy(a);
    result[element] = both;
  }
  return result ?? a;
}

/** The members of `a` that are not members of `b`. */
export function fieldDifference(a: FieldSet, b: FieldSet): FieldSet {
  return isEmpty(b) ? a : combine(a, b, 'difference');
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  return combine(a, b, 'intersection');
}

function combine(a: FieldSet, b: FieldSet, operation: 'intersection' | 'difference'): FieldSet {
  let result: Record<string, FieldSet> | undefined;
  for (const element of elements(a)) {
    const ours = a[element];
    if (ours === undefined) continue;
    const theirs = child(b, element);
    const alone = operation === 'intersection' ? undefined : ours;
    const left = theirs === undefined ? alone : combineNode(ours, theirs, operation);
    if (left === ours) continue;
    result ??= shallowCopy(a);
    if (left === undefined) delete result[element];
    else result[element] = left;
  }
  return result ?? a;
}

/** Combines two nodes with the same path. Undefined if neither the path nor a path below it remains. */
function combineNode(a: FieldSet, b: FieldSet, operation: 'intersection' | 'difference'): FieldSet | undefined {
  const member = isMember(a) && isMember(b) === (operation === 'intersection');
  const below = combine(a, b, operation);
  if (!hasElements(below)) {
    if (!member) return undefined;
    return isEmpty(a) ? a : EMPTY_SET;
  }
  if (member === isMember(a) && below === a) return a;
  if (member) return memberNode(below);
  if (!Object.hasOwn(below, SELF)) return below;
  const children = shallowCopy(below);
  delete children[SELF];
  return children;
}

function hasElements(set: FieldSet): boolean {
  for (const element in set) if (element !== SELF) return true;
  return false;
}

/** `a` without the members of `b` and everything below them. */
export function recursiveDifference(a: FieldSet, b: FieldSet): FieldSet {
  let result: Record<string, FieldSet> | undefined;
  for (const element of elements(a)) {
    const ours = a[element];
    const theirs = child(b, element);
    if (ours === undefined || theirs === undefined) continue;
    let left: FieldSet | undefined;
    if (!isMember(theirs)) {
      const rest = recursiveDifference(ours, theirs);
      left = isEmpty(rest) && !isEmpty(ours) ? undefined : rest;
    }
    if (left === ours) continue;
    result ??= shallowCopy(a);
    if (left === undefined) delete result[element];
    else result[element] = left;
  }
  return result ?? a;
}

/** Member paths as lists of path elements, in the order of the set. */
export function* members(set: FieldSet, path: readonly string[] = []): Generator<readonly string[]> {
  for (const element of elements(set)) {
    const node = set[element];
    if (node === undefined) continue;
    const here = [...path, element];
    if (isMember(node)) yield here;
    yield* members(node, here);
  }
}

/** Sorts the elements in upstream's order: dot, fields, keys, values, indexes, each sorted. */
export function sorted(set: FieldSet): FieldSet {
  const names = Object.keys(set);
  if (names.length === 0 || (names.length === 1 && names[0] === SELF)) return EMPTY_SET;
  const result: Record<string, FieldSet> = {};
  for (const element of inOrder(names)) result[element] = sorted(set[element] ?? EMPTY_SET);
  return result;
}

/** Sorts elements. Elements of the same kind, which is the usual case, are sorted as strings. */
function inOrder(names: string[]): string[] {
  if (names.every((name, index) => index === 0 || compareElements(names[index - 1] ?? '', name) <= 0)) return names;
  const [kind] = names[0] ?? '';
  return names.every((name) => name[0] === kind) ? names.sort() : names.sort(compareElements);
}

const KIND_ORDER = '.fkvi';

function compareElements(a: string, b: string): number {
  if (a[0] !== b[0]) return KIND_ORDER.indexOf(a[0] ?? '') - KIND_ORDER.indexOf(b[0] ?? '');
  return a < b ? -1 : a > b ? 1 : 0;
}

const VALID_ELEMENT = /^(?:\.$|f:|k:\{|v:|i:\d)/;

/** Parses a set from a client. Undefined if it is invalid. */
export function parseFieldSet(value: JsonValue | undefined, depth = 0): FieldSet | undefined {
  if (!isObject(value) || depth > MAX_SET_DEPTH) return undefined;
  const result: Record<string, FieldSet> = {};
  for (const key of Object.keys(value)) {
    if (!VALID_ELEMENT.test(key)) return undefined;
    const node = parseFieldSet(value[key], depth + 1);
    if (node === undefined) return undefined;
    result[key] = node;
  }
  return result;
}

const MAX_SET_DEPTH = 512;

/** A path in upstream's format: `.spec.containers[name="a"].image`. */
export function formatPath(path: readonly string[]): string {
  return path.map(formatElement).join('');
}

function formatElement(element: string): string {
  const rest = element.slice(2);
  switch (element[0]) {
    case 'f':
      return `.${rest}`;
    case 'v':
      return `[=${rest}]`;
    case 'k':
      return `[${Object.entries(parseKey(rest))
        .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
        .join(',')}]`;
    default:
      return `[${rest}]`;
  }
}

function parseKey(text: string): JsonObject {
  try {
    const key = parseJson(text) as JsonValue;
    return isObject(key) ? key : {};
  } catch {
    return {};
  }
}
