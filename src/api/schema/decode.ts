/**
 * Decoding of parsed documents against a schema, as upstream's decoder fills Go types: unknown fields are dropped and
 * reported, wrong types are errors, nulls count as absent, quantities, times and base64 become canonical, and empty
 * fields are dropped where Go's encoder omits them.
 */

import { messageOf } from '../../base/errors.ts';
import { canonicalQuantity, parseQuantity } from '../../base/quantity.ts';
import type { JsonValue } from '../meta/object.ts';
import { keptWhenEmpty } from './kept-when-empty.ts';
import type { ListNode, MapNode, ObjectNode, ScalarNode, SchemaNode } from './node.ts';
import { currentTypeName } from './older-types.ts';

export interface DecodeFindings {
  /** Paths of unknown fields in document order, for example `spec.containers[0].foo`. */
  readonly unknownFields: string[];
  /** Errors in upstream's wording. If there are any, the document must be rejected. */
  readonly typeErrors: string[];
  /** The first type error in the wording of upstream's converter for unstructured objects, if it differs. */
  conversionError?: string;
  /** If set, empty fields are kept, because server-side apply owns them. */
  readonly keepsEmpty?: boolean;
}

/**
 * Maximum number of structured items in all lists and maps of a document. Defaults, plug-ins and validation take much
 * longer for an empty item than its two bytes suggest: a pod with 900,000 empty containers would occupy the server for
 * seconds. The store's limit of 2 MiB leaves 32 bytes for each item, so real objects have fewer.
 */
export const MAX_ITEMS = 65_536;

/** Maximum number of findings of each kind, so that an invalid document does not cause a large response. */
const MAX_FINDINGS = 64;

/**
 * Prunes and normalizes `object` in place and reports errors. `keepsEmpty`: the document is an apply configuration, not
 * an object.
 */
export function pruneAndCheck(schema: ObjectNode, object: Record<string, unknown>, keepsEmpty = false): DecodeFindings {
  const findings: DecodeFindings = { unknownFields: [], typeErrors: [], ...(keepsEmpty ? { keepsEmpty } : {}) };
  checkObject(schema, object as Container, {
    findings,
    total: { items: 0 },
    path: '',
    goPath: '',
    struct: lastSegment(schema.typeName),
  });
  return findings;
}

/**
 * Unknown fields in the form of upstream's strict decoding error: `strict decoding error: unknown field "a", unknown
 * field "b"`.
 */
export function strictDecodingMessage(unknownFields: readonly string[]): string {
  return `strict decoding error: ${unknownFields.map((field) => `unknown field "${field}"`).join(', ')}`;
}

type Container = { [key: string]: JsonValue };

interface Place {
  readonly findings: DecodeFindings;
  /** Number of structured items of all lists and maps of the document so far. */
  readonly total: { items: number };
  /** Path with indices, for example `spec.containers[0]`. */
  readonly path: string;
  /** Path as Go's decoder reports it, without indices. */
  readonly goPath: string;
  /** Name of the innermost Go struct. */
  readonly struct: string;
}

function checkObject(schema: ObjectNode, object: Container, place: Place): void {
  const { fields, required } = schema;
  const { keepsEmpty = false } = place.findings;
  const kept = keepsEmpty
    ? undefined
    : (keptWhenEmpty(schema.typeName) ?? keptWhenEmpty(currentTypeName(schema.typeName)));
  for (const key of Object.keys(object)) {
    const node = fields.get(key);
    if (node === undefined) {
      report(place.findings.unknownFields, joinPath(place.path, key));
      delete object[key];
      continue;
    }
    const value = object[key];
    if (value === null || value === undefined) {
      delete object[key];
      continue;
    }
    if (value !== '' && isPlainString(node, value)) continue;
    const below: Place = {
      findings: place.findings,
      total: place.total,
      path: joinPath(place.path, key),
      goPath: joinPath(place.goPath, key),
      struct: place.struct,
    };
    if (node.kind === 'map' && isContainer(value)) {
      // Go's encoder omits empty maps, so an empty map equals an absent one.
      if (checkMap(node, value, below) === 0 && !keepsEmpty) delete object[key];
      continue;
    }
    const checked = checkValue(node, value, below);
    if (kept !== undefined && isEmpty(node, checked) && !kept.has(key) && !required.includes(key)) delete object[key];
    else if (checked !== value) object[key] = checked;
  }
}

/** Whether Go's encoder omits the value of an optional field that is not a pointer. */
function isEmpty(node: SchemaNode, value: JsonValue): boolean {
  if (value === '' || value === false || value === 0) return node.kind === 'scalar' && OMITTED_WHEN_ZERO.has(node.type);
  return node.kind === 'list' && Array.isArray(value) && value.length === 0;
}

