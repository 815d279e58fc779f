/**
 * Decodes objects from the Kubernetes protobuf format to their JSON form. Typed Go clients send it by default. Source:
 * k8s.io/apimachinery/pkg/runtime/serializer/protobuf (envelope), generated.proto (fields).
 */

import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import { schemaNameOf } from '../../../api/schema/index.ts';
import { integerOf, parseJson } from '../../../base/json/json.ts';
import { Reader, WireError } from '../../../wire/protobuf/protobuf.ts';
import { checkDepth } from '../json-scan.ts';
import { SCHEMA_TYPES } from './extension-messages.ts';
import { type Field, indexOfMessage, MAGIC, messageAt, nameOfMessage } from './field-table.ts';

const MAX_NESTING = 64;

/** Reports whether a body starts with the protobuf prefix, whatever its content type is. */
export function isProtobuf(body: Buffer): boolean {
  return body.subarray(0, MAGIC.length).equals(MAGIC);
}

/**
 * Decodes a body. Throws 'BadRequest' for an invalid body, 'UnsupportedMediaType' for kinds without a known protobuf
 * form.
 */
export function decodeProtobuf(body: Buffer): JsonObject {
  if (!isProtobuf(body)) throw errors.badRequest('the body of the request is not Kubernetes protobuf');
  try {
    return decodeEnvelope(body.subarray(MAGIC.length));
  } catch (error) {
    if (error instanceof WireError)
      throw errors.badRequest(`the body of the request is not valid protobuf: ${error.message}`);
    throw error;
  }
}

function decodeEnvelope(bytes: Buffer): JsonObject {
  let apiVersion = '';
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) {
      const meta = new Reader(reader.bytes());
      for (let part = meta.field(); part !== 0; part = meta.field()) {
        if (part === 1) apiVersion = meta.string();
        else if (part === 2) kind = meta.string();
        else meta.skip();
      }
    } else if (key === 2) raw = reader.bytes();
    else reader.skip();
  }
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const version = slash < 0 ? apiVersion : apiVersion.slice(slash + 1);
  const typeName =
    kind === 'DeleteOptions'
      ? 'io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions'
      : schemaNameOf({ group, version, kind });
  const index = indexOfMessage(typeName);
  if (index === undefined) throw unsupported(`${apiVersion} ${kind}`.slice(0, 256));
  return { apiVersion, kind, ...decodeMessage(raw, index, 0) };
}

const unsupported = (what: string): ApiError =>
  new ApiError('UnsupportedMediaType', `${what} has no protobuf representation; send application/json`);

function decodeMessage(bytes: Buffer, index: number, depth: number): JsonObject {
  if (depth > MAX_NESTING) throw new WireError('message is nested too deeply');
  const message = messageAt(index);
  const object: JsonObject = {};
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    const field = message.get(key);
    // Unknown fields, for example of newer clients, are skipped, as in upstream.
    if (field === undefined) {
      reader.skip();
      continue;
    }
    readField(reader, field, object, depth);
  }
  return object;
}

function readField(reader: Reader, field: Field, object: JsonObject, depth: number): void {
  switch (field.shape) {
    case 'inline':
      Object.assign(object, decodeMessage(reader.bytes(), field.message, depth + 1));
      return;
    case 'map': {
      const [key, value] = readEntry(reader.bytes(), field, depth);
      const known = object[field.name];
      const map = typeof known === 'object' && known !== null && !Array.isArray(known) ? known : {};
      object[field.name] = map;
      // The key may be `__proto__`, so the entry is defined instead of assigned.
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      return;
    }
    case 'repeated': {
      const known = object[field.name];
      const list = Array.isArray(known) ? known : [];
      object[field.name] = list;
      if (field.code === 'i') {
        const numbers: bigint[] = [];
        reader.bigs(numbers);
        for (const number of numbers) list.push(integerOf(number));
      } else {
        const item = readValue(reader, field, depth);
        list.push(item ?? null);
      }
      return;
    }
    case 'single': {
      const value = readValue(reader, field, depth);
      if (value === undefined) return;
      if (field.omitZero && (value === '' || value === 0 || value === false)) return;
      object[field.name] = value;
    }
  }
}

function readEntry(bytes: Buffer, field: Field, depth: number): [string, JsonValue] {
  let key = '';
  let value: JsonValue | undefined;
  const reader = new Reader(bytes);
  for (let part = reader.field(); part !== 0; part = reader.field()) {
    if (part === 1) key = reader.string();
    else if (part === 2) value = readValue(reader, field, depth);
    else reader.skip();
  }
  return [key, value ?? zeroOf(field)];
}

function zeroOf(field: Field): JsonValue {
  if (field.code === 'm')
    return ZEROS.get(nameOfMessage(field.message)) ?? (SPECIAL.has(nameOfMessage(field.message)) ? null : {});
  return field.code === 'i' || field.code === 'd' ? 0 : field.code === 'b' ? false : '';
}

