/**
 * Protobuf writer that writes from the end to the beginning. The content of a structure is written before its header,
 * so that its length is known and no bytes need to be moved. Go's generated code does the same.
 */
const INITIAL = 64 * 1024;
const KEPT = 1024 * 1024;
const SHORT = 48;

export class BackwardsWriter {
  #buffer = Buffer.allocUnsafeSlow(INITIAL);
  /** Start of the written bytes in the buffer. */
  #position = INITIAL;

  get length(): number {
    return this.#buffer.length - this.#position;
  }

  /** Returns a copy of the written bytes and resets the writer. */
  finish(): Buffer {
    const out = Buffer.from(this.#buffer.subarray(this.#position));
    this.reset();
    return out;
  }

  reset(): void {
    if (this.#buffer.length > KEPT) this.#buffer = Buffer.allocUnsafeSlow(INITIAL);
    this.#position = this.#buffer.length;
  }

  tag(field: number, wireType: 0 | 1 | 2): void {
    this.varint(field * 8 + wireType);
  }

  /**
   * Writes the header of a field. Its content is everything that was written after the writer had the given `length`.
   */
  enclose(field: number, length: number): void {
    this.varint(this.length - length);
    this.tag(field, 2);
  }

  /** Writes a non-negative safe integer. */
  varint(value: number): void {
    if (value < 0x80) {
      this.#reserve(1);
      this.#position -= 1;
      this.#buffer[this.#position] = value;
      return;
    }
    let width = 1;
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) width += 1;
    this.#reserve(width);
    this.#position -= width;
    let at = this.#position;
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) this.#buffer[at++] = (rest % 128) | 0x80;
    this.#buffer[at] = rest;
  }

  /** Writes a 64-bit integer of either sign. A negative integer takes ten bytes. */
  integer(value: number | bigint): void {
    if (typeof value === 'number' && value >= 0) {
      this.varint(value);
      return;
    }
    const bytes: number[] = [];
    let rest = BigInt.asUintN(64, typeof value === 'bigint' ? value : BigInt(Math.trunc(value)));
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
    this.bytes(Buffer.from(bytes));
  }

  double(value: number): void {
    this.#reserve(8);
    this.#position -= 8;
    this.#buffer.writeDoubleLE(value, this.#position);
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#position -= value.length;
    this.#buffer.set(value, this.#position);
  }

  text(value: string, encoding: 'utf8' | 'base64' = 'utf8'): void {
    if (encoding === 'utf8' && value.length <= SHORT && this.#ascii(value)) return;
    const length = Buffer.byteLength(value, encoding);
    this.#reserve(length);
    this.#position -= length;
    this.#buffer.write(value, this.#position, length, encoding);
  }

  /**
   * Fast path for short ASCII strings: a loop is cheaper than a native call. Returns false, without writing, for other
   * strings.
   */
  #ascii(value: string): boolean {
    const { length } = value;
    this.#reserve(length);
    const start = this.#position - length;
    const buffer = this.#buffer;
    for (let index = 0; index < length; index++) {
      const code = value.charCodeAt(index);
      if (code >= 0x80) return false;
      buffer[start + index] = code;
    }
    this.#position = start;
    return true;
  }

  #reserve(more: number): void {
    if (this.#position >= more) return;
    const { length } = this;
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#buffer.length * 2, length + more));
    const position = grown.length - length;
    this.#buffer.copy(grown, position, this.#position);
    this.#buffer = grown;
    this.#position = position;
  }
}
