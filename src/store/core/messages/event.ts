/**
 * `mvccpb.Event` in the form in which revisions are stored and sent: a sequence of `WatchResponse.events` fields
 * (number 11). The bytes of a revision are encoded once, when it is written. The log stores them and watchers receive
 * them. The key-value part is field 2 in `Event` and in `RangeResponse`, so range responses copy it with tag and
 * length.
 */
import { Reader, varintWidth, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';

export const EventType = { put: 0, delete: 1 } as const;

const EVENTS_TAG = 11 * 8 + 2;
const KV_TAG = 2 * 8 + 2;
const PREVIOUS_TAG = 3 * 8 + 2;
const NONE: Buffer = Buffer.alloc(0);
/** Encoded `Event.type` (field 1) with the value DELETE. */
const DELETE_TYPE = Buffer.from([1 * 8, EventType.delete]);

export interface EncodedEvent {
  /** The whole `events` field, including its tag. */
  readonly field: Buffer;
  /** The `KeyValue` in the event: field 2 with tag and length. */
  readonly kv: Buffer;
}

export interface PutEvent {
  readonly key: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  readonly value: Uint8Array;
  readonly lease: bigint;
}

const scratch = new Writer(256);
const leaseScratch = new Writer(16);

/** Encodes a put with one allocation and one copy of the value. */
export function encodePutEvent(put: PutEvent): EncodedEvent {
  scratch.reset().latin1(1, put.key).int(2, put.createRevision).int(3, put.modRevision).int(4, put.version);
  const value = put.value.length;
  if (value > 0) scratch.varint(5 * 8 + 2).varint(value);
  leaseScratch.reset().big(6, put.lease);
  const kvLength = scratch.length + value + leaseScratch.length;
  const eventLength = 1 + varintWidth(kvLength) + kvLength;
  const field = Buffer.allocUnsafeSlow(1 + varintWidth(eventLength) + eventLength);
  field[0] = EVENTS_TAG;
  const start = putVarint(field, 1, eventLength);
  field[start] = KV_TAG;
  const position = putVarint(field, start + 1, kvLength);
  scratch.copyTo(field, position);
  field.set(put.value, position + scratch.length);
  leaseScratch.copyTo(field, position + scratch.length + value);
  return { field, kv: field.subarray(start) };
}

/** Encodes a delete. Its key-value has the key and the revision of the delete. */
export function encodeDeleteEvent(key: string, modRevision: number): EncodedEvent {
  scratch.reset().latin1(1, key).int(3, modRevision);
  const kvLength = scratch.length;
  const eventLength = DELETE_TYPE.length + 1 + varintWidth(kvLength) + kvLength;
  const field = roomForDelete(1 + varintWidth(eventLength) + eventLength);
  field[0] = EVENTS_TAG;
  const type = putVarint(field, 1, eventLength);
  field.set(DELETE_TYPE, type);
  const start = type + DELETE_TYPE.length;
  field[start] = KV_TAG;
  scratch.copyTo(field, putVarint(field, start + 1, kvLength));
  return { field, kv: field.subarray(start) };
}

/**
 * Deletes of a prefix produce thousands of small events. A buffer per event would have more overhead than data, and a
 * slice of a general pool would keep unrelated memory alive. Therefore, small deletes share dedicated buffers of this
 * size.
 */
const PIECE = 8192;
let piece = NONE;
let used = 0;

function roomForDelete(bytes: number): Buffer {
  if (bytes > PIECE / 8) return Buffer.allocUnsafeSlow(bytes);
  if (used + bytes > piece.length) {
    piece = Buffer.allocUnsafeSlow(PIECE);
    used = 0;
  }
  used += bytes;
  return piece.subarray(used - bytes, used);
}

/** Encodes the `events` field of a put from its key-value. */
export function putField(kv: Buffer): Buffer {
  const out = Buffer.allocUnsafeSlow(1 + varintWidth(kv.length) + kv.length);
  out[0] = EVENTS_TAG;
  out.set(kv, putVarint(out, 1, kv.length));
  return out;
}

/** Returns the `events` field with the previous key-value added. */
export function withPrevious(field: Buffer, previous: Buffer): Buffer {
  const reader = new Reader(field);
  reader.field();
  const body = reader.bytes();
  const length = body.length + previous.length;
  const out = Buffer.allocUnsafeSlow(1 + varintWidth(length) + length);
  out[0] = EVENTS_TAG;
  let position = putVarint(out, 1, length);
  out.set(body, position);
  position += body.length;
  out.set(previous, position);
  out[position] = PREVIOUS_TAG;
  return out;
}

export interface StoredEvent {
  readonly type: number;
  readonly key: string;
  readonly createRevision: number;
  readonly version: number;
  readonly lease: bigint;
  readonly field: Buffer;
  /** Encoded key-value, as in `EncodedEvent`. */
  readonly kv: Buffer;
}

/** Splits the stored bytes of a revision into events. Throws WireError if they are damaged. */
export function splitEvents(events: Uint8Array): StoredEvent[] {
  const bytes = Buffer.isBuffer(events) ? events : Buffer.from(events.buffer, events.byteOffset, events.byteLength);
  const reader = new Reader(bytes);
  const out: StoredEvent[] = [];
  for (let start = 0, field = reader.field(); field !== 0; start = reader.position, field = reader.field()) {
    if (field !== 11) throw new WireError('not an event');
    const event = reader.message();
    let type: number = EventType.put;
    let kv: Buffer = NONE;
    let identity = NO_IDENTITY;
    for (let at = event.position, inner = event.field(); inner !== 0; at = event.position, inner = event.field()) {
      if (inner === 1) type = event.int();
      else if (inner === 2) {
        identity = identityOf(event.message());
        kv = bytes.subarray(at, event.position);
      } else event.skip();
    }
    const { key, createRevision, version, lease } = identity;
    out.push({ type, key, createRevision, version, lease, field: bytes.subarray(start, reader.position), kv });
  }
  return out;
}

type Identity = Pick<StoredEvent, 'key' | 'createRevision' | 'version' | 'lease'>;
const NO_IDENTITY: Identity = { key: '', createRevision: 0, version: 0, lease: 0n };

/** Reads all fields of a `KeyValue` except the value. */
function identityOf(reader: Reader): Identity {
  let key = '';
  let createRevision = 0;
  let version = 0;
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) createRevision = reader.int();
    else if (field === 4) version = reader.int();
    else if (field === 6) lease = reader.big();
    else reader.skip();
  }
  return { key, createRevision, version, lease };
}

/** The value inside an encoded key-value, as a view. */
export function encodedValue(kv: Uint8Array): Buffer {
  const outer = new Reader(kv);
  outer.field();
  const reader = outer.message();
  let value: Buffer = NONE;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 5) value = reader.bytes();
    else reader.skip();
  }
  return value;
}

function putVarint(into: Buffer, at: number, value: number): number {
  let position = at;
  let rest = value;
  while (rest > 0x7f) {
    into[position++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  into[position++] = rest;
  return position;
}