function readValue(reader: Reader, field: Field, depth: number): JsonValue | undefined {
  switch (field.code) {
    case 's':
      return reader.string();
    case 'y':
      return reader.bytes().toString('base64');
    case 'i':
      return integerOf(reader.big());
    case 'b':
      return reader.bool();
    case 'd':
      return reader.double();
    case 'm': {
      const special = SPECIAL.get(nameOfMessage(field.message));
      const bytes = reader.bytes();
      return special === undefined ? decodeMessage(bytes, field.message, depth + 1) : special(bytes, depth + 1);
    }
    default:
      throw unsupported(`field ${field.name}`);
  }
}

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

type Special = (bytes: Buffer, depth: number) => JsonValue | undefined;

/** Types whose JSON form is not a structure. */
const SPECIAL: ReadonlyMap<string, Special> = new Map<string, Special>([
  [`${META}.Time`, (bytes) => timeOf(bytes, 0)],
  [`${META}.MicroTime`, (bytes) => timeOf(bytes, 6)],
  [`${META}.FieldsV1`, jsonOf],
  ['io.k8s.apimachinery.pkg.runtime.RawExtension', jsonOf],
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', (bytes) => textOf(bytes)],
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', intOrString],
  ['io.k8s.api.authentication.v1.ExtraValue', itemsOf],
  ['io.k8s.api.authorization.v1.ExtraValue', itemsOf],
  ['io.k8s.api.certificates.v1.ExtraValue', itemsOf],
  ['io.k8s.api.authentication.v1beta1.ExtraValue', itemsOf],
  ['io.k8s.api.authorization.v1beta1.ExtraValue', itemsOf],
  ['io.k8s.api.certificates.v1beta1.ExtraValue', itemsOf],
  [SCHEMA_TYPES.json, jsonOf],
  [SCHEMA_TYPES.orArray, schemaOrSchemas],
  [SCHEMA_TYPES.orBool, schemaOrBoolean],
  [SCHEMA_TYPES.orStrings, schemaOrTexts],
]);

/** JSON form of an empty message, for types for which it is not null. */
const ZEROS: ReadonlyMap<string, JsonValue> = new Map([['io.k8s.apimachinery.pkg.api.resource.Quantity', '0']]);

/** RFC 3339 text of a time with this number of fractional digits. Undefined for a zero time. */
function timeOf(bytes: Buffer, digits: number): string | undefined {
  let seconds: number | undefined;
  let nanos = 0;
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) seconds = reader.int();
    else if (key === 2) nanos = reader.int();
    else reader.skip();
  }
  // The time is outside the range of Date, or it is Go's zero time, which some clients send.
  if (seconds === undefined || !(seconds > -62_135_596_800 && seconds < 253_402_300_800)) return undefined;
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  const fraction = digits === 0 ? '' : `.${String(nanos).padStart(9, '0').slice(0, digits)}`;
  return `${whole}${fraction}Z`;
}

function jsonOf(bytes: Buffer): JsonValue | undefined {
  let raw: Buffer | undefined;
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) raw = reader.bytes();
    else reader.skip();
  }
  if (raw === undefined || raw.length === 0) return undefined;
  checkDepth(raw);
  try {
    return parseJson(raw.toString('utf8')) as JsonValue;
  } catch {
    throw new WireError('raw value is not JSON');
  }
}

function textOf(bytes: Buffer): string | undefined {
  const reader = new Reader(bytes);
  let text: string | undefined;
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) text = reader.string();
    else reader.skip();
  }
  return text;
}

function intOrString(bytes: Buffer): JsonValue {
  let isText = false;
  let number = 0;
  let text = '';
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) isText = reader.int() === 1;
    else if (key === 2) number = reader.int();
    else if (key === 3) text = reader.string();
    else reader.skip();
  }
  return isText ? text : number;
}

function itemsOf(bytes: Buffer): JsonValue {
  const items: string[] = [];
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) items.push(reader.string());
    else reader.skip();
  }
  return items;
}

function schemaOf(reader: Reader, depth: number): JsonObject {
  return decodeMessage(reader.bytes(), indexOfMessage(SCHEMA_TYPES.props) ?? -1, depth + 1);
}

function schemaOrSchemas(bytes: Buffer, depth: number): JsonValue {
  let schema: JsonObject | undefined;
  const schemas: JsonObject[] = [];
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) schema = schemaOf(reader, depth);
    else if (key === 2) schemas.push(schemaOf(reader, depth));
    else reader.skip();
  }
  return schemas.length > 0 ? schemas : (schema ?? null);
}

function schemaOrBoolean(bytes: Buffer, depth: number): JsonValue {
  let allows = false;
  let schema: JsonObject | undefined;
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) allows = reader.bool();
    else if (key === 2) schema = schemaOf(reader, depth);
    else reader.skip();
  }
  return schema ?? allows;
}

function schemaOrTexts(bytes: Buffer, depth: number): JsonValue {
  let schema: JsonObject | undefined;
  const texts: string[] = [];
  const reader = new Reader(bytes);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) schema = schemaOf(reader, depth);
    else if (key === 2) texts.push(reader.string());
    else reader.skip();
  }
  return schema ?? texts;
}
