import {
  cloneJson,
  field,
  isDeeperThan,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  MAX_DEPTH,
  setField,
  sizeOf,
} from './document.ts';
import { badPatch, failedTest, tooLarge, unprocessable, wrongPatchType } from './errors.ts';

/** Upstream's limit on operations in one patch. */
const MAX_OPERATIONS = 10_000;
/** Maximum total size that the `copy` operations of a patch may add, equal to the limit of request bodies. */
const MAX_COPIED_BYTES = 3 << 20;
/** Maximum number of list items that all operations of a patch may shift, about 30 ms of work. */
const MAX_SHIFTED = 100_000_000;
const OPERATIONS: ReadonlySet<unknown> = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);

interface Operation {
  readonly op: string;
  readonly path: readonly string[];
  readonly from: readonly string[];
  readonly value: JsonValue | undefined;
  /** The path as the client sent it, for messages. */
  readonly pointer: string;
}

/**
 * Applies an RFC 6902 patch. Throws ApiError: BadRequest for a malformed patch, RequestEntityTooLarge beyond the
 * limits, Invalid if an operation does not fit the document. As upstream, `test` against null also succeeds for a
 * missing value.
 */
export function jsonPatch(document: JsonObject, patch: JsonValue): JsonObject {
  if (patch !== null && !Array.isArray(patch)) throw wrongPatchType(patch, '[]handlers.jsonPatchOp');
  const sent = patch ?? [];
  if (sent.length > MAX_OPERATIONS) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${sent.length}`);
  }
  const operations = sent.map(parseOperation);
  let root: JsonValue = cloneJson(document);
  let copiedBytes = 0;
  let shifted = 0;
  for (const operation of operations) {
    shifted += itemsShifted(root, operation);
    if (shifted > MAX_SHIFTED)
      throw tooLarge(`the operations of a JSON patch may not shift more than ${MAX_SHIFTED} items of lists`);
    if (operation.op === 'copy') {
      copiedBytes += sizeOf(resolve(root, operation.from), MAX_COPIED_BYTES);
      if (copiedBytes > MAX_COPIED_BYTES) {
        throw tooLarge(`the copy operations of a JSON patch may not add more than ${MAX_COPIED_BYTES} bytes`);
      }
    }
    root = apply(root, operation);
  }
  if (!isObject(root)) throw unprocessable('the patched document is not an object');
  if (isDeeperThan(root, MAX_DEPTH)) throw badPatch(`the patched document nests deeper than ${MAX_DEPTH} levels`);
  return root;
}

/** Maximum number of list items that the operation shifts: the lengths of the lists in which it inserts or removes. */
function itemsShifted(root: JsonValue, { op, path, from }: Operation): number {
  if (op === 'test' || op === 'replace') return 0;
  const lengthAt = (place: readonly string[]): number => {
    const parent = place.length === 0 ? undefined : tryResolve(root, place.slice(0, -1));
    return Array.isArray(parent) && place.at(-1) !== '-' ? parent.length : 0;
  };
  return lengthAt(path) + (op === 'move' ? lengthAt(from) : 0);
}

function parseOperation(entry: JsonValue, index: number): Operation {
  const broken = (problem: string) => badPatch(`error decoding patch: operation ${index}: ${problem}`);
  if (!isObject(entry)) throw wrongPatchType(entry, 'handlers.jsonPatchOp');
  const op = field(entry, 'op');
  const path = field(entry, 'path');
  if (op !== undefined && op !== null && typeof op !== 'string') throw broken('op must be a string');
  // As upstream, an unknown operation is an error of applying the patch, not of its form.
  if (!OPERATIONS.has(op)) throw unprocessable(`Unexpected kind: ${typeof op === 'string' ? op : 'unknown'}`);
  if (typeof path !== 'string') throw broken('path must be a string');
  const value = field(entry, 'value');
  if ((op === 'add' || op === 'replace') && value === undefined) throw broken('value is missing');
  const from = field(entry, 'from');
  const needsFrom = op === 'move' || op === 'copy';
  if (needsFrom && typeof from !== 'string') throw broken('from must be a string');
  return {
    op: String(op),
    path: parsePointer(path, broken),
    from: needsFrom && typeof from === 'string' ? parsePointer(from, broken) : [],
    value,
    pointer: path,
  };
}

/** Parses a JSON pointer (RFC 6901). */
function parsePointer(pointer: string, broken: (problem: string) => Error): string[] {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) throw unprocessable(`the path ${JSON.stringify(pointer)} must begin with a slash`);
  return pointer
    .slice(1)
    .split('/')
    .map((token) => {
      if (/~(?![01])/.test(token)) throw broken(`the path ${JSON.stringify(pointer)} has a stray ~`);
      return token.replaceAll('~1', '/').replaceAll('~0', '~');
    });
}

function apply(root: JsonValue, operation: Operation): JsonValue {
  const { op, path, from, value } = operation;
  switch (op) {
    case 'add':
      return add(root, path, cloneJson(value ?? null));
    case 'remove':
      return remove(root, path);
    case 'replace':
      return replace(root, path, cloneJson(value ?? null));
    case 'copy':
      return add(root, path, cloneJson(resolve(root, from)));
    case 'move':
      return move(root, from, path);
    default:
      return test(root, operation);
  }
}

function add(root: JsonValue, path: readonly string[], value: JsonValue): JsonValue {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = resolve(root, path.slice(0, -1));
  if (Array.isArray(parent)) {
    const index = last === '-' ? parent.length : itemIndex(last, parent.length + 1, path);
    parent.splice(index, 0, value);
  } else if (isObject(parent)) {
    setField(parent, last, value);
  } else {
    throw missing(path);
  }
  return root;
}

/**
 * As upstream's library and contrary to RFC 6902, adds the key if it is missing. Webhooks and `kubectl patch` rely on
 * this.
 */
function replace(root: JsonValue, path: readonly string[], value: JsonValue): JsonValue {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = resolve(root, path.slice(0, -1));
  if (Array.isArray(parent)) parent[itemIndex(last, parent.length, path)] = value;
  else if (isObject(parent)) setField(parent, last, value);
  else throw missing(path);
  return root;
}

function remove(root: JsonValue, path: readonly string[]): JsonValue {
  const last = path.at(-1);
  if (last === undefined) return null;
  const parent = resolve(root, path.slice(0, -1));
  if (Array.isArray(parent)) parent.splice(itemIndex(last, parent.length, path), 1);
  else if (isObject(parent) && Object.hasOwn(parent, last)) delete parent[last];
  else throw missing(path);
  return root;
}

function move(root: JsonValue, from: readonly string[], path: readonly string[]): JsonValue {
  const inside = path.length > from.length && from.every((token, index) => token === path[index]);
  if (inside) throw unprocessable(`move operation cannot move ${pointerOf(from)} into itself`);
  const value = resolve(root, from);
  if (path.length === from.length && from.every((token, index) => token === path[index])) return root;
  return add(remove(root, from), path, value);
}

function test(root: JsonValue, { path, value, pointer }: Operation): JsonValue {
  const found = tryResolve(root, path);
  if (!jsonEqual(found ?? null, value ?? null)) {
    throw failedTest(pointer);
  }
  return root;
}

function resolve(root: JsonValue, path: readonly string[]): JsonValue {
  const found = tryResolve(root, path);
  if (found === undefined) throw missing(path);
  return found;
}

function tryResolve(root: JsonValue, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = root;
  for (const token of path) {
    if (Array.isArray(value)) value = value[indexAmong(token, value.length) ?? value.length];
    else if (isObject(value)) value = field(value, token);
    else return undefined;
  }
  return value;
}

/** Integers as Go parses them. As in upstream's library, negative indexes count from the end. */
const INDEX = /^[+-]?\d{1,15}$/;

function indexAmong(token: string, count: number): number | undefined {
  const index = INDEX.test(token) ? Number(token) : Number.NaN;
  const from = index < 0 ? index + count : index;
  return from >= 0 && from < count ? from : undefined;
}

/** Parses the index of one of `count` items. Throws if there is no such item. */
function itemIndex(token: string, count: number, path: readonly string[]): number {
  const index = indexAmong(token, count);
  if (index === undefined) throw unprocessable(`unable to access invalid index in path ${pointerOf(path)}`);
  return index;
}

function missing(path: readonly string[]): Error {
  return unprocessable(`the path ${JSON.stringify(pointerOf(path))} does not exist`);
}

function pointerOf(path: readonly string[]): string {
  return path.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
