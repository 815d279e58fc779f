/**
 * Simple implementation of etcd's transaction semantics: the whole state is copied for every revision, and every
 * request searches all of it.
 */
import {
  type Compare,
  CompareResult,
  CompareTarget,
  type RangeRequest,
  type RequestOp,
  SortOrder,
  SortTarget,
  type TxnRequest,
} from '../../../../src/store/core/messages/kv.ts';

export interface Entry {
  readonly key: string;
  readonly value: string;
  readonly create: number;
  readonly mod: number;
  readonly version: number;
}

export type State = ReadonlyMap<string, Entry>;

export type OracleAnswer =
  | { readonly kind: 'range'; readonly entries: readonly Entry[]; readonly more: boolean; readonly count: number }
  | { readonly kind: 'put'; readonly previous: Entry | undefined }
  | { readonly kind: 'delete'; readonly deleted: number; readonly previous: readonly Entry[] }
  | { readonly kind: 'txn'; readonly succeeded: boolean; readonly answers: readonly OracleAnswer[] };

export interface OracleEvent {
  readonly revision: number;
  readonly type: 'put' | 'delete';
  readonly key: string;
  readonly value: string;
  readonly previous: string | undefined;
}

const within = (key: string, start: string, end: string): boolean =>
  end === '' ? key === start : key >= start && (end === '\0' || key < end);

export class Oracle {
  /** States of all keys by revision. */
  readonly states: State[] = [new Map(), new Map()];
  readonly events: OracleEvent[] = [];

  get revision(): number {
    return this.states.length - 1;
  }

  txn(request: TxnRequest): Extract<OracleAnswer, { kind: 'txn' }> {
    const before = this.states[this.revision] as State;
    const state = new Map(before);
    const events: OracleEvent[] = [];
    const answer = this.#apply(request, before, state, events);
    if (events.length > 0) {
      this.states.push(state);
      this.events.push(...events);
    }
    return answer;
  }

  /** Removes revisions after `revision`. */
  rollBack(revision: number): void {
    this.states.length = revision + 1;
    while ((this.events.at(-1)?.revision ?? 0) > revision) this.events.pop();
  }

  range(request: RangeRequest, state: State): Extract<OracleAnswer, { kind: 'range' }> {
    const all = [...state.values()].filter((e) => within(e.key, request.key, request.end)).sort(by((e) => e.key));
    const count = all.length;
    let entries = all.filter(
      (e) =>
        (request.minModRevision === 0 || e.mod >= request.minModRevision) &&
        (request.maxModRevision === 0 || e.mod <= request.maxModRevision) &&
        (request.minCreateRevision === 0 || e.create >= request.minCreateRevision) &&
        (request.maxCreateRevision === 0 || e.create <= request.maxCreateRevision),
    );
    const filtered = [
      request.minModRevision,
      request.maxModRevision,
      request.minCreateRevision,
      request.maxCreateRevision,
    ];
    // etcd applies the limit before it sorts if no order is given.
    if (request.sortOrder === SortOrder.none && filtered.every((revision) => revision === 0) && request.limit > 0) {
      entries = entries.slice(0, request.limit + 1);
    }
    const field: Record<number, (e: Entry) => string | number> = {
      [SortTarget.key]: (e) => e.key,
      [SortTarget.version]: (e) => e.version,
      [SortTarget.create]: (e) => e.create,
      [SortTarget.mod]: (e) => e.mod,
      [SortTarget.value]: (e) => e.value,
    };
    const target = field[request.sortTarget] ?? ((e: Entry) => e.key);
    if (request.sortOrder !== SortOrder.none || request.sortTarget !== SortTarget.key) entries.sort(by(target));
    if (request.sortOrder === SortOrder.descend) {
      entries.sort((a, b) => -by(target)(a, b));
    }
    const more = request.limit > 0 && entries.length > request.limit;
    if (more) entries = entries.slice(0, request.limit);
    if (request.countOnly) entries = [];
    return { kind: 'range', entries, more: more && !request.countOnly, count };
  }

  #apply(
    request: TxnRequest,
    before: State,
    state: Map<string, Entry>,
    events: OracleEvent[],
  ): Extract<OracleAnswer, { kind: 'txn' }> {
    const succeeded = request.compares.every((compare) => compareAll(compare, before));
    const answers = (succeeded ? request.success : request.failure).map((op) =>
      this.#operation(op, before, state, events),
    );
    return { kind: 'txn', succeeded, answers };
  }

  #operation(op: RequestOp, before: State, state: Map<string, Entry>, events: OracleEvent[]): OracleAnswer {
    const revision = this.revision + 1;
    if (op.kind === 'txn') return this.#apply(op.txn, before, state, events);
    if (op.kind === 'range') {
      const at = op.range.revision > 0 ? (this.states[op.range.revision] as State) : state;
      return this.range(op.range, at);
    }
    if (op.kind === 'put') {
      const { key, value } = op.put;
      const previous = state.get(key);
      const text = Buffer.from(value).toString();
      const version = (previous?.version ?? 0) + 1;
      state.set(key, { key, value: text, create: previous?.create ?? revision, mod: revision, version });
      events.push({ revision, type: 'put', key, value: text, previous: previous?.value });
      return { kind: 'put', previous };
    }
    const gone = [...state.values()].filter((e) => within(e.key, op.delete.key, op.delete.end)).sort(by((e) => e.key));
    for (const { key, value } of gone) {
      state.delete(key);
      events.push({ revision, type: 'delete', key, value: '', previous: value });
    }
    return { kind: 'delete', deleted: gone.length, previous: gone };
  }
}

function compareAll(compare: Compare, state: State): boolean {
  const entries = [...state.values()].filter((e) => within(e.key, compare.key, compare.end));
  if (entries.length === 0) return compareOne(compare, undefined);
  return entries.every((entry) => compareOne(compare, entry));
}

function compareOne(compare: Compare, entry: Entry | undefined): boolean {
  if (compare.target === CompareTarget.value && entry === undefined) return false;
  const pairs: Record<number, readonly [number | string, number | string]> = {
    [CompareTarget.version]: [entry?.version ?? 0, compare.number],
    [CompareTarget.create]: [entry?.create ?? 0, compare.number],
    [CompareTarget.mod]: [entry?.mod ?? 0, compare.number],
    [CompareTarget.value]: [entry?.value ?? '', Buffer.from(compare.value).toString()],
    [CompareTarget.lease]: [0, Number(compare.lease)],
  };
  const [actual, wanted] = pairs[compare.target] as readonly [number, number];
  if (compare.result === CompareResult.equal) return actual === wanted;
  if (compare.result === CompareResult.greater) return actual > wanted;
  if (compare.result === CompareResult.less) return actual < wanted;
  return actual !== wanted;
}

function by<T>(field: (item: T) => string | number): (a: T, b: T) => number {
  return (a, b) => (field(a) < field(b) ? -1 : field(a) > field(b) ? 1 : 0);
}
