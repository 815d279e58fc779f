/**
 * Scans JSON bytes before parsing: rejects documents with too deep nesting (later recursive steps rely on this) and
 * finds duplicate fields, which the parser drops silently. Syntax errors are left to the parser.
 */
import type { JsonValue } from '../../api/meta/object.ts';
import { ApiError } from '../../api/meta/status.ts';
import { decodeJson, text } from '../../base/decode.ts';

export const MAX_DEPTH = 512;
export const tooDeep = `the document is nested deeper than ${MAX_DEPTH} levels`;
/** Upstream reports at most this many strict decoding errors. */
const MAX_DUPLICATES = 32;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;

/** Longer strings are searched with `indexOf` instead of a loop. */
const SHORT = 32;

/** Index of the closing quote of the string that opens at `at`; the length of the input if there is none. */
function endOfString(bytes: Uint8Array, at: number): number {
  let index = at + 1;
  const near = Math.min(bytes.length, index + SHORT);
  while (index < near) {
    const byte = bytes[index];
    if (byte === QUOTE) return index;
    index += byte === BACKSLASH ? 2 : 1;
  }
  for (;;) {
    const quote = bytes.indexOf(QUOTE, index);
    if (quote < 0) return bytes.length;
    let escapes = 0;
    while (quote - escapes > index && bytes[quote - escapes - 1] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return quote;
    index = quote + 1;
  }
}

export function checkDepth(bytes: Uint8Array): void {
  let depth = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
      if (depth > MAX_DEPTH) throw new ApiError('BadRequest', tooDeep);
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
  }
}

interface Level {
  /** Keys of the object so far. Undefined for arrays. */
  readonly keys: Set<string> | undefined;
  /** Current field of an object, or current index of an array. */
  at: string | number;
  expectKey: boolean;
}

/** Number of fields in the text, over all objects. */
function namedFields(bytes: Uint8Array): number {
  let count = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index);
    else if (byte === COLON) count += 1;
  }
  return count;
}

/** Number of fields in the decoded document. */
function keptFields(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += keptFields(item);
    return count;
  }
  for (const key in value) count += 1 + keptFields(value[key] ?? null);
  return count;
}

/** Reports whether a field occurs twice, by comparing the number of fields in the text and in the decoded document. */
export function hasDuplicates(bytes: Uint8Array, document: JsonValue): boolean {
  return namedFields(bytes) !== keptFields(document);
}

/**
 * Paths of fields that occur twice in an object, such as `spec.containers[0].name`. The document has passed
 * `checkDepth`.
 */
export function duplicateFields(bytes: Buffer): string[] {
  const duplicates: string[] = [];
  eachKey(bytes, (levels, _, again) => {
    if (again) duplicates.push(pathOf(levels));
    return duplicates.length < MAX_DUPLICATES;
  });
  return duplicates;
}

/**
 * Strict decoding errors in the order of the document: duplicate fields, and the fields with paths in `unknown`, whose
 * contents are not checked.
 */
export function strictErrors(bytes: Buffer, unknown: readonly string[]): string[] {
  const left = new Set(unknown);
  const messages: string[] = [];
  const names = new Set(unknown.map((path) => path.slice(path.lastIndexOf('.') + 1)));
  let duplicates = 0;
  eachKey(bytes, (levels, key, again) => {
    if (!again && !names.has(key)) return true;
    const path = pathOf(levels);
    if (left.delete(path)) messages.push(`unknown field ${JSON.stringify(path)}`);
    else if (again && !unknown.some((each) => isWithin(path, each))) {
      messages.push(`duplicate field ${JSON.stringify(path)}`);
      duplicates += 1;
    }
    return duplicates < MAX_DUPLICATES;
  });
  return [...messages, ...[...left].map((path) => `unknown field ${JSON.stringify(path)}`)];
}

function isWithin(path: string, field: string): boolean {
  return path.startsWith(field) && (path.length === field.length || '.['.includes(path[field.length] ?? ''));
}

/** Visits each key until `visit` returns false. `again` is true if the object already had that key. */
function eachKey(bytes: Buffer, visit: (levels: readonly Level[], key: string, again: boolean) => boolean): void {
  const levels: Level[] = [];
  let top: Level | undefined;
  for (let index = 0; index < bytes.length; index++) {
    switch (bytes[index]) {
      case QUOTE: {
        const end = endOfString(bytes, index);
        if (top?.expectKey === true && top.keys !== undefined) {
          const key = keyOf(bytes, index, end);
          top.at = key;
          if (!visit(levels, key, top.keys.has(key))) return;
          top.keys.add(key);
          top.expectKey = false;
        }
        index = end;
        break;
      }
      case OPEN_OBJECT:
        top = { keys: new Set(), at: '', expectKey: true };
        levels.push(top);
        break;
      case OPEN_ARRAY:
        top = { keys: undefined, at: 0, expectKey: false };
        levels.push(top);
        break;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        levels.pop();
        top = levels.at(-1);
        break;
      case COMMA:
        if (top === undefined) break;
        if (top.keys === undefined) top.at = Number(top.at) + 1;
        else top.expectKey = true;
        break;
      case COLON:
        break;
    }
  }
}

function keyOf(bytes: Buffer, open: number, close: number): string {
  const raw = bytes.toString('utf8', open + 1, close);
  if (!raw.includes('\\')) return raw;
  try {
    return decodeJson(text, `"${raw}"`, 'key');
  } catch {
    return raw;
  }
}

function pathOf(levels: readonly Level[]): string {
  let path = '';
  for (const level of levels) {
    if (level.keys === undefined) path += `[${level.at}]`;
    else path += path === '' ? level.at : `.${level.at}`;
  }
  return path;
}
