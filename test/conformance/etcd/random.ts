/** Random requests from a seed. */
import type { Draft } from './messages.ts';

const KEYS = ['a', 'b', 'b\0', 'c', 'd', 'e', 'f'];
const LEASES = [11n, 12n, 13n];

export type Operation =
  | { readonly call: 'put'; readonly request: Draft<'PutRequest'> }
  | { readonly call: 'range'; readonly request: Draft<'RangeRequest'> }
  | { readonly call: 'delete'; readonly request: Draft<'DeleteRangeRequest'> }
  | { readonly call: 'txn'; readonly request: Draft<'TxnRequest'> }
  | { readonly call: 'compact'; readonly revision: number }
  | { readonly call: 'grant' | 'revoke' | 'timeToLive'; readonly id: bigint };

export class Choices {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }

  /** An integer in [0, below) (mulberry32). */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  }

  one<T>(of: readonly T[]): T {
    return of[this.below(of.length)] as T;
  }

  chance(one: number): boolean {
    return this.below(one) === 0;
  }
}

/** `revision` is approximately the store's newest revision. */
export function operation(choices: Choices, revision: number): Operation {
  const kind = choices.below(100);
  if (kind < 25) return { call: 'put', request: put(choices, true) };
  if (kind < 45) return { call: 'range', request: range(choices, revision) };
  if (kind < 52) return { call: 'delete', request: remove(choices) };
  if (kind < 88) return { call: 'txn', request: txn(choices, revision, 0) };
  if (kind < 90) return { call: 'compact', revision: Math.max(1, revision - choices.below(12) + 1) };
  const call = kind < 95 ? 'grant' : kind < 97 ? 'revoke' : 'timeToLive';
  return { call, id: choices.one(LEASES) };
}

function put(choices: Choices, alone: boolean): Draft<'PutRequest'> {
  const request = { key: choices.one(KEYS), value: choices.one(['', 'x', 'y', 'zz']), prev_kv: choices.chance(3) };
  const lease = choices.chance(3) ? choices.one(LEASES) : 0n;
  // The order in which two errors are reported differs between etcd's Put and Txn, so a request has one error at most.
  if (choices.chance(8)) return { ...request, value: '', ignore_value: true };
  if (choices.chance(8)) return { ...request, ignore_lease: true };
  if (alone && choices.chance(40)) return { ...request, value: 'x', ignore_value: true };
  return { ...request, lease };
}

function end(choices: Choices, fromKey: boolean): string {
  return choices.one(['', '', fromKey ? '\0' : 'g', choices.one(KEYS)]);
}

function remove(choices: Choices): Draft<'DeleteRangeRequest'> {
  return { key: choices.one(KEYS), range_end: end(choices, false), prev_kv: choices.chance(2) };
}

function range(choices: Choices, revision: number): Draft<'RangeRequest'> {
  const near = (): number => Math.max(1, revision - choices.below(15));
  const some = <T>(one: number, value: T, otherwise: T): T => (choices.chance(one) ? value : otherwise);
  return {
    key: choices.one(KEYS),
    range_end: end(choices, true),
    limit: some(3, choices.below(4), 0),
    revision: some(3, near() + choices.below(3), 0),
    sort_order: choices.below(3),
    sort_target: choices.below(5),
    serializable: choices.chance(4),
    keys_only: choices.chance(5),
    count_only: choices.chance(8),
    min_mod_revision: some(8, near(), 0),
    max_mod_revision: some(8, near(), 0),
    min_create_revision: some(8, near(), 0),
    max_create_revision: some(8, near(), 0),
  };
}

function compare(choices: Choices, revision: number): Draft<'Compare'> {
  const near = Math.max(0, revision - choices.below(8));
  const base = { key: choices.one(KEYS), range_end: end(choices, true), result: choices.below(4) };
  return choices.one<Draft<'Compare'>>([
    { ...base, target: 0, version: choices.below(4) },
    { ...base, target: 1, create_revision: choices.one([0, near]) },
    { ...base, target: 2, mod_revision: choices.one([0, near]) },
    { ...base, target: 3, value: choices.one(['', 'x', 'y']) },
    { ...base, target: 4, lease: choices.one([0n, ...LEASES]) },
  ]);
}

function txn(choices: Choices, revision: number, depth: number): Draft<'TxnRequest'> {
  const operations = (): Draft<'RequestOp'>[] =>
    Array.from({ length: choices.below(4) }, () => {
      const kind = choices.below(depth < 2 ? 8 : 7);
      if (kind < 3) return { request_put: put(choices, false) };
      if (kind < 5) return { request_range: range(choices, revision) };
      if (kind < 7) return { request_delete_range: remove(choices) };
      return { request_txn: txn(choices, revision, depth + 1) };
    });
  const compares = Array.from({ length: choices.below(3) }, () => compare(choices, revision));
  return { compare: compares, success: operations(), failure: operations() };
}