/** Types whose zero value Go's encoder omits. */
const OMITTED_WHEN_ZERO: ReadonlySet<ScalarNode['type']> = new Set(['string', 'boolean', 'int32', 'int64', 'byte']);

/** Fast path for the most frequent case, which needs no `Place`. */
function isPlainString(node: SchemaNode, value: JsonValue): boolean {
  return node.kind === 'scalar' && node.type === 'string' && typeof value === 'string';
}

function checkValue(node: SchemaNode, value: JsonValue, place: Place): JsonValue {
  switch (node.kind) {
    case 'scalar':
      return checkScalar(node, value, place);
    case 'object': {
      if (!isContainer(value)) return wrongType(value, goType(node), place, 'struct from:');
      checkObject(node, value, { ...place, struct: lastSegment(node.typeName) });
      return value;
    }
    case 'map': {
      if (!isContainer(value)) return wrongType(value, goType(node), place, 'map from');
      checkMap(node, value, place);
      return value;
    }
    case 'list': {
      if (!Array.isArray(value)) return wrongType(value, goType(node), place, 'slice from');
      if (hasTooManyItems(node, value.length, place)) return value;
      for (let index = 0; index < value.length; index++) {
        const item = value[index] ?? null;
        if (isPlainString(node.items, item)) continue;
        const checked = item === null ? zeroOf(node.items) : checkValue(node.items, item, at(place, `[${index}]`));
        if (checked !== item) value[index] = checked;
      }
      return value;
    }
  }
}

/** Counts the items of a list or map if they are structured, and reports an error above the limit of the document. */
function hasTooManyItems({ items }: ListNode | MapNode, count: number, { findings, total, path }: Place): boolean {
  if (items.kind === 'scalar') return false;
  total.items += count;
  if (total.items <= MAX_ITEMS) return false;
  // The first list above the limit is reported.
  if (total.items - count <= MAX_ITEMS)
    report(findings.typeErrors, `${path}: Too many: the lists and maps must have at most ${MAX_ITEMS} items in total`);
  return true;
}

/** Checks the entries of a map. Returns the number of entries that remain. */
function checkMap(node: MapNode, map: Container, place: Place): number {
  const keys = Object.keys(map);
  if (hasTooManyItems(node, keys.length, place)) return keys.length;
  for (const key of keys) {
    const item = map[key] ?? null;
    if (isPlainString(node.items, item)) continue;
    const checked = item === null ? zeroOf(node.items) : checkValue(node.items, item, at(place, `.${key}`));
    if (checked !== item) map[key] = checked;
  }
  return keys.length;
}

function at(place: Place, suffix: string): Place {
  return {
    findings: place.findings,
    total: place.total,
    path: place.path + suffix,
    goPath: place.goPath,
    struct: place.struct,
  };
}

function checkScalar(node: ScalarNode, value: JsonValue, place: Place): JsonValue {
  switch (node.type) {
    case 'any':
      return value;
    case 'string':
      return typeof value === 'string' ? value : wrongType(value, 'string', place);
    case 'boolean':
      return typeof value === 'boolean' ? value : wrongType(value, 'bool', place);
    case 'int32':
    case 'int64':
      return checkInteger(node.type, value, place);
    case 'number':
      if (typeof value === 'bigint') return Number(value);
      return typeof value === 'number' ? value : wrongType(value, 'float64', place);
    case 'int-or-string':
      if (typeof value === 'string') return value;
      return checkInteger('int32', value, place);
    case 'quantity':
      return checkQuantity(value, place);
    case 'date-time':
    case 'date-time-micro':
      return checkTime(node.type, value, place);
    case 'byte':
      return checkBase64(value, place);
  }
}

const INT32_MAX = 2 ** 31 - 1;

function checkInteger(type: 'int32' | 'int64', value: JsonValue, place: Place): JsonValue {
  if (typeof value !== 'number' && typeof value !== 'bigint') return wrongType(value, type, place);
  // 64-bit integers that are not safe numbers were parsed to BigInt. Any other number outside the safe range has more
  // bits or a fraction.
  const fits =
    type === 'int32'
      ? Number.isInteger(value) && value <= INT32_MAX && value >= -INT32_MAX - 1
      : typeof value === 'bigint' || Number.isSafeInteger(value);
  if (!fits) {
    report(
      place.findings.typeErrors,
      `json: cannot unmarshal number ${value} into Go struct field ${place.struct}.${place.goPath} of type ${type}`,
    );
  }
  return value;
}

/** Pattern for quantities that are certainly canonical. Most quantities match and need no parsing. */
const ALREADY_CANONICAL = /^[1-9]\d{0,2}(?:|m|[KMGTP]i|[kMGTP])$/;

