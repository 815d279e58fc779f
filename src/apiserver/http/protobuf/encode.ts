/**
 * Encodes objects from their JSON form to the Kubernetes protobuf format. Source:
 * k8s.io/apimachinery/pkg/runtime/serializer/protobuf (envelope), pkg/watch and pkg/util/framer (watch streams).
 */
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { BackwardsWriter } from './backwards.ts';
import { SCHEMA_TYPES } from './extension-messages.ts';
import { type Field, indexOfMessage, MAGIC, messageAt, nameOfMessage } from './field-table.ts';

/** Writer for all messages. It can be shared, because encoding is synchronous. */
const writer = new BackwardsWriter();
const ENVELOPE_RAW = 2;
const LIST_METADATA = 1;
const LIST_ITEMS = 2;
/** Fields contentEncoding and contentType, both empty. Upstream writes them too. */
const ENVELOPE_END = Buffer.from([0x1a, 0, 0x22, 0]);

/** Reports whether a type has a protobuf form. */
export function hasMessage(typeName: string): boolean {
  return indexOfMessage(typeName) !== undefined;
}

/** Encodes an object without the envelope. The type must have a protobuf form. */
export function encodeMessage(typeName: string, object: JsonObject): Buffer {
  const index = indexOfMessage(typeName);
  if (index === undefined) throw new Error(`${typeName} has no protobuf representation`);
  writer.reset();
  writeMessage(index, object);
  return writer.finish();
}

/** Wraps a message in the envelope that names its type. */
export function envelope(apiVersion: string, kind: string, message: Uint8Array): Buffer {
  return Buffer.concat([envelopeHead(apiVersion, kind, message.length), message, ENVELOPE_END]);
}

function envelopeHead(apiVersion: string, kind: string, length: number): Buffer {
  writer.reset();
  writer.varint(length);
  writer.tag(ENVELOPE_RAW, 2);
  const mark = writer.length;
  writeText(2, kind);
  writeText(1, apiVersion);
  writer.enclose(1, mark);
  writer.bytes(MAGIC);
  return writer.finish();
}

const LIST_META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta';

/** Yields the parts of an encoded list of messages. */
export function* listParts(
  apiVersion: string,
  kind: string,
  metadata: JsonObject,
  items: readonly Buffer[],
): Generator<Buffer> {
  const meta = encodeMessage(LIST_META, metadata);
  const head = header(LIST_METADATA, meta.length);
  const heads = items.map((item) => header(LIST_ITEMS, item.length));
  let length = head.length + meta.length;
  for (const [index, item] of items.entries()) length += item.length + (heads[index]?.length ?? 0);
  yield envelopeHead(apiVersion, kind, length);
  yield head;
  yield meta;
  for (const [index, item] of items.entries()) {
    yield heads[index] as Buffer;
    yield item;
  }
  yield ENVELOPE_END;
}

function header(field: number, length: number): Buffer {
  writer.reset();
  writer.varint(length);
  writer.tag(field, 2);
  return writer.finish();
}

/** One frame of a watch stream: four bytes of length, then the event. `object` includes its envelope. */
export function watchFrame(type: string, object: Uint8Array): Buffer {
  writer.reset();
  writer.bytes(object);
  writer.enclose(1, 0);
  writer.enclose(2, 0);
  writeText(1, type);
  const event = writer.finish();
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

function writeText(field: number, value: string): void {
  const mark = writer.length;
  writer.text(value);
  writer.enclose(field, mark);
}

/** Writes fields from the last to the first, because the writer works backwards. Unknown fields are omitted. */
function writeMessage(index: number, object: JsonObject): void {
  for (const field of fieldsBackwards(index)) {
    if (field.shape === 'inline') {
      const mark = writer.length;
      writeMessage(field.message, object);
      if (writer.length > mark) writer.enclose(field.number, mark);
      continue;
    }
    const value = Object.hasOwn(object, field.name) ? object[field.name] : undefined;
    if (value === undefined || value === null) continue;
    if (field.shape === 'repeated') writeItems(field, value);
    else if (field.shape === 'map') writeEntries(field, value);
    else writeValue(field, field.number, value);
  }
}

const backwards = new Map<number, readonly Field[]>();

function fieldsBackwards(index: number): readonly Field[] {
  let fields = backwards.get(index);
  if (fields === undefined) {
    fields = [...messageAt(index).values()].reverse();
    backwards.set(index, fields);
  }
  return fields;
}

function writeItems(field: Field, value: JsonValue): void {
  if (!Array.isArray(value)) return;
  for (let index = value.length - 1; index >= 0; index--) writeValue(field, field.number, value[index] ?? null);
}

/** Writes map entries in the order of their keys, as Go does. */
function writeEntries(field: Field, value: JsonValue): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  for (const key of Object.keys(value).sort().reverse()) {
    const mark = writer.length;
    writeValue(field, 2, value[key] ?? null);
    writeText(1, key);
    writer.enclose(field.number, mark);
  }
}

