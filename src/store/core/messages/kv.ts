/**
 * Encoding of `etcdserverpb.KV` requests and responses. Keys are latin1 strings (see wire/protobuf/protobuf.ts). A
 * range end of '' selects the single key, '\0' all keys from the key on. Revisions and versions are safe integers.
 * Lease IDs are bigints, because etcd's clients choose random 63-bit IDs. Source: etcd v3 rpc.proto and kv.proto.
 */
import { Reader, WireError, type Writer } from '../../../wire/protobuf/protobuf.ts';

export interface RangeRequest {
  readonly key: string;
  readonly end: string;
  /** 0 means no limit. */
  readonly limit: number;
  /** 0 or less means the current revision. */
  readonly revision: number;
  readonly sortOrder: number;
  readonly sortTarget: number;
  readonly serializable: boolean;
  readonly keysOnly: boolean;
  readonly countOnly: boolean;
  readonly minModRevision: number;
  readonly maxModRevision: number;
  readonly minCreateRevision: number;
  readonly maxCreateRevision: number;
}

export const SortOrder = { none: 0, ascend: 1, descend: 2 } as const;
export const SortTarget = { key: 0, version: 1, create: 2, mod: 3, value: 4 } as const;

export interface PutRequest {
  readonly key: string;
  readonly value: Uint8Array;
  readonly lease: bigint;
  readonly prevKv: boolean;
  readonly ignoreValue: boolean;
  readonly ignoreLease: boolean;
}

export interface DeleteRangeRequest {
  readonly key: string;
  readonly end: string;
  readonly prevKv: boolean;
}

export const CompareResult = { equal: 0, greater: 1, less: 2, notEqual: 3 } as const;
export const CompareTarget = { version: 0, create: 1, mod: 2, value: 3, lease: 4 } as const;

export interface Compare {
  readonly result: number;
  readonly target: number;
  readonly key: string;
  readonly end: string;
  /** Version, create revision or mod revision, depending on `target`. */
  readonly number: number;
  readonly value: Uint8Array;
  readonly lease: bigint;
}

export type RequestOp =
  | { readonly kind: 'range'; readonly range: RangeRequest }
  | { readonly kind: 'put'; readonly put: PutRequest }
  | { readonly kind: 'delete'; readonly delete: DeleteRangeRequest }
  | { readonly kind: 'txn'; readonly txn: TxnRequest };

export interface TxnRequest {
  readonly compares: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

const NOTHING = Buffer.alloc(0);
/** Transactions with deeper nesting are rejected while they are decoded. */
const MAX_DEPTH = 16;

export function decodeRangeRequest(bytes: Uint8Array): RangeRequest {
  const reader = new Reader(bytes);
  let key = '';
  let end = '';
  let limit = 0;
  let revision = 0;
  let sortOrder = 0;
  let sortTarget = 0;
  let serializable = false;
  let keysOnly = false;
  let countOnly = false;
  let minModRevision = 0;
  let maxModRevision = 0;
  let minCreateRevision = 0;
  let maxCreateRevision = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) end = reader.latin1();
    else if (field === 3) limit = reader.int();
    else if (field === 4) revision = reader.int();
    else if (field === 5) sortOrder = reader.int();
    else if (field === 6) sortTarget = reader.int();
    else if (field === 7) serializable = reader.bool();
    else if (field === 8) keysOnly = reader.bool();
    else if (field === 9) countOnly = reader.bool();
    else if (field === 10) minModRevision = reader.int();
    else if (field === 11) maxModRevision = reader.int();
    else if (field === 12) minCreateRevision = reader.int();
    else if (field === 13) maxCreateRevision = reader.int();
    else reader.skip();
  }
  return {
    key,
    end,
    limit,
    revision,
    sortOrder,
    sortTarget,
    serializable,
    keysOnly,
    countOnly,
    minModRevision,
    maxModRevision,
    minCreateRevision,
    maxCreateRevision,
  };
}

