/**
 * Encodes and decodes messages on streams: table exchanges, pings and user messages. Each side sends one message per
 * stream.
 */

import { decodeFields, MsgpackError, msgpackEnd } from '../../wire/msgpack.ts';
import { MAX_META_BYTES, MAX_NAME_BYTES, type RingState, type StateRow } from '../core/port.ts';
import { ENCRYPTION_OVERHEAD } from './keyring.ts';
import { labelHeader, withoutLabel } from './label.ts';
import { decodeRow, encodeRow, messageType, typed } from './messages.ts';
import { decompressed, type Sealing } from './packet.ts';

export type StreamMessage =
  | { readonly kind: 'push-pull'; readonly state: RingState }
  | { readonly kind: 'ping' | 'ack'; readonly seq: number; readonly node: string }
  | { readonly kind: 'user'; readonly payload: Uint8Array }
  | { readonly kind: 'error'; readonly text: string };

interface StreamLimits {
  /** Maximum size of a message before and after decompression. */
  readonly maxBytes: number;
  readonly maxRows: number;
}

export const STREAM_LIMITS: StreamLimits = { maxBytes: 8 * 1024 * 1024, maxRows: 16_384 };

/** Thrown if a stream contains no valid message of this ring. */
export class StreamError extends Error {}

const UINT32 = 0xffff_ffff;
const FRAME_HEAD = 5;
/** Maximum size of a row with its keys, numbers and address. */
const MAX_ROW_BYTES = MAX_META_BYTES + MAX_NAME_BYTES + 512;
const MAX_USER_BYTES = 64 * 1024;

export function encodePushPull(state: RingState): Uint8Array {
  const { rows, userState, join } = state;
  const head = typed(messageType.pushPull, { Nodes: rows.length, UserStateLen: userState.length, Join: join });
  return Buffer.concat([head, ...rows.map(encodeRow), userState]);
}

/** Encodes a message for a stream. */
export function sealStream(message: Uint8Array, sealing: Sealing): Uint8Array {
  const header = labelHeader(sealing.label);
  if (sealing.keyring === undefined) return Buffer.concat([header, message]);
  // The authenticated frame head contains the length of the encrypted message. Encryption adds a constant number of
  // bytes, so the length is known before.
  const head = Buffer.alloc(FRAME_HEAD);
  head[0] = messageType.encrypt;
  head.writeUInt32BE(message.length + ENCRYPTION_OVERHEAD, 1);
  return Buffer.concat([header, head, sealing.keyring.encrypt(message, Buffer.concat([head, sealing.label]))]);
}

/**
 * Reads the message of a stream from chunks of any size. Time is linear in the received bytes, and `limits.maxBytes`
 * limits the memory. `push` throws {@link StreamError} as soon as the bytes cannot be the start of a valid message.
 */
export class StreamReader {
  readonly #sealing: Sealing;
  readonly #limits: StreamLimits;
  #buffer = Buffer.alloc(4096);
  #length = 0;
  #labelled: boolean;
  #start = 0;
  #body: BodyReader | undefined;

  constructor(sealing: Sealing, limits: StreamLimits) {
    this.#sealing = sealing;
    this.#limits = limits;
    this.#labelled = false;
  }

  push(chunk: Uint8Array): StreamMessage | undefined {
    this.#append(chunk);
    try {
      return this.#advance();
    } catch (error) {
      if (error instanceof MsgpackError) throw new StreamError(error.message, { cause: error });
      throw error;
    }
  }

