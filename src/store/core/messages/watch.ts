/** Messages of `etcdserverpb.Watch`. Source: etcd v3 rpc.proto. */

import { Reader, type Writer } from '../../../wire/protobuf/protobuf.ts';
import { decodeHeader, decodeKeyValue, type WireKeyValue } from './kv.ts';

export interface WatchCreateRequest {
  readonly key: string;
  readonly end: string;
  /** 0 means from now on. */
  readonly startRevision: number;
  readonly progressNotify: boolean;
  readonly noPut: boolean;
  readonly noDelete: boolean;
  readonly prevKv: boolean;
  /** 0 lets the server choose the ID. */
  readonly watchId: number;
  readonly fragment: boolean;
}

export type WatchRequest =
  | { readonly kind: 'create'; readonly create: WatchCreateRequest }
  | { readonly kind: 'cancel'; readonly watchId: number }
  | { readonly kind: 'progress' };

export function decodeWatchRequest(bytes: Uint8Array): WatchRequest | undefined {
  const reader = new Reader(bytes);
  let request: WatchRequest | undefined;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) request = { kind: 'create', create: decodeCreate(reader.bytes()) };
    else if (field === 2) request = { kind: 'cancel', watchId: decodeCancel(reader.bytes()) };
    else if (field === 3) {
      reader.skip();
      request = { kind: 'progress' };
    } else reader.skip();
  }
  return request;
}

function decodeCreate(bytes: Uint8Array): WatchCreateRequest {
  const reader = new Reader(bytes);
  const filters: number[] = [];
  let key = '';
  let end = '';
  let startRevision = 0;
  let progressNotify = false;
  let prevKv = false;
  let watchId = 0;
  let fragment = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) end = reader.latin1();
    else if (field === 3) startRevision = reader.int();
    else if (field === 4) progressNotify = reader.bool();
    else if (field === 5) reader.ints(filters);
    else if (field === 6) prevKv = reader.bool();
    else if (field === 7) watchId = reader.int();
    else if (field === 8) fragment = reader.bool();
    else reader.skip();
  }
  const noPut = filters.includes(0);
  const noDelete = filters.includes(1);
  return { key, end, startRevision, progressNotify, noPut, noDelete, prevKv, watchId, fragment };
}

function decodeCancel(bytes: Uint8Array): number {
  const reader = new Reader(bytes);
  let watchId = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) watchId = reader.int();
    else reader.skip();
  }
  return watchId;
}

export function writeWatchCreate(
  writer: Writer,
  request: Partial<WatchCreateRequest> & { readonly key: string },
): Writer {
  const mark = writer.begin(1);
  writer
    .latin1(1, request.key)
    .latin1(2, request.end ?? '')
    .int(3, request.startRevision ?? 0)
    .bool(4, request.progressNotify ?? false);
  // Elements of a repeated enum are written even if they are zero.
  if (request.noPut) writer.varint(5 * 8).varint(0);
  if (request.noDelete) writer.varint(5 * 8).varint(1);
  writer
    .bool(6, request.prevKv ?? false)
    .int(7, request.watchId ?? 0)
    .bool(8, request.fragment ?? false);
  return writer.end(mark);
}

export function writeWatchCancel(writer: Writer, watchId: number): Writer {
  const mark = writer.begin(2);
  return writer.int(1, watchId).end(mark);
}

export function writeWatchProgress(writer: Writer): Writer {
  return writer.end(writer.begin(3));
}

export interface WireEvent {
  readonly type: number;
  readonly kv: WireKeyValue;
  readonly previous: WireKeyValue | undefined;
}

export interface WatchResponse {
  readonly revision: number;
  readonly watchId: number;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compactRevision: number;
  readonly cancelReason: string;
  readonly fragment: boolean;
  readonly events: readonly WireEvent[];
}

export function decodeWatchResponse(bytes: Uint8Array): WatchResponse {
  const reader = new Reader(bytes);
  const events: WireEvent[] = [];
  let revision = 0;
  let watchId = 0;
  let created = false;
  let canceled = false;
  let compactRevision = 0;
  let cancelReason = '';
  let fragment = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) revision = decodeHeader(reader.bytes());
    else if (field === 2) watchId = reader.int();
    else if (field === 3) created = reader.bool();
    else if (field === 4) canceled = reader.bool();
    else if (field === 5) compactRevision = reader.int();
    else if (field === 6) cancelReason = reader.string();
    else if (field === 7) fragment = reader.bool();
    else if (field === 11) events.push(decodeEvent(reader.bytes()));
    else reader.skip();
  }
  return { revision, watchId, created, canceled, compactRevision, cancelReason, fragment, events };
}

const NO_KEY_VALUE: WireKeyValue = decodeKeyValue(Buffer.alloc(0));

function decodeEvent(bytes: Uint8Array): WireEvent {
  const reader = new Reader(bytes);
  let type = 0;
  let kv = NO_KEY_VALUE;
  let previous: WireKeyValue | undefined;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) type = reader.int();
    else if (field === 2) kv = decodeKeyValue(reader.bytes());
    else if (field === 3) previous = decodeKeyValue(reader.bytes());
    else reader.skip();
  }
  return { type, kv, previous };
}
