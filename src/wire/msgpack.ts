/**
 * MessagePack as memberlist's Go codec uses it: the format before 2013, where text and bytes are one "raw" type and
 * `bin` and `str 8` do not exist. Old agents read only this format, so this module has its own encoder. The library
 * decodes a value after a scan that checks that a value is complete and within limits of depth and size.
 */
import { Decoder } from '@msgpack/msgpack';

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder('utf-8', { fatal: true });
const MAX_DEPTH = 16;
const MAX_ENTRIES = 65_536;

export type MsgpackValue =
  | number
  | boolean
  | string
  | Uint8Array
  | undefined
  | readonly MsgpackValue[]
  | ReadonlyMap<string, MsgpackValue>
  | { readonly [key: string]: MsgpackValue };

/** Encodes one value. Records keep the order of their keys; `undefined` members are omitted. */
export function encodeMsgpack(value: MsgpackValue): Uint8Array {
  const writer = new Writer();
  writer.value(value);
  return writer.finish();
}

class Writer {
  #buffer = new Uint8Array(256);
  #view = new DataView(this.#buffer.buffer);
  #length = 0;

  finish(): Uint8Array {
    return this.#buffer.slice(0, this.#length);
  }

  value(value: MsgpackValue): void {
    if (value === undefined) this.#byte(0xc0);
    else if (typeof value === 'boolean') this.#byte(value ? 0xc3 : 0xc2);
    else if (typeof value === 'number') this.#integer(value);
    else if (typeof value === 'string') this.#raw(textEncoder.encode(value));
    else if (value instanceof Uint8Array) this.#raw(value);
    else if (value instanceof Map) this.#map([...value]);
    else if (Array.isArray(value)) this.#array(value);
    else this.#map(Object.entries(value).filter(([, member]) => member !== undefined));
  }

