import { BytePieces } from './byte-pieces.ts';
import { RpcCode } from './port.ts';

/** A call that ended with a status other than OK. */
export class RpcError extends Error {
  readonly code: RpcCode | number;
  constructor(code: RpcCode | number, message: string) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
  }
}

const PREFIX = 5;
/** Maximum length of an error message that is sent or kept, because it ends up in logs, Events and statuses. */
export const MAX_STATUS_MESSAGE = 8192;

/** The five bytes before a message: the flag "not compressed" and the length. */
export function messagePrefix(length: number): Buffer {
  const prefix = Buffer.allocUnsafe(PREFIX);
  prefix[0] = 0;
  prefix.writeUInt32BE(length, 1);
  return prefix;
}

/** Splits a stream of data into gRPC messages. A message that arrives in one piece is delivered without copying. */
export class MessageReader {
  readonly #maxBytes: number;
  readonly #pieces = new BytePieces();
  /** While true, messages are kept instead of delivered. `deliver` may set it; `push` with no bytes continues. */
  paused = false;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Number of buffered bytes of an unfinished message. */
  get pending(): number {
    return this.#pieces.bytes;
  }

  /** Throws RpcError for messages that are compressed or too large. */
  push(data: Buffer, deliver: (message: Buffer) => void): void {
    const pieces = this.#pieces;
    if (this.paused) pieces.push(data);
    else if (pieces.bytes === 0) this.#take(data, deliver);
    else {
      pieces.push(data);
      if (pieces.bytes < PREFIX || pieces.bytes < this.#needed()) return;
      this.#take(pieces.take(), deliver);
    }
  }

  #take(bytes: Buffer, deliver: (message: Buffer) => void): void {
    let at = 0;
    while (!this.paused && bytes.length - at >= PREFIX) {
      const end = at + PREFIX + this.#length(bytes, at);
      if (end > bytes.length) break;
      deliver(bytes.subarray(at + PREFIX, end));
      at = end;
    }
    if (at < bytes.length) this.#pieces.push(at === 0 ? bytes : bytes.subarray(at));
  }

  /** Number of bytes needed to complete the first message. */
  #needed(): number {
    const { first } = this.#pieces;
    if (first !== undefined && first.length >= PREFIX) return PREFIX + this.#length(first, 0);
    const start = this.#pieces.take();
    this.#pieces.push(start);
    return PREFIX + this.#length(start, 0);
  }

  #length(bytes: Buffer, at: number): number {
    if (bytes[at] !== 0) throw new RpcError(RpcCode.unimplemented, 'grpc: compressed messages are not supported');
    const length = bytes.readUInt32BE(at + 1);
    if (length > this.#maxBytes) {
      throw new RpcError(
        RpcCode.resourceExhausted,
        `grpc: received message larger than max (${length} vs. ${this.#maxBytes})`,
      );
    }
    return length;
  }
}

/** Encodes a message for `grpc-message` as percent-encoded UTF-8 and truncates it to a valid header length. */
export function encodeStatusMessage(message: string): string {
  let out = '';
  for (const character of message) {
    let encoded = '';
    for (const byte of Buffer.from(character)) {
      encoded +=
        byte >= 0x20 && byte <= 0x7e && byte !== 0x25
          ? String.fromCharCode(byte)
          : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`;
    }
    if (out.length + encoded.length > MAX_STATUS_MESSAGE) break;
    out += encoded;
  }
  return out;
}

export function decodeStatusMessage(message: string): string {
  if (!message.includes('%')) return message;
  const bytes: number[] = [];
  for (let i = 0; i < message.length; i += 1) {
    const hex = message[i] === '%' ? message.slice(i + 1, i + 3) : '';
    if (/^[0-9a-fA-F]{2}$/.test(hex)) {
      bytes.push(Number.parseInt(hex, 16));
      i += 2;
    } else bytes.push(message.charCodeAt(i) & 0xff);
  }
  return Buffer.from(bytes).toString();
}
