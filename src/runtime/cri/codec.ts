/**
 * Encodes and decodes protocol-buffer messages that are described by tables. Fields that are not in a table are
 * skipped. Source: https://protobuf.dev/programming-guides/encoding.
 */

import { fields as readFields } from '../../wire/grpc/plugin-calls.ts';
import { type Reader, Writer } from '../../wire/protobuf/protobuf.ts';

export interface MessageType {
  readonly [field: string]: Field;
}

interface Kinds {
  string: string;
  int: number;
  bool: boolean;
  bytes: Uint8Array;
  /** Nanoseconds since 1970 in the message, milliseconds in TypeScript. */
  nanos: number;
  texts: Readonly<Record<string, string>>;
}

type Kind = keyof Kinds;

export interface Field {
  readonly number: number;
  readonly kind: Kind | MessageType;
  readonly many?: true;
}

type One<K> = K extends Kind ? Kinds[K] : K extends MessageType ? Message<K> : never;
/** A decoded message. Every field is present, except nested messages that were not sent. */
export type Message<T extends MessageType> = {
  readonly [F in keyof T]: T[F] extends { readonly many: true }
    ? readonly One<T[F]['kind']>[]
    : T[F]['kind'] extends Kind
      ? One<T[F]['kind']>
      : One<T[F]['kind']> | undefined;
};

/** A message to encode. Fields that are absent or have the zero value of their type are not sent. */
export type Draft<T extends MessageType> = {
  readonly [F in keyof T]?:
    | (T[F] extends { readonly many: true } ? readonly DraftOne<T[F]['kind']>[] : DraftOne<T[F]['kind']>)
    | undefined;
};
type DraftOne<K> = K extends Kind ? Kinds[K] : K extends MessageType ? Draft<K> : never;

export const one = <const K extends Kind | MessageType>(number: number, kind: K) => ({ number, kind }) as const;
export const many = <const K extends Kind | MessageType>(number: number, kind: K) =>
  ({ number, kind, many: true }) as const;

const NANOS_PER_MS = 1_000_000n;

export function encode<T extends MessageType>(type: T, message: Draft<T>): Buffer {
  const writer = new Writer(512);
  for (const [name, field] of Object.entries(type)) {
    const value: unknown = message[name];
    if (value === undefined) continue;
    for (const each of field.many === true ? (value as readonly unknown[]) : [value])
      write(writer, field, each, field.many === true);
  }
  return writer.finish();
}

function write(writer: Writer, { number, kind }: Field, value: unknown, isItem: boolean): void {
  if (typeof kind === 'object') writer.message(number, encode(kind, value as Draft<MessageType>));
  else if (kind === 'string')
    if (isItem) writer.message(number, Buffer.from(value as string));
    else writer.string(number, value as string);
  else if (kind === 'int') writer.int(number, value as number);
  else if (kind === 'bool') writer.bool(number, value as boolean);
  else if (kind === 'bytes') writer.message(number, Buffer.from(value as Uint8Array));
  else if (kind === 'nanos') writer.big(number, BigInt(Math.round(value as number)) * NANOS_PER_MS);
  else
    for (const [key, text] of Object.entries(value as Record<string, string>))
      writer.message(number, new Writer(64).string(1, key).string(2, text).finish());
}

/** Throws the reader's error if `bytes` is not a valid message. */
export function decode<T extends MessageType>(type: T, bytes: Uint8Array): Message<T> {
  const fields = fieldsOf(type);
  const message: Record<string, unknown> = {};
  for (const { name, field } of fields.values()) {
    if (field.many === true) message[name] = [];
    else if (typeof field.kind === 'string') message[name] = zero(field.kind);
  }
  readFields(bytes, (number, reader) => {
    const known = fields.get(number);
    if (known === undefined) reader.skip();
    else readInto(message, known, reader);
  });
  return message as Message<T>;
}

function readInto(message: Record<string, unknown>, { name, field }: Known, reader: Reader): void {
  if (field.many === true && field.kind === 'int') {
    const packed: bigint[] = [];
    reader.bigs(packed);
    for (const each of packed) (message[name] as unknown[]).push(Number(each));
    return;
  }
  const value = read(reader, field.kind);
  if (field.many === true) (message[name] as unknown[]).push(value);
  else if (field.kind === 'texts') Object.assign(message[name] as object, value);
  else message[name] = value;
}

interface Known {
  readonly name: string;
  readonly field: Field;
}

const known = new WeakMap<MessageType, ReadonlyMap<number, Known>>();

/** Fields by number, cached per type because a list has thousands of messages of one type. */
function fieldsOf(type: MessageType): ReadonlyMap<number, Known> {
  const before = known.get(type);
  if (before !== undefined) return before;
  const fields = new Map(Object.entries(type).map(([name, field]) => [field.number, { name, field }]));
  known.set(type, fields);
  return fields;
}

const ENTRY = { key: one(1, 'string'), value: one(2, 'string') } as const;

function zero(kind: Kind): unknown {
  if (kind === 'string') return '';
  if (kind === 'bool') return false;
  if (kind === 'bytes') return new Uint8Array();
  return kind === 'texts' ? Object.create(null) : 0;
}

function read(reader: Reader, kind: Kind | MessageType): unknown {
  if (typeof kind === 'object') return decode(kind, reader.bytes());
  if (kind === 'string') return reader.string();
  if (kind === 'bool') return reader.int() !== 0;
  if (kind === 'bytes') return Uint8Array.from(reader.bytes());
  if (kind === 'nanos') return Number(reader.bigVarint() / NANOS_PER_MS);
  // Runtimes send values beyond the safe integer range to mean "no limit". Such a value loses precision here, which is
  // harmless because it is not used in calculations.
  if (kind === 'int') return Number(BigInt.asIntN(64, reader.bigVarint()));
  const entry = decode(ENTRY, reader.bytes());
  return { [entry.key]: entry.value };
}
