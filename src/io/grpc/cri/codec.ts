/**
 * Protocol-buffer messages described by tables. A field that is not in a table is skipped when it is read. Source:
 * https://protobuf.dev/programming-guides/encoding.
 */
import { Reader, Writer } from '../../../api/etcd/wire.ts';

export interface MessageType {
  readonly [field: string]: Field;
}

interface Kinds {
  string: string;
  int: number;
  bool: boolean;
  bytes: Uint8Array;
  /** Nanoseconds since 1970, as milliseconds here. */
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
/** Every field is there when it was read, but messages that were not sent. */
export type Message<T extends MessageType> = {
  readonly [F in keyof T]: T[F] extends { readonly many: true }
    ? readonly One<T[F]['kind']>[]
    : T[F]['kind'] extends Kind
      ? One<T[F]['kind']>
      : One<T[F]['kind']> | undefined;
};

/** What is left out, or has its type's zero value, is not sent. */
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

/** Throws what the reader throws for bytes that are no message. */
export function decode<T extends MessageType>(type: T, bytes: Uint8Array): Message<T> {
  const fields = new Map(Object.entries(type).map(([name, field]) => [field.number, { name, field }]));
  const message: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(type)) {
    if (field.many === true) message[name] = [];
    else if (typeof field.kind === 'string') message[name] = zero(field.kind);
  }
  const reader = new Reader(bytes);
  for (let number = reader.field(); number !== 0; number = reader.field()) {
    const known = fields.get(number);
    if (known === undefined) {
      reader.skip();
      continue;
    }
    if (known.field.many === true && known.field.kind === 'int') {
      const packed: bigint[] = [];
      reader.bigs(packed);
      (message[known.name] as unknown[]).push(...packed.map(Number));
      continue;
    }
    const value = read(reader, known.field.kind);
    if (known.field.many === true) (message[known.name] as unknown[]).push(value);
    else if (known.field.kind === 'texts') Object.assign(message[known.name] as object, value);
    else message[known.name] = value;
  }
  return message as Message<T>;
}

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
  // Limits of "none" are larger than any exact number; nothing is counted so far.
  if (kind === 'int') return Number(BigInt.asIntN(64, reader.bigVarint()));
  const entry = decode({ key: one(1, 'string'), value: one(2, 'string') }, reader.bytes());
  return { [entry.key]: entry.value };
}