export function decodePutRequest(bytes: Uint8Array): PutRequest {
  const reader = new Reader(bytes);
  let key = '';
  let value: Uint8Array = NOTHING;
  let lease = 0n;
  let prevKv = false;
  let ignoreValue = false;
  let ignoreLease = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) value = reader.bytes();
    else if (field === 3) lease = reader.big();
    else if (field === 4) prevKv = reader.bool();
    else if (field === 5) ignoreValue = reader.bool();
    else if (field === 6) ignoreLease = reader.bool();
    else reader.skip();
  }
  return { key, value, lease, prevKv, ignoreValue, ignoreLease };
}

export function decodeDeleteRangeRequest(bytes: Uint8Array): DeleteRangeRequest {
  const reader = new Reader(bytes);
  let key = '';
  let end = '';
  let prevKv = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) end = reader.latin1();
    else if (field === 3) prevKv = reader.bool();
    else reader.skip();
  }
  return { key, end, prevKv };
}

export function decodeTxnRequest(bytes: Uint8Array, depth = 0): TxnRequest {
  if (depth > MAX_DEPTH) throw new WireError('transactions are nested too deeply');
  const reader = new Reader(bytes);
  const compares: Compare[] = [];
  const success: RequestOp[] = [];
  const failure: RequestOp[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) compares.push(decodeCompare(reader.bytes()));
    else if (field === 2) pushOp(success, reader.bytes(), depth);
    else if (field === 3) pushOp(failure, reader.bytes(), depth);
    else reader.skip();
  }
  return { compares, success, failure };
}

/** Whether a TxnRequest contains a put or a delete. Reads only the kinds of its operations. Throws WireError. */
export function txnWrites(bytes: Uint8Array, depth = 0): boolean {
  if (depth > MAX_DEPTH) throw new WireError('transactions are nested too deeply');
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field !== 2 && field !== 3) reader.skip();
    else if (operationWrites(reader.bytes(), depth)) return true;
  }
  return false;
}

function operationWrites(bytes: Uint8Array, depth: number): boolean {
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2 || field === 3) return true;
    if (field !== 4) reader.skip();
    else if (txnWrites(reader.bytes(), depth + 1)) return true;
  }
  return false;
}

function pushOp(into: RequestOp[], bytes: Uint8Array, depth: number): void {
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) into.push({ kind: 'range', range: decodeRangeRequest(reader.bytes()) });
    else if (field === 2) into.push({ kind: 'put', put: decodePutRequest(reader.bytes()) });
    else if (field === 3) into.push({ kind: 'delete', delete: decodeDeleteRangeRequest(reader.bytes()) });
    else if (field === 4) into.push({ kind: 'txn', txn: decodeTxnRequest(reader.bytes(), depth + 1) });
    else reader.skip();
  }
}

function decodeCompare(bytes: Uint8Array): Compare {
  const reader = new Reader(bytes);
  let result = 0;
  let target = 0;
  let key = '';
  let end = '';
  let number = 0;
  let value: Uint8Array = NOTHING;
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) result = reader.int();
    else if (field === 2) target = reader.int();
    else if (field === 3) key = reader.latin1();
    else if (field === 4 || field === 5 || field === 6) number = reader.int();
    else if (field === 7) value = reader.bytes();
    else if (field === 8) lease = reader.big();
    else if (field === 64) end = reader.latin1();
    else reader.skip();
  }
  return { result, target, key, end, number, value, lease };
}

export function writeRangeRequest(writer: Writer, request: Partial<RangeRequest> & { readonly key: string }): Writer {
  return writer
    .latin1(1, request.key)
    .latin1(2, request.end ?? '')
    .int(3, request.limit ?? 0)
    .int(4, request.revision ?? 0)
    .int(5, request.sortOrder ?? 0)
    .int(6, request.sortTarget ?? 0)
    .bool(8, request.keysOnly ?? false)
    .bool(9, request.countOnly ?? false)
    .int(10, request.minModRevision ?? 0)
    .int(11, request.maxModRevision ?? 0)
    .int(12, request.minCreateRevision ?? 0)
    .int(13, request.maxCreateRevision ?? 0);
}

export function writePutRequest(writer: Writer, request: Partial<PutRequest> & { readonly key: string }): Writer {
  writer.latin1(1, request.key);
  if (request.value !== undefined) writer.bytes(2, request.value);
  return writer
    .big(3, request.lease ?? 0n)
    .bool(4, request.prevKv ?? false)
    .bool(5, request.ignoreValue ?? false)
    .bool(6, request.ignoreLease ?? false);
}

