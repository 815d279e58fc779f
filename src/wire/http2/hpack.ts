/**
 * HPACK (RFC 7541). The decoder supports all of it, with limits: indexed and literal fields, the dynamic table, Huffman
 * strings. The encoder uses only the static table and no Huffman code: it keeps no per-connection state, and a client's
 * header blocks are constants.
 */
import { decodeHuffman } from './hpack-huffman.ts';

/** Thrown for a block that is not valid HPACK or exceeds a limit: a connection error of type COMPRESSION_ERROR. */
export class HpackError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'HpackError';
  }
}

export interface HeaderField {
  readonly name: string;
  readonly value: string;
}

/** Static table (RFC 7541, appendix A), from index 1. */
const STATIC: readonly HeaderField[] = [
  ':authority|',
  ':method|GET',
  ':method|POST',
  ':path|/',
  ':path|/index.html',
  ':scheme|http',
  ':scheme|https',
  ':status|200',
  ':status|204',
  ':status|206',
  ':status|304',
  ':status|400',
  ':status|404',
  ':status|500',
  'accept-charset|',
  'accept-encoding|gzip, deflate',
  'accept-language|',
  'accept-ranges|',
  'accept|',
  'access-control-allow-origin|',
  'age|',
  'allow|',
  'authorization|',
  'cache-control|',
  'content-disposition|',
  'content-encoding|',
  'content-language|',
  'content-length|',
  'content-location|',
  'content-range|',
  'content-type|',
  'cookie|',
  'date|',
  'etag|',
  'expect|',
  'expires|',
  'from|',
  'host|',
  'if-match|',
  'if-modified-since|',
  'if-none-match|',
  'if-range|',
  'if-unmodified-since|',
  'last-modified|',
  'link|',
  'location|',
  'max-forwards|',
  'proxy-authenticate|',
  'proxy-authorization|',
  'range|',
  'referer|',
  'refresh|',
  'retry-after|',
  'server|',
  'set-cookie|',
  'strict-transport-security|',
  'transfer-encoding|',
  'user-agent|',
  'vary|',
  'via|',
  'www-authenticate|',
].map((entry) => {
  const bar = entry.indexOf('|');
  return { name: entry.slice(0, bar), value: entry.slice(bar + 1) };
});

const STATIC_INDEX = new Map<string, number>();
for (const [i, field] of STATIC.entries()) {
  const whole = `${field.name}|${field.value}`;
  STATIC_INDEX.set(whole, i + 1);
  if (!STATIC_INDEX.has(field.name)) STATIC_INDEX.set(field.name, i + 1);
}

/** Default size of the dynamic table in the protocol (SETTINGS_HEADER_TABLE_SIZE). */
const TABLE_BYTES = 4096;
/** Overhead per dynamic table entry in the size calculation (RFC 7541 §4.1). */
const ENTRY_OVERHEAD = 32;
const MAX_LIST_BYTES = 64 << 10;
/** Maximum number of cached decoded header blocks. The cache is valid while the dynamic table does not change. */
const MEMO_BLOCKS = 64;
const MEMO_BYTES = 512;

export class HpackDecoder {
  /** Dynamic table, newest entry first. */
  readonly #table: HeaderField[] = [];
  #tableBytes = 0;
  #limit = TABLE_BYTES;
  readonly #memo = new Map<string, readonly HeaderField[]>();
  #block: Buffer = Buffer.alloc(0);
  #position = 0;
  #changed = false;

