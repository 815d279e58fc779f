/**
 * The part of the D-Bus wire format that systemd's interfaces use: little-endian messages with strings, integers,
 * arrays, structures and variants. Source: D-Bus Specification 0.43, "Type System" and "Message Protocol".
 */
import { CodedError } from '../../base/errors.ts';

/** Responses and signals of systemd have a few hundred bytes. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const FIXED_HEADER_BYTES = 16;
const LITTLE_ENDIAN = 0x6c;
const PROTOCOL_VERSION = 1;

export const METHOD_CALL = 1;
export const METHOD_RETURN = 2;
export const ERROR = 3;
export const SIGNAL = 4;

const FIELD = {
  path: 1,
  interface: 2,
  member: 3,
  errorName: 4,
  replySerial: 5,
  destination: 6,
  sender: 7,
  signature: 8,
} as const;

/** Appends values, each aligned as its type requires, relative to the start. */
export class Writer {
  private bytes = Buffer.alloc(512);
  private length = 0;

  get result(): Buffer {
    return this.bytes.subarray(0, this.length);
  }

  align(boundary: number): void {
    this.reserve((boundary - (this.length % boundary)) % boundary);
  }

  byte(value: number): void {
    const at = this.reserve(1);
    this.bytes.writeUInt8(value, at);
  }

  uint32(value: number): void {
    this.align(4);
    const at = this.reserve(4);
    this.bytes.writeUInt32LE(value, at);
  }

  boolean(value: boolean): void {
    this.uint32(value ? 1 : 0);
  }

  uint64(value: bigint): void {
    this.align(8);
    const at = this.reserve(8);
    this.bytes.writeBigUInt64LE(value, at);
  }

  /** Writes a string or an object path. */
  string(value: string): void {
    const size = Buffer.byteLength(value);
    this.uint32(size);
    const at = this.reserve(size + 1);
    this.bytes.write(value, at);
  }

  signature(value: string): void {
    this.byte(value.length);
    const at = this.reserve(value.length + 1);
    this.bytes.write(value, at, 'latin1');
  }

  /** `boundary` is the alignment of the items (8 for structures). */
  array(boundary: number, items: () => void): void {
    this.uint32(0);
    const sizeAt = this.length - 4;
    this.align(boundary);
    const begin = this.length;
    items();
    this.bytes.writeUInt32LE(this.length - begin, sizeAt);
  }

  variant(signature: string, value: () => void): void {
    this.signature(signature);
    value();
  }

  raw(bytes: Buffer): void {
    const at = this.reserve(bytes.length);
    bytes.copy(this.bytes, at);
  }

  /** Reserves `size` zero bytes and returns their position. */
  private reserve(size: number): number {
    const at = this.length;
    if (at + size > this.bytes.length) {
      const larger = Buffer.alloc(2 * (at + size));
      this.bytes.copy(larger);
      this.bytes = larger;
    }
    this.length = at + size;
    return at;
  }
}

export interface MethodCall {
  readonly serial: number;
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature: string;
  readonly body: Buffer;
}

export function encodeCall(call: MethodCall): Buffer {
  const writer = new Writer();
  for (const byte of [LITTLE_ENDIAN, METHOD_CALL, 0, PROTOCOL_VERSION]) writer.byte(byte);
  writer.uint32(call.body.length);
  writer.uint32(call.serial);
  const field = (code: number, signature: 's' | 'o' | 'g', value: string): void => {
    writer.align(8);
    writer.byte(code);
    writer.variant(signature, () => (signature === 'g' ? writer.signature(value) : writer.string(value)));
  };
  writer.array(8, () => {
    field(FIELD.path, 'o', call.path);
    field(FIELD.interface, 's', call.interface);
    field(FIELD.member, 's', call.member);
    field(FIELD.destination, 's', call.destination);
    if (call.signature !== '') field(FIELD.signature, 'g', call.signature);
  });
  writer.align(8);
  writer.raw(call.body);
  return writer.result;
}

/** Reads values with the alignment of Writer. Throws CodedError 'systemd' beyond the end. */
export class Reader {
  private readonly bytes: Buffer;
  private at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  get position(): number {
    return this.at;
  }

  align(boundary: number): void {
    this.take((boundary - (this.at % boundary)) % boundary);
  }

  byte(): number {
    return this.bytes.readUInt8(this.take(1));
  }

  uint32(): number {
    this.align(4);
    return this.bytes.readUInt32LE(this.take(4));
  }

  uint64(): bigint {
    this.align(8);
    return this.bytes.readBigUInt64LE(this.take(8));
  }

  /** Reads a string or an object path. */
  string(): string {
    const size = this.uint32();
    const at = this.take(size + 1);
    return this.bytes.toString('utf8', at, at + size);
  }

  signature(): string {
    const size = this.byte();
    const at = this.take(size + 1);
    return this.bytes.toString('latin1', at, at + size);
  }

  private take(size: number): number {
    const { at } = this;
    if (at + size > this.bytes.length) throw new CodedError('systemd', 'a D-Bus message ends too early');
    this.at = at + size;
    return at;
  }
}

export interface Message {
  readonly type: number;
  readonly replySerial: number;
  readonly member: string;
  readonly errorName: string;
  /** Connection of the sender; '' without a bus. */
  readonly sender: string;
  readonly signature: string;
  readonly body: Buffer;
}

/**
 * Decodes the first message; undefined if more bytes are needed. Throws CodedError 'systemd' for an invalid message.
 */
export function decodeMessage(bytes: Buffer): { readonly message: Message; readonly end: number } | undefined {
  if (bytes.length < FIXED_HEADER_BYTES) return undefined;
  if (bytes.readUInt8(0) !== LITTLE_ENDIAN || bytes.readUInt8(3) !== PROTOCOL_VERSION) {
    throw new CodedError('systemd', 'not a little-endian D-Bus message of version 1');
  }
  const bodyBytes = bytes.readUInt32LE(4);
  const fieldBytes = bytes.readUInt32LE(12);
  const bodyAt = Math.ceil((FIXED_HEADER_BYTES + fieldBytes) / 8) * 8;
  const end = bodyAt + bodyBytes;
  if (end > MAX_MESSAGE_BYTES) throw new CodedError('systemd', `a D-Bus message of ${end} bytes`);
  if (bytes.length < end) return undefined;
  const header = new Reader(bytes.subarray(0, FIXED_HEADER_BYTES + fieldBytes), FIXED_HEADER_BYTES);
  let replySerial = 0;
  const texts = new Map<number, string>();
  while (header.position < FIXED_HEADER_BYTES + fieldBytes) {
    header.align(8);
    const code = header.byte();
    const signature = header.signature();
    if (signature === 'u') {
      const value = header.uint32();
      if (code === FIELD.replySerial) replySerial = value;
    } else if (signature === 'g') texts.set(code, header.signature());
    else if (signature === 's' || signature === 'o') texts.set(code, header.string());
    else throw new CodedError('systemd', `a D-Bus header field of type ${signature}`);
  }
  return {
    message: {
      type: bytes.readUInt8(1),
      replySerial,
      member: texts.get(FIELD.member) ?? '',
      errorName: texts.get(FIELD.errorName) ?? '',
      sender: texts.get(FIELD.sender) ?? '',
      signature: texts.get(FIELD.signature) ?? '',
      body: bytes.subarray(bodyAt, end),
    },
    end,
  };
}
