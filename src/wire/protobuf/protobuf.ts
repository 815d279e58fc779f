/**
 * Protocol Buffers wire format, as far as etcd's messages need it. Keys are byte strings that are represented as latin1
 * strings: one character per byte, so that string comparison is byte comparison and every byte is preserved. Source:
 * protobuf encoding specification.
 */

/** Thrown for malformed messages: truncated, number out of range, or unknown wire type. */
export class WireError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'WireError';
  }
}

/** Builds messages in a buffer that is reused and grown. `finish` copies the message out. */
export class Writer {
  #buffer: Buffer;
  #position = 0;

  constructor(capacity = 4096) {
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
  }

  get length(): number {
    return this.#position;
  }

  reset(): this {
    this.#position = 0;
    return this;
  }

  /** Returns a copy of the message in memory of its own and resets the writer. */
  finish(): Buffer {
    const out = Buffer.allocUnsafeSlow(this.#position);
    this.#buffer.copy(out, 0, 0, this.#position);
    this.#position = 0;
    if (this.#buffer.length > 1 << 20) this.#buffer = Buffer.allocUnsafeSlow(4096);
    return out;
  }

  /**
   * Like `finish`, for short-lived messages: the copy is allocated from Node's shared pool, which lives as long as any
   * of its slices.
   */
  finishBriefly(): Buffer {
    const out = Buffer.allocUnsafe(this.#position);
    this.#buffer.copy(out, 0, 0, this.#position);
    this.#position = 0;
    if (this.#buffer.length > 1 << 20) this.#buffer = Buffer.allocUnsafeSlow(4096);
    return out;
  }

  /** Copies the bytes written so far into `target`. */
  copyTo(target: Buffer, at: number): void {
    this.#buffer.copy(target, at, 0, this.#position);
  }

  /** Writes an unsigned varint. `value` must be a non-negative safe integer. */
  varint(value: number): this {
    this.#reserve(10);
    const buffer = this.#buffer;
    let position = this.#position;
    let rest = value;
    while (rest > 0x7fff_ffff) {
      buffer[position++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    while (rest > 0x7f) {
      buffer[position++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[position++] = rest;
    this.#position = position;
    return this;
  }

  /** Writes an int64, uint64, bool or enum field. Zero is omitted, as in proto3. Negative numbers take ten bytes. */
  int(field: number, value: number): this {
    if (value === 0) return this;
    if (value < 0) return this.big(field, BigInt(value));
    this.varint(field * 8);
    return this.varint(value);
  }

  bool(field: number, value: boolean): this {
    return this.int(field, value ? 1 : 0);
  }

  /** Writes an int64 or uint64 field outside the safe integers. */
  big(field: number, value: bigint): this {
    if (value === 0n) return this;
    this.varint(field * 8);
    let rest = BigInt.asUintN(64, value);
    this.#reserve(10);
    while (rest > 0x7fn) {
      this.#buffer[this.#position++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#buffer[this.#position++] = Number(rest);
    return this;
  }

  /** Writes a bytes field. Empty values are omitted. */
  bytes(field: number, value: Uint8Array): this {
    return value.length === 0 ? this : this.message(field, value);
  }

  /** Writes an encoded sub-message, also if it is empty. */
  message(field: number, value: Uint8Array): this {
    this.varint(field * 8 + 2);
    this.varint(value.length);
    return this.raw(value);
  }

  raw(value: Uint8Array): this {
    this.#reserve(value.length);
    this.#buffer.set(value, this.#position);
    this.#position += value.length;
    return this;
  }

  /** Writes a bytes field from a latin1 string. Empty values are omitted. */
  latin1(field: number, value: string): this {
    if (value.length === 0) return this;
    this.varint(field * 8 + 2);
    this.varint(value.length);
    this.#reserve(value.length);
    this.#position += this.#buffer.write(value, this.#position, value.length, 'latin1');
    return this;
  }

  /** Writes a UTF-8 string field. Empty values are omitted. */
  string(field: number, value: string): this {
    return value.length === 0 ? this : this.message(field, Buffer.from(value));
  }

  /** Starts a sub-message that is written in place. Pass the returned mark to `end`. */
  begin(field: number): number {
    this.varint(field * 8 + 2);
    this.#reserve(1);
    this.#position += 1;
    return this.#position;
  }

  end(mark: number): this {
    const length = this.#position - mark;
    const width = varintWidth(length);
    if (width > 1) {
      this.#reserve(width - 1);
      this.#buffer.copyWithin(mark + width - 1, mark, this.#position);
    }
    const after = this.#position + width - 1;
    this.#position = mark - 1;
    this.varint(length);
    this.#position = after;
    return this;
  }

  #reserve(more: number): void {
    const needed = this.#position + more;
    if (needed <= this.#buffer.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#position);
    this.#buffer = grown;
  }
}

/** Number of bytes of `value` as a varint. */
export function varintWidth(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  if (value < 0x1000_0000) return 4;
  let width = 5;
  for (let rest = Math.floor(value / 0x8_0000_0000); rest > 0; rest = Math.floor(rest / 128)) width += 1;
  return width;
}

/** Reads one message. Byte fields are views on the input, strings are copies. Methods throw WireError. */
export class Reader {
  readonly #buffer: Buffer;
  #position: number;
  readonly #end: number;
  #wireType = 0;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#position = start;
    this.#end = end;
  }

  /** Position in the given bytes. */
  get position(): number {
    return this.#position;
  }

  /** Reads the next tag and returns the field number, or 0 at the end. */
  field(): number {
    if (this.#position >= this.#end) return 0;
    const key = this.varint();
    this.#wireType = key & 7;
    const field = key >>> 3;
    if (field === 0 || key > 0xffff_ffff) throw new WireError('illegal field number');
    return field;
  }

  /** Reads a varint below 2^53. A negative int64 (ten bytes) is returned as a negative number. */
  varint(): number {
    const buffer = this.#buffer;
    let position = this.#position;
    const first = position < this.#end ? (buffer[position++] as number) : -1;
    if (first < 0) throw new WireError('message is cut short');
    if (first < 0x80) {
      this.#position = position;
      return first;
    }
    let value = first & 0x7f;
    let scale = 128;
    for (let i = 1; i < 8; i += 1) {
      if (position >= this.#end) throw new WireError('message is cut short');
      const byte = buffer[position++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) break;
        this.#position = position;
        return value;
      }
      scale *= 128;
    }
    const exact = BigInt.asIntN(64, this.bigVarint());
    if (exact > BigInt(Number.MAX_SAFE_INTEGER) || exact < BigInt(Number.MIN_SAFE_INTEGER)) {
      throw new WireError('number is out of range');
    }
    return Number(exact);
  }

  bigVarint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      if (this.#position >= this.#end) throw new WireError('message is cut short');
      const byte = this.#buffer[this.#position++] as number;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asUintN(64, value);
    }
    throw new WireError('number is too long');
  }

  int(): number {
    this.#expect(0);
    return this.varint();
  }

  bool(): boolean {
    return this.int() !== 0;
  }

  /** Reads a signed 64-bit integer. */
  big(): bigint {
    this.#expect(0);
    return BigInt.asIntN(64, this.bigVarint());
  }

  double(): number {
    this.#expect(1);
    if (this.#end - this.#position < 8) throw new WireError('message is cut short');
    const value = this.#buffer.readDoubleLE(this.#position);
    this.#position += 8;
    return value;
  }

  bytes(): Buffer {
    this.#expect(2);
    const length = this.varint();
    const start = this.#position;
    if (length < 0 || length > this.#end - start) throw new WireError('message is cut short');
    this.#position = start + length;
    return this.#buffer.subarray(start, start + length);
  }

  /** Reader for the current field, a sub-message. Its positions refer to the same bytes. */
  message(): Reader {
    this.#expect(2);
    const length = this.varint();
    const start = this.#position;
    if (length < 0 || length > this.#end - start) throw new WireError('message is cut short');
    this.#position = start + length;
    return new Reader(this.#buffer, start, this.#position);
  }

  latin1(): string {
    this.#expect(2);
    const length = this.varint();
    const start = this.#position;
    if (length < 0 || length > this.#end - start) throw new WireError('message is cut short');
    this.#position = start + length;
    return this.#buffer.toString('latin1', start, start + length);
  }

  string(): string {
    return this.bytes().toString('utf8');
  }

  /** Reads a repeated scalar, packed or not. */
  ints(into: number[]): void {
    if (this.#wireType === 0) {
      into.push(this.varint());
      return;
    }
    const packed = new Reader(this.bytes());
    while (packed.#position < packed.#end) into.push(packed.varint());
  }

  /** Like `ints`, for signed 64-bit integers. */
  bigs(into: bigint[]): void {
    if (this.#wireType === 0) {
      into.push(this.big());
      return;
    }
    const packed = new Reader(this.bytes());
    while (packed.#position < packed.#end) into.push(BigInt.asIntN(64, packed.bigVarint()));
  }

  skip(): void {
    switch (this.#wireType) {
      case 0:
        this.#skipVarint();
        return;
      case 1:
        this.#advance(8);
        return;
      case 2:
        this.#advance(this.varint());
        return;
      case 5:
        this.#advance(4);
        return;
      default:
        throw new WireError(`wire type ${this.#wireType} is not supported`);
    }
  }

  #skipVarint(): void {
    for (let i = 0; i < 10; i += 1) {
      if (this.#position >= this.#end) throw new WireError('message is cut short');
      if ((this.#buffer[this.#position++] as number) < 0x80) return;
    }
    throw new WireError('number is too long');
  }

  #advance(length: number): void {
    if (length < 0 || length > this.#end - this.#position) throw new WireError('message is cut short');
    this.#position += length;
  }

  #expect(wireType: number): void {
    if (this.#wireType !== wireType) throw new WireError(`wire type ${this.#wireType} where ${wireType} belongs`);
  }
}

/** Fields 1 to 3 of a message that has integer fields only; 0n for missing fields. */
export function firstNumbers(message: Uint8Array): readonly [first: bigint, second: bigint, third: bigint] {
  const reader = new Reader(message);
  const found: [bigint, bigint, bigint] = [0n, 0n, 0n];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field <= found.length) found[field - 1] = reader.big();
    else reader.skip();
  }
  return found;
}