  /** Throws HpackError. */
  decode(block: Buffer): readonly HeaderField[] {
    const memoKey = block.length <= MEMO_BYTES ? block.toString('latin1') : undefined;
    const known = memoKey === undefined ? undefined : this.#memo.get(memoKey);
    if (known !== undefined) return known;
    this.#block = block;
    this.#position = 0;
    this.#changed = false;
    const fields: HeaderField[] = [];
    let bytes = 0;
    while (this.#position < block.length) {
      const field = this.#field(fields.length === 0);
      if (field === undefined) continue;
      bytes += field.name.length + field.value.length + ENTRY_OVERHEAD;
      if (bytes > MAX_LIST_BYTES) throw new HpackError('header list is too large');
      fields.push(field);
    }
    if (this.#changed) this.#memo.clear();
    else if (memoKey !== undefined && this.#memo.size < MEMO_BLOCKS) this.#memo.set(memoKey, fields);
    return fields;
  }

  #field(first: boolean): HeaderField | undefined {
    const byte = this.#block[this.#position] as number;
    if ((byte & 0x80) !== 0) return this.#indexed(this.#integer(7));
    if ((byte & 0x40) !== 0) {
      const field = this.#literal(this.#integer(6));
      this.#insert(field);
      return field;
    }
    if ((byte & 0x20) !== 0) {
      if (!first) throw new HpackError('table size update inside a block');
      this.#resize(this.#integer(5));
      return undefined;
    }
    return this.#literal(this.#integer(4));
  }

  #literal(nameIndex: number): HeaderField {
    const name = nameIndex === 0 ? this.#string() : this.#indexed(nameIndex).name;
    return { name, value: this.#string() };
  }

  #indexed(index: number): HeaderField {
    const field = index <= STATIC.length ? STATIC[index - 1] : this.#table[index - STATIC.length - 1];
    if (field === undefined) throw new HpackError(`no header field with index ${index}`);
    return field;
  }

  #integer(prefix: number): number {
    const most = (1 << prefix) - 1;
    let value = (this.#block[this.#position++] as number) & most;
    if (value < most) return value;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#block[this.#position++];
      if (byte === undefined || shift > 21) throw new HpackError('integer is cut short or too long');
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  }

  #string(): string {
    const byte = this.#block[this.#position];
    if (byte === undefined) throw new HpackError('block is cut short');
    const coded = (byte & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#position;
    if (length > this.#block.length - start) throw new HpackError('block is cut short');
    this.#position = start + length;
    if (!coded) return this.#block.toString('latin1', start, start + length);
    const text = decodeHuffman(this.#block.subarray(start, start + length));
    if (text === undefined) throw new HpackError('invalid Huffman code');
    return text;
  }

  #insert(field: HeaderField): void {
    this.#changed = true;
    this.#table.unshift(field);
    this.#tableBytes += field.name.length + field.value.length + ENTRY_OVERHEAD;
    this.#evict();
  }

  #resize(limit: number): void {
    if (limit > TABLE_BYTES) throw new HpackError('table size exceeds the announced limit');
    this.#changed = true;
    this.#limit = limit;
    this.#evict();
  }

  #evict(): void {
    while (this.#tableBytes > this.#limit) {
      const oldest = this.#table.pop();
      if (oldest === undefined) return;
      this.#tableBytes -= oldest.name.length + oldest.value.length + ENTRY_OVERHEAD;
    }
  }
}

/** Encodes fields without using the dynamic table. Names must be lower case and values latin1. */
export function encodeHeaders(fields: readonly HeaderField[]): Buffer {
  const pieces: Buffer[] = [];
  for (const { name, value } of fields) {
    const whole = STATIC_INDEX.get(`${name}|${value}`);
    if (whole !== undefined && value !== '') {
      pieces.push(integer(0x80, 7, whole));
      continue;
    }
    const nameIndex = STATIC_INDEX.get(name) ?? 0;
    pieces.push(integer(0, 4, nameIndex));
    if (nameIndex === 0) pieces.push(literal(name));
    pieces.push(literal(value));
  }
  return Buffer.concat(pieces);
}

function literal(text: string): Buffer {
  return Buffer.concat([integer(0, 7, text.length), Buffer.from(text, 'latin1')]);
}

function integer(flags: number, prefix: number, value: number): Buffer {
  const most = (1 << prefix) - 1;
  if (value < most) return Buffer.from([flags | value]);
  const bytes = [flags | most];
  let rest = value - most;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