function checkQuantity(value: JsonValue, place: Place): JsonValue {
  if (typeof value === 'string') {
    if (ALREADY_CANONICAL.test(value)) return value;
  } else if (typeof value !== 'number' && typeof value !== 'bigint') {
    return wrongType(value, 'resource.Quantity', place);
  }
  try {
    parseQuantity(value);
  } catch (error) {
    report(place.findings.typeErrors, `${place.path}: ${messageOf(error)}`);
    return value;
  }
  return canonicalQuantity(value);
}

/** Pattern for times that are certainly canonical. Days above 28 need the full check. */
const CANONICAL_TIME = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/;
const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;

function checkTime(type: 'date-time' | 'date-time-micro', value: JsonValue, place: Place): JsonValue {
  if (typeof value !== 'string') return wrongType(value, 'string', place);
  if (type === 'date-time' && CANONICAL_TIME.test(value)) return value;
  const match = RFC3339.exec(value);
  const ms = match === null ? Number.NaN : Date.parse(value);
  if (match === null || Number.isNaN(ms)) {
    const shown = JSON.stringify(value.slice(0, 64));
    report(
      place.findings.typeErrors,
      `${place.path}: parsing time ${shown} as "2006-01-02T15:04:05Z07:00": not an RFC 3339 time`,
    );
    return value;
  }
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return type === 'date-time' ? `${seconds}Z` : `${seconds}.${(match[7] ?? '').slice(0, 6).padEnd(6, '0')}Z`;
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function checkBase64(value: JsonValue, place: Place): JsonValue {
  if (typeof value !== 'string') return wrongType(value, '[]uint8', place);
  const text = value.includes('\n') || value.includes('\r') ? value.replaceAll(/[\r\n]/g, '') : value;
  if (text.length % 4 !== 0 || !BASE64.test(text)) {
    const wrong = text.search(/[^A-Za-z0-9+/]/);
    report(
      place.findings.typeErrors,
      `${place.path}: illegal base64 data at input byte ${wrong < 0 ? text.length - (text.length % 4) : wrong}`,
    );
  }
  return text;
}

function wrongType(
  value: JsonValue,
  type: string,
  place: Place,
  restored?: 'map from' | 'slice from' | 'struct from:',
): JsonValue {
  if (place.findings.typeErrors.length === 0 && restored !== undefined)
    place.findings.conversionError = `cannot restore ${restored} ${goKind(value)}`;
  report(
    place.findings.typeErrors,
    `json: cannot unmarshal ${jsonKind(value)} into Go struct field ${place.struct}.${place.goPath} of type ${type}`,
  );
  return value;
}

/** Go's name for the kind of the value. */
function goKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'slice';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'bigint') return 'int64';
  return typeof value === 'boolean' ? 'bool' : typeof value === 'string' ? 'string' : 'map';
}

function jsonKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint') return 'number';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** Go type as upstream's errors show it. */
function goType(node: SchemaNode): string {
  switch (node.kind) {
    case 'object': {
      const segments = node.typeName.split('.');
      return `${segments.at(-2) ?? ''}.${segments.at(-1) ?? ''}`;
    }
    case 'map':
      return `map[string]${goType(node.items)}`;
    case 'list':
      return `[]${goType(node.items)}`;
    case 'scalar':
      return SCALAR_GO_TYPES[node.type];
  }
}

const SCALAR_GO_TYPES: Readonly<Record<ScalarNode['type'], string>> = {
  string: 'string',
  int32: 'int32',
  int64: 'int64',
  number: 'float64',
  boolean: 'bool',
  'int-or-string': 'intstr.IntOrString',
  quantity: 'resource.Quantity',
  'date-time': 'v1.Time',
  'date-time-micro': 'v1.MicroTime',
  byte: '[]uint8',
  any: 'runtime.RawExtension',
};

/** Go's zero value of a type. A null in a list or map becomes the zero value. */
function zeroOf(node: SchemaNode): JsonValue {
  switch (node.kind) {
    case 'object':
    case 'map':
      return {};
    case 'list':
      return [];
    case 'scalar':
      switch (node.type) {
        case 'int32':
        case 'int64':
        case 'number':
        case 'int-or-string':
          return 0;
        case 'boolean':
          return false;
        case 'quantity':
          return '0';
        case 'any':
        // Go encodes a zero time as null.
        case 'date-time':
        case 'date-time-micro':
          return null;
        default:
          return '';
      }
  }
}

function isContainer(value: JsonValue): value is Container {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function lastSegment(typeName: string): string {
  return typeName.slice(typeName.lastIndexOf('.') + 1);
}

function report(list: string[], message: string): void {
  if (list.length < MAX_FINDINGS) list.push(message);
}