  #integer(value: number): void {
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is not a safe integer`);
    if (value >= 0) {
      if (value < 0x80) this.#byte(value);
      else if (value < 0x100) this.#head(0xcc, value, 1);
      else if (value < 0x1_0000) this.#head(0xcd, value, 2);
      else if (value < 0x1_0000_0000) this.#head(0xce, value, 4);
      else this.#big(0xcf, BigInt(value));
    } else if (value >= -32) this.#byte(value & 0xff);
    else this.#big(0xd3, BigInt.asUintN(64, BigInt(value)));
  }

  #raw(bytes: Uint8Array): void {
    if (bytes.length < 32) this.#byte(0xa0 | bytes.length);
    else if (bytes.length < 0x1_0000) this.#head(0xda, bytes.length, 2);
    else this.#head(0xdb, bytes.length, 4);
    this.#reserve(bytes.length);
    this.#buffer.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #array(items: readonly MsgpackValue[]): void {
    if (items.length < 16) this.#byte(0x90 | items.length);
    else if (items.length < 0x1_0000) this.#head(0xdc, items.length, 2);
    else this.#head(0xdd, items.length, 4);
    for (const item of items) this.value(item);
  }

  #map(entries: readonly (readonly [string, MsgpackValue])[]): void {
    if (entries.length < 16) this.#byte(0x80 | entries.length);
    else if (entries.length < 0x1_0000) this.#head(0xde, entries.length, 2);
    else this.#head(0xdf, entries.length, 4);
    for (const [key, value] of entries) {
      this.value(key);
      this.value(value);
    }
  }

  #byte(byte: number): void {
    this.#reserve(1);
    this.#buffer[this.#length++] = byte;
  }

  #head(code: number, value: number, width: 1 | 2 | 4): void {
    this.#reserve(1 + width);
    this.#buffer[this.#length++] = code;
    if (width === 1) this.#view.setUint8(this.#length, value);
    else if (width === 2) this.#view.setUint16(this.#length, value);
    else this.#view.setUint32(this.#length, value);
    this.#length += width;
  }

  #big(code: number, value: bigint): void {
    this.#reserve(9);
    this.#buffer[this.#length++] = code;
    this.#view.setBigUint64(this.#length, value);
    this.#length += 8;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + bytes));
    larger.set(this.#buffer);
    this.#buffer = larger;
    this.#view = new DataView(larger.buffer);
  }
}

/** The bytes contain no acceptable value, and further bytes would not change that. */
export class MsgpackError extends Error {}

/**
 * End of the value that starts at `offset`; undefined if it is incomplete. Throws {@link MsgpackError} for a reserved
 * type, for nesting beyond {@link MAX_DEPTH} and for too many entries.
 */
export function msgpackEnd(bytes: Uint8Array, offset: number): number | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  /** Number of missing values per nesting level. */
  const pending: number[] = [1];
  let at = offset;
  let entries = 0;
  const length = (width: 1 | 2 | 4): number => {
    const from = at;
    at += width;
    if (at > bytes.length) return -1;
    if (width === 1) return view.getUint8(from);
    return width === 2 ? view.getUint16(from) : view.getUint32(from);
  };
  while (pending.length > 0) {
    const level = pending.length - 1;
    const left = pending[level] ?? 0;
    if (left === 0) {
      pending.pop();
      continue;
    }
    pending[level] = left - 1;
    const code = bytes[at++];
    if (code === undefined) return undefined;
    if (++entries > MAX_ENTRIES) throw new MsgpackError('too many entries');
    let skip = 0;
    let children = 0;
    if (code < 0x80 || code >= 0xe0 || code === 0xc0 || code === 0xc2 || code === 0xc3) continue;
    if (code < 0x90) children = (code & 0x0f) * 2;
    else if (code < 0xa0) children = code & 0x0f;
    else if (code < 0xc0) skip = code & 0x1f;
    else if (code === 0xc4 || code === 0xd9) skip = length(1);
    else if (code === 0xc5 || code === 0xda) skip = length(2);
    else if (code === 0xc6 || code === 0xdb) skip = length(4);
    else if (code === 0xcc || code === 0xd0) skip = 1;
    else if (code === 0xcd || code === 0xd1) skip = 2;
    else if (code === 0xce || code === 0xd2 || code === 0xca) skip = 4;
    else if (code === 0xcf || code === 0xd3 || code === 0xcb) skip = 8;
    else if (code === 0xdc) children = length(2);
    else if (code === 0xdd) children = length(4);
    else if (code === 0xde) children = length(2) * 2;
    else if (code === 0xdf) children = length(4) * 2;
    else throw new MsgpackError(`type 0x${code.toString(16)}`);
    if (skip < 0 || children < 0) return undefined;
    if (children > MAX_ENTRIES) throw new MsgpackError('too many entries');
    at += skip;
    if (at > bytes.length) return undefined;
    if (children > 0) {
      if (pending.length >= MAX_DEPTH) throw new MsgpackError('nested too deep');
      pending.push(children);
    }
  }
  return at;
}

const decoder = new Decoder({ rawStrings: true, mapKeyConverter: textOfKey });

function textOfKey(key: unknown): string {
  if (typeof key === 'string') return key;
  if (key instanceof Uint8Array) return textDecoder.decode(key);
  throw new MsgpackError('a map key that is not text');
}

/** A decoded map with typed getters. Every getter throws {@link MsgpackError} if the member has another type. */
export class Fields {
  readonly #members: Record<string, unknown>;

  constructor(members: Record<string, unknown>) {
    this.#members = members;
  }

  /** An unsigned integer up to `limit`; 0 if the member is absent, as in Go. */
  uint(key: string, limit: number): number {
    const value = this.#get(key) ?? 0;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0 || value > limit)
      throw new MsgpackError(`${key} is not a number up to ${limit}`);
    return value;
  }

  bool(key: string): boolean {
    const value = this.#get(key) ?? false;
    if (typeof value !== 'boolean') throw new MsgpackError(`${key} is not a boolean`);
    return value;
  }

  bytes(key: string, limit: number): Uint8Array {
    const value = this.#get(key) ?? new Uint8Array();
    if (!(value instanceof Uint8Array) || value.length > limit)
      throw new MsgpackError(`${key} must be binary data of at most ${limit} bytes`);
    // The bytes are copied (a Buffer's `slice` would not copy), so that long-lived values do not keep the packet in
    // memory.
    return new Uint8Array(value);
  }

  text(key: string, limit: number): string {
    return textOf(this.bytes(key, limit));
  }

  list(key: string): readonly unknown[] {
    const value = this.#get(key) ?? [];
    if (!Array.isArray(value)) throw new MsgpackError(`${key} is not a list`);
    return value;
  }

  entries(key: string): readonly (readonly [string, unknown])[] {
    const value = this.#get(key) ?? {};
    if (!isRecord(value)) throw new MsgpackError(`${key} is not a map`);
    return Object.entries(value);
  }

  all(): readonly (readonly [string, unknown])[] {
    return Object.entries(this.#members);
  }

  #get(key: string): unknown {
    return Object.hasOwn(this.#members, key) ? (this.#members[key] ?? undefined) : undefined;
  }
}

/** Decodes the map at the start of `bytes`. Following bytes are ignored, as in the Go codec. */
export function decodeFields(bytes: Uint8Array): Fields {
  return fieldsOf(decodeFirst(bytes));
}

/** Getters for a map inside a decoded value. */
export function fieldsOf(value: unknown): Fields {
  if (isRecord(value)) return new Fields(value);
  throw new MsgpackError('not a map');
}

/** Decodes the list of strings at the start of `bytes`. */
export function decodeTexts(bytes: Uint8Array): string[] {
  const value = decodeFirst(bytes);
  if (Array.isArray(value)) return value.map(textOf);
  throw new MsgpackError('not a list');
}

function decodeFirst(bytes: Uint8Array): unknown {
  const end = msgpackEnd(bytes, 0);
  if (end === undefined) throw new MsgpackError('truncated');
  try {
    return decoder.decode(bytes.subarray(0, end));
  } catch (error) {
    throw new MsgpackError('the value cannot be decoded', { cause: error });
  }
}

export function textOf(value: unknown): string {
  if (!(value instanceof Uint8Array)) throw new MsgpackError('not text');
  try {
    return textDecoder.decode(value);
  } catch (error) {
    throw new MsgpackError('not UTF-8', { cause: error });
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
