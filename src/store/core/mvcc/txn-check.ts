import {
  type DeleteRangeRequest,
  type PutRequest,
  type RangeRequest,
  type RequestOp,
  SortOrder,
  SortTarget,
  type TxnRequest,
} from '../messages/kv.ts';
import { MvccError } from './errors.ts';

/** etcd's default limit of the operations in one list of a transaction (`--max-txn-ops`). */
const MAX_OPERATIONS = 128;

export function checkRange(request: RangeRequest): void {
  if (request.key.length === 0) throw new MvccError('empty-key');
  if (request.sortOrder < 0 || request.sortOrder > SortOrder.descend) throw new MvccError('invalid-sort');
  if (request.sortTarget < 0 || request.sortTarget > SortTarget.value) throw new MvccError('invalid-sort');
}

export function checkPut(request: PutRequest): void {
  if (request.key.length === 0) throw new MvccError('empty-key');
  if (request.ignoreValue && request.value.length > 0) throw new MvccError('value-provided');
  if (request.ignoreLease && request.lease !== 0n) throw new MvccError('lease-provided');
}

export function checkDelete(request: DeleteRangeRequest): void {
  if (request.key.length === 0) throw new MvccError('empty-key');
}

/**
 * Validates a transaction as far as that is independent of the store's content. Source: etcd
 * server/etcdserver/api/v3rpc/key.go.
 */
export function checkTxn(request: TxnRequest, maxOperations = MAX_OPERATIONS): void {
  checkShape(request, maxOperations);
  // The common case of a single put needs no comparison of intervals.
  if (request.success.length > 1 || hasNested(request.success)) writesOf(request.success);
  if (request.failure.length > 1 || hasNested(request.failure)) writesOf(request.failure);
}

function hasNested(operations: readonly RequestOp[]): boolean {
  return operations.some((operation) => operation.kind === 'txn');
}

function checkShape(request: TxnRequest, maxOperations: number): void {
  const most = Math.max(request.compares.length, request.success.length, request.failure.length);
  if (most > maxOperations) throw new MvccError('too-many-operations');
  for (const compare of request.compares) if (compare.key.length === 0) throw new MvccError('empty-key');
  for (const operations of [request.success, request.failure]) {
    for (const operation of operations) {
      if (operation.kind === 'put') checkPut(operation.put);
      else if (operation.kind === 'range') checkRange(operation.range);
      else if (operation.kind === 'delete') checkDelete(operation.delete);
      else checkShape(operation.txn, maxOperations);
    }
  }
}

interface Writes {
  readonly puts: Set<string>;
  readonly deletes: Interval[];
}

interface Interval {
  readonly start: string;
  /** Exclusive end; undefined if unbounded. */
  readonly end: string | undefined;
}

/**
 * Keys that a list of operations may write. Throws 'duplicate-key' if a key could be written twice. The branches of a
 * nested transaction may overlap, because only one of them is executed.
 */
function writesOf(operations: readonly RequestOp[]): Writes {
  const puts = new Set<string>();
  const deletes: Interval[] = [];
  for (const operation of operations) {
    if (operation.kind === 'delete') deletes.push(intervalOf(operation.delete.key, operation.delete.end));
  }
  // Nested transactions come first, as in etcd: their puts must not overlap with the sibling deletes, and their deletes
  // must not overlap with the sibling puts.
  for (const operation of operations) {
    if (operation.kind !== 'txn') continue;
    const success = writesOf(operation.txn.success);
    const failure = writesOf(operation.txn.failure);
    for (const key of [...success.puts, ...failure.puts]) {
      if (puts.has(key) || covered(deletes, key)) throw new MvccError('duplicate-key');
    }
    for (const key of [...success.puts, ...failure.puts]) puts.add(key);
    deletes.push(...success.deletes, ...failure.deletes);
  }
  for (const operation of operations) {
    if (operation.kind !== 'put') continue;
    const { key } = operation.put;
    if (puts.has(key) || covered(deletes, key)) throw new MvccError('duplicate-key');
    puts.add(key);
  }
  return { puts, deletes };
}

function covered(intervals: readonly Interval[], key: string): boolean {
  return intervals.some(({ start, end }) => key >= start && (end === undefined || key < end));
}

/** Interval of a key and etcd's range end. */
export function intervalOf(key: string, end: string): Interval {
  if (end === '') return { start: key, end: `${key}\0` };
  return { start: key, end: end === '\0' ? undefined : end };
}
