/**
 * Conversion of etcd messages between JSON and protobuf as in grpc-gateway: 64-bit integers are strings, byte strings
 * are base64, enums are names, and defaults are omitted. Field names are accepted in both original form and lower camel
 * case. Source: protobuf JSON mapping.
 */

import { Reader, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import { ENUMS, type Fields, MESSAGES } from './schema.ts';

const MAX_DEPTH = 64;

/** Throws WireError with the name of the invalid field. */
export function messageFromJson(name: string, json: unknown, depth = 0): Buffer {
  if (depth > MAX_DEPTH) throw new WireError(`${name} is nested too deeply`);
  if (json === null || json === undefined) return Buffer.alloc(0);
  if (typeof json !== 'object' || Array.isArray(json)) throw new WireError(`${name} must be an object`);
  const fields = fieldsOf(name);
  const out = new Writer(256);
  for (const [key, value] of Object.entries(json)) {
    const field = Object.keys(fields).find((candidate) => candidate === key || camelCase(candidate) === key);
    if (field === undefined) throw new WireError(`unknown field ${JSON.stringify(key)} in ${name}`);
    const [number, type] = fields[field] as Fields[string];
    if (value === null) continue;
    const where = `${name}.${field}`;
    if (!type.endsWith('[]')) writeValue(out, number, type, value, where, depth);
    else if (!Array.isArray(value)) throw new WireError(`${where} must be a list`);
    else for (const one of value) writeValue(out, number, type.slice(0, -2), one, where, depth);
  }
  return out.finish();
}

/** Also writes zeros, because a field of a union must be present. */
function writeValue(out: Writer, number: number, type: string, value: unknown, where: string, depth: number): void {
  if (type === 'bytes' || type === 'string') {
    if (typeof value !== 'string') throw new WireError(`${where} must be a string`);
    const bytes = type === 'bytes' ? base64(value, where) : Buffer.from(value);
    // An empty range end must be omitted: if present, it would select all keys from the key on.
    if (bytes.length > 0 || where === 'Compare.value') out.message(number, bytes);
  } else if (type in MESSAGES) out.message(number, messageFromJson(type, value, depth + 1));
  else {
    const scalar = numberOf(type, value, where);
    out.varint(number * 8);
    if (scalar >= 0n && scalar <= BigInt(Number.MAX_SAFE_INTEGER)) out.varint(Number(scalar));
    else out.raw(varintBytes(scalar));
  }
}

function numberOf(type: string, value: unknown, where: string): bigint {
  if (type === 'bool') {
    if (typeof value !== 'boolean') throw new WireError(`${where} must be true or false`);
    return value ? 1n : 0n;
  }
  const names = ENUMS[type];
  if (names !== undefined && typeof value === 'string') {
    const at = names.indexOf(value);
    if (at < 0) throw new WireError(`${where}: unknown value ${JSON.stringify(value)}`);
    return BigInt(at);
  }
  const whole = typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value));
  if (!whole && !(typeof value === 'string' && /^-?\d{1,20}$/.test(value))) {
    throw new WireError(`${where} must be a whole number`);
  }
  const parsed = BigInt(value as string | number | bigint);
  const fits = type === 'uint64' ? BigInt.asUintN(64, parsed) : BigInt.asIntN(64, parsed);
  if (fits !== parsed) throw new WireError(`${where} is out of range`);
  return parsed;
}

function varintBytes(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

function base64(text: string, where: string): Buffer {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw new WireError(`${where} is not base64`);
  return Buffer.from(text, 'base64');
}

export type Json = string | number | boolean | Json[] | { [field: string]: Json };

/** Throws WireError if the bytes are not a valid message. */
export function messageToJson(name: string, bytes: Uint8Array): { [field: string]: Json } {
  const byNumber = numbersOf(name);
  const found = new Map<string, Json>();
  const reader = new Reader(bytes);
  for (let number = reader.field(); number !== 0; number = reader.field()) {
    const known = byNumber.get(number);
    if (known === undefined) {
      reader.skip();
      continue;
    }
    const { field, type, repeated } = known;
    const value = readValue(reader, type);
    if (repeated) {
      const list = found.get(field);
      if (Array.isArray(list)) list.push(value ?? '');
      else found.set(field, [value ?? '']);
    } else if (value !== undefined) found.set(field, value);
  }
  return Object.fromEntries(Object.keys(fieldsOf(name)).flatMap((field) => entryOf(field, found.get(field))));
}

function entryOf(field: string, value: Json | undefined): Array<[string, Json]> {
  return value === undefined ? [] : [[field, value]];
}

/** Reads the value of a field. Returns undefined for a default value, which the JSON omits. */
function readValue(reader: Reader, type: string): Json | undefined {
  if (type in MESSAGES) return messageToJson(type, reader.bytes());
  if (type === 'bytes') return reader.bytes().toString('base64') || undefined;
  if (type === 'string') return reader.string() || undefined;
  const value = reader.big();
  if (value === 0n) return undefined;
  if (type === 'bool') return true;
  if (type === 'uint32') return Number(BigInt.asUintN(32, value));
  const names = ENUMS[type];
  if (names !== undefined) return names[Number(value)] ?? Number(value);
  return String(type === 'uint64' ? BigInt.asUintN(64, value) : value);
}

function fieldsOf(name: string): Fields {
  const fields = MESSAGES[name];
  if (fields === undefined) throw new Error(`no message ${name}`);
  return fields;
}

interface Numbered {
  readonly field: string;
  readonly type: string;
  readonly repeated: boolean;
}

const numbered = new Map<string, ReadonlyMap<number, Numbered>>();

function numbersOf(name: string): ReadonlyMap<number, Numbered> {
  let byNumber = numbered.get(name);
  if (byNumber === undefined) {
    byNumber = new Map(
      Object.entries(fieldsOf(name)).map(([field, [number, type]]) => [
        number,
        { field, type: type.replace('[]', ''), repeated: type.endsWith('[]') },
      ]),
    );
    numbered.set(name, byNumber);
  }
  return byNumber;
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