function writeValue(field: Field, number: number, value: JsonValue): void {
  switch (field.code) {
    case 's':
      writeText(number, typeof value === 'string' ? value : String(value ?? ''));
      return;
    case 'y': {
      const mark = writer.length;
      writer.text(typeof value === 'string' ? value : '', 'base64');
      writer.enclose(number, mark);
      return;
    }
    case 'i':
      writer.integer(typeof value === 'bigint' ? value : Number(value));
      writer.tag(number, 0);
      return;
    case 'b':
      writer.varint(value === true ? 1 : 0);
      writer.tag(number, 0);
      return;
    case 'd':
      writer.double(Number(value));
      writer.tag(number, 1);
      return;
    case 'm': {
      const mark = writer.length;
      const special = SPECIAL.get(nameOfMessage(field.message));
      if (special !== undefined) special(value);
      else if (isObject(value)) writeMessage(field.message, value);
      writer.enclose(number, mark);
    }
  }
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** Types whose JSON form is not a structure. Each function writes the content of the message. */
const SPECIAL: ReadonlyMap<string, (value: JsonValue) => void> = new Map<string, (value: JsonValue) => void>([
  [`${META}.Time`, writeTime],
  [`${META}.MicroTime`, writeTime],
  [`${META}.FieldsV1`, writeJson],
  [`${META}.Verbs`, writeTexts],
  ['io.k8s.apimachinery.pkg.runtime.RawExtension', writeJson],
  ['io.k8s.apimachinery.pkg.api.resource.Quantity', (value) => writeText(1, String(value))],
  ['io.k8s.apimachinery.pkg.util.intstr.IntOrString', writeIntOrString],
  ['io.k8s.api.authentication.v1.ExtraValue', writeTexts],
  ['io.k8s.api.authorization.v1.ExtraValue', writeTexts],
  ['io.k8s.api.certificates.v1.ExtraValue', writeTexts],
  ['io.k8s.api.authentication.v1beta1.ExtraValue', writeTexts],
  ['io.k8s.api.authorization.v1beta1.ExtraValue', writeTexts],
  ['io.k8s.api.certificates.v1beta1.ExtraValue', writeTexts],
  [SCHEMA_TYPES.json, writeJson],
  [SCHEMA_TYPES.orArray, writeSchemaOrSchemas],
  [SCHEMA_TYPES.orBool, writeSchemaOrBoolean],
  [SCHEMA_TYPES.orStrings, writeSchemaOrTexts],
]);

function writeTime(value: JsonValue): void {
  const text = typeof value === 'string' ? value : '';
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) return;
  const fraction = /\.(\d{1,9})/.exec(text)?.[1] ?? '';
  writer.integer(Number(fraction.padEnd(9, '0')));
  writer.tag(2, 0);
  writer.integer(Math.floor(ms / 1000));
  writer.tag(1, 0);
}

function writeJson(value: JsonValue): void {
  writeText(1, JSON.stringify(value));
}

function writeIntOrString(value: JsonValue): void {
  const isText = typeof value === 'string';
  writeText(3, isText ? value : '');
  writer.integer(isText ? 0 : Number(value));
  writer.tag(2, 0);
  writer.varint(isText ? 1 : 0);
  writer.tag(1, 0);
}

function writeTexts(value: JsonValue, field = 1): void {
  if (!Array.isArray(value)) return;
  for (let index = value.length - 1; index >= 0; index--) writeText(field, String(value[index] ?? ''));
}

function writeSchema(field: number, value: JsonValue): void {
  if (!isObject(value)) return;
  const mark = writer.length;
  writeMessage(indexOfMessage(SCHEMA_TYPES.props) ?? -1, value);
  writer.enclose(field, mark);
}

function writeSchemaOrSchemas(value: JsonValue): void {
  if (!Array.isArray(value)) writeSchema(1, value);
  else for (let index = value.length - 1; index >= 0; index--) writeSchema(2, value[index] ?? null);
}

/** Writes a schema or a boolean as Go's JSONSchemaPropsOrBool, which has a field `allows`. */
function writeSchemaOrBoolean(value: JsonValue): void {
  writeSchema(2, value);
  writer.varint(value === false ? 0 : 1);
  writer.tag(1, 0);
}

function writeSchemaOrTexts(value: JsonValue): void {
  if (Array.isArray(value)) writeTexts(value, 2);
  else writeSchema(1, value);
}