  #advance(): StreamMessage | undefined {
    const received = this.#buffer.subarray(0, this.#length);
    if (!this.#labelled) {
      const rest = withoutLabel(received, this.#sealing.label);
      if (rest === 'foreign') throw new StreamError('the label belongs to another ring');
      if (rest === 'incomplete') return undefined;
      this.#labelled = true;
      this.#start = received.length - rest.length;
    }
    const content = received.subarray(this.#start);
    if (content.length === 0) return undefined;
    if (this.#sealing.keyring === undefined) {
      this.#body ??= new BodyReader(this.#limits);
      return this.#body.read(content);
    }
    if (content[0] !== messageType.encrypt) throw new StreamError('the message is not encrypted');
    if (content.length < FRAME_HEAD) return undefined;
    const length = content.readUInt32BE(1);
    if (length > this.#limits.maxBytes) throw new StreamError(`a message of ${length} bytes exceeds the limit`);
    if (content.length < FRAME_HEAD + length) return undefined;
    const sealed = content.subarray(FRAME_HEAD, FRAME_HEAD + length);
    const authenticated = Buffer.concat([content.subarray(0, FRAME_HEAD), this.#sealing.label]);
    const plain = this.#sealing.keyring.decrypt(sealed, authenticated);
    if (plain === undefined) throw new StreamError('no key in the keyring decrypts the message');
    return whole(plain, this.#limits);
  }

  #append(chunk: Uint8Array): void {
    const length = this.#length + chunk.length;
    if (length > this.#limits.maxBytes)
      throw new StreamError(`the message is longer than ${this.#limits.maxBytes} bytes`);
    if (length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.min(this.#limits.maxBytes, Math.max(length, this.#buffer.length * 2)));
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.#length);
    this.#length = length;
  }
}

function whole(content: Uint8Array, limits: StreamLimits): StreamMessage {
  const message = new BodyReader(limits).read(content);
  if (message === undefined) throw new StreamError('the message is truncated');
  return message;
}

/** Reads a message that may be incomplete. Each call continues where the previous one stopped. */
class BodyReader {
  readonly #limits: StreamLimits;
  #at = 1;
  #header: { readonly nodes: number; readonly userBytes: number; readonly join: boolean } | undefined;
  readonly #rows: StateRow[] = [];

  constructor(limits: StreamLimits) {
    this.#limits = limits;
  }

  read(content: Uint8Array): StreamMessage | undefined {
    switch (content[0]) {
      case undefined:
        return undefined;
      case messageType.pushPull:
        return this.#pushPull(content);
      case messageType.ping:
      case messageType.ackResponse: {
        const fields = this.#small(content);
        if (fields === undefined) return undefined;
        const kind = content[0] === messageType.ping ? 'ping' : 'ack';
        return { kind, seq: fields.uint('SeqNo', UINT32), node: fields.text('Node', MAX_NAME_BYTES) };
      }
      case messageType.user:
        return this.#user(content);
      case messageType.error: {
        const fields = this.#small(content);
        return fields === undefined ? undefined : { kind: 'error', text: fields.text('Error', 1024) };
      }
      case messageType.compress: {
        if (msgpackEnd(content, 1) === undefined) return undefined;
        const plain = decompressed(content.subarray(1), this.#limits.maxBytes);
        if (plain === undefined || plain[0] === messageType.compress)
          throw new StreamError('the compressed content is damaged');
        return whole(plain, this.#limits);
      }
      default:
        throw new StreamError(`unknown message type ${content[0]}`);
    }
  }

  #small(content: Uint8Array): ReturnType<typeof decodeFields> | undefined {
    const end = msgpackEnd(content, 1);
    if (end !== undefined) return decodeFields(content.subarray(1, end));
    if (content.length > MAX_ROW_BYTES) throw new StreamError('the message exceeds the length of a row');
    return undefined;
  }

  #user(content: Uint8Array): StreamMessage | undefined {
    const end = msgpackEnd(content, 1);
    if (end === undefined) {
      if (content.length > MAX_ROW_BYTES) throw new StreamError('the header exceeds the length of a row');
      return undefined;
    }
    const length = decodeFields(content.subarray(1, end)).uint('UserMsgLen', MAX_USER_BYTES);
    if (content.length < end + length) return undefined;
    return { kind: 'user', payload: new Uint8Array(content.subarray(end, end + length)) };
  }

  #pushPull(content: Uint8Array): StreamMessage | undefined {
    if (this.#header === undefined) {
      const end = msgpackEnd(content, 1);
      if (end === undefined) {
        if (content.length > MAX_ROW_BYTES) throw new StreamError('the header exceeds the length of a row');
        return undefined;
      }
      const fields = decodeFields(content.subarray(1, end));
      this.#header = {
        nodes: fields.uint('Nodes', this.#limits.maxRows),
        userBytes: fields.uint('UserStateLen', this.#limits.maxBytes),
        join: fields.bool('Join'),
      };
      this.#at = end;
    }
    const { nodes, userBytes, join } = this.#header;
    while (this.#rows.length < nodes) {
      const end = msgpackEnd(content, this.#at);
      if (end === undefined ? content.length - this.#at > MAX_ROW_BYTES : end - this.#at > MAX_ROW_BYTES)
        throw new StreamError('a row exceeds its maximum length');
      if (end === undefined) return undefined;
      this.#rows.push(decodeRow(decodeFields(content.subarray(this.#at, end))));
      this.#at = end;
    }
    if (content.length < this.#at + userBytes) return undefined;
    const userState = new Uint8Array(content.subarray(this.#at, this.#at + userBytes));
    return { kind: 'push-pull', state: { rows: this.#rows, userState, join } };
  }
}