export function writeDeleteRangeRequest(
  writer: Writer,
  request: Partial<DeleteRangeRequest> & { readonly key: string },
): Writer {
  return writer
    .latin1(1, request.key)
    .latin1(2, request.end ?? '')
    .bool(3, request.prevKv ?? false);
}

/**
 * Writes field 1 of a TxnRequest: the mod revision of `key` equals `revision`, where 0 means that the key does not
 * exist.
 */
export function writeModRevisionCompare(writer: Writer, key: string, revision: number): Writer {
  return writeRevisionCompare(writer, CompareTarget.mod, 6, key, revision);
}

/** Like `writeModRevisionCompare`, for the create revision. */
export function writeCreateRevisionCompare(writer: Writer, key: string, revision: number): Writer {
  return writeRevisionCompare(writer, CompareTarget.create, 5, key, revision);
}

function writeRevisionCompare(writer: Writer, target: number, field: number, key: string, revision: number): Writer {
  const mark = writer.begin(1);
  writer.int(2, target).latin1(3, key);
  // A union field must be present even if its value is zero.
  writer.varint(field * 8).varint(revision);
  return writer.end(mark);
}

/** Writes one operation. `branch` is the field number of the list: 2 for success, 3 for failure. */
export function writeOperation(
  writer: Writer,
  branch: 2 | 3,
  kind: 'range' | 'put' | 'delete',
  write: (writer: Writer) => void,
): Writer {
  const operation = writer.begin(branch);
  const mark = writer.begin(kind === 'range' ? 1 : kind === 'put' ? 2 : 3);
  write(writer);
  return writer.end(mark).end(operation);
}

/** A decoded `mvccpb.KeyValue`. The value is a view on the received bytes. */
export interface WireKeyValue {
  readonly key: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  readonly value: Buffer;
  readonly lease: bigint;
}

export function decodeKeyValue(bytes: Uint8Array): WireKeyValue {
  const reader = new Reader(bytes);
  let key = '';
  let createRevision = 0;
  let modRevision = 0;
  let version = 0;
  let value: Buffer = NOTHING;
  let lease = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) key = reader.latin1();
    else if (field === 2) createRevision = reader.int();
    else if (field === 3) modRevision = reader.int();
    else if (field === 4) version = reader.int();
    else if (field === 5) value = reader.bytes();
    else if (field === 6) lease = reader.big();
    else reader.skip();
  }
  return { key, createRevision, modRevision, version, value, lease };
}

export interface WireRangeResponse {
  readonly revision: number;
  readonly kvs: readonly WireKeyValue[];
  readonly more: boolean;
  readonly count: number;
}

export function decodeRangeResponse(bytes: Uint8Array): WireRangeResponse {
  const reader = new Reader(bytes);
  const kvs: WireKeyValue[] = [];
  let revision = 0;
  let more = false;
  let count = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) revision = decodeHeader(reader.bytes());
    else if (field === 2) kvs.push(decodeKeyValue(reader.bytes()));
    else if (field === 3) more = reader.bool();
    else if (field === 4) count = reader.int();
    else reader.skip();
  }
  return { revision, kvs, more, count };
}

export interface WireTxnResponse {
  readonly revision: number;
  readonly succeeded: boolean;
  /** Responses of range operations only. */
  readonly ranges: readonly WireRangeResponse[];
}

export function decodeTxnResponse(bytes: Uint8Array): WireTxnResponse {
  const reader = new Reader(bytes);
  const ranges: WireRangeResponse[] = [];
  let revision = 0;
  let succeeded = false;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) revision = decodeHeader(reader.bytes());
    else if (field === 2) succeeded = reader.bool();
    else if (field === 3) {
      const op = new Reader(reader.bytes());
      for (let inner = op.field(); inner !== 0; inner = op.field()) {
        if (inner === 1) ranges.push(decodeRangeResponse(op.bytes()));
        else op.skip();
      }
    } else reader.skip();
  }
  return { revision, succeeded, ranges };
}

/** Reads the revision of a ResponseHeader. */
export function decodeHeader(bytes: Uint8Array): number {
  const reader = new Reader(bytes);
  let revision = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) revision = reader.int();
    else reader.skip();
  }
  return revision;
}
