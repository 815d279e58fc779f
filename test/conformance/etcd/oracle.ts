/**
 * A simple model of etcd as an oracle: it copies the whole state for every revision and scans it for every request.
 * Results have the form of the wire messages without headers.
 */
import type { Draft, Message } from './messages.ts';

type KeyValue = Message<'KeyValue'>;
type State = ReadonlyMap<string, KeyValue>;
export interface OracleEvent {
  readonly type: number;
  readonly kv: KeyValue;
  readonly prev_kv: KeyValue | undefined;
}

export class Refusal extends Error {}

const FUTURE = 'etcdserver: mvcc: required revision is a future revision';
const COMPACTED = 'etcdserver: mvcc: required revision has been compacted';
const NO_LEASE = 'etcdserver: requested lease not found';
const NO_KEY = 'etcdserver: key not found';
const DUPLICATE = 'etcdserver: duplicate key given in txn request';

const byKey = (a: KeyValue, b: KeyValue): number => (a.key < b.key ? -1 : 1);
const within = (key: string, start = '', end = ''): boolean =>
  end === '' ? key === start : key >= start && (end === '\0' || key < end);

export class Oracle {
  /** The index is the revision. */
  readonly #states: State[] = [new Map(), new Map()];
  readonly events: OracleEvent[] = [];
  readonly #leases = new Set<bigint>();
  compacted = 0;
  #draft = new Map<string, KeyValue>();
  #written: OracleEvent[] = [];

  get revision(): number {
    return this.#states.length - 1;
  }

  grant(id: bigint): void {
    if (this.#leases.has(id)) throw new Refusal('etcdserver: lease already exists');
    this.#leases.add(id);
  }

  revoke(id: bigint): void {
    if (!this.#leases.delete(id)) throw new Refusal(NO_LEASE);
    const keys = this.#attached(id);
    this.#write(() => {
      for (const key of keys) this.#delete({ key });
    });
  }

  /** Keys of a lease; undefined if it does not exist. */
  keysOf(id: bigint): string[] | undefined {
    return this.#leases.has(id) ? this.#attached(id) : undefined;
  }

  compact(revision: number): void {
    if (revision <= this.compacted) throw new Refusal(COMPACTED);
    if (revision > this.revision) throw new Refusal(FUTURE);
    this.compacted = revision;
  }

  put(request: Draft<'PutRequest'>): unknown {
    if (request.ignore_value && (request.value ?? '') !== '') throw new Refusal('etcdserver: value is provided');
    if (request.ignore_lease && (request.lease ?? 0n) !== 0n) throw new Refusal('etcdserver: lease is provided');
    this.#checkPut(request);
    return this.#write(() => this.#put(request));
  }

  delete(request: Draft<'DeleteRangeRequest'>): unknown {
    return this.#write(() => this.#delete(request));
  }

  range(request: Draft<'RangeRequest'>): unknown {
    this.#checkRange(request);
    return this.#range(request, this.#states[this.revision] as State);
  }

  txn(request: Draft<'TxnRequest'>): unknown {
    collectWrites(request.success ?? []);
    collectWrites(request.failure ?? []);
    const path = this.#path(request, this.#states[this.revision] as State);
    for (const { request_put } of path.all) if (request_put) this.#checkPut(request_put);
    for (const { request_range } of path.all) if (request_range) this.#checkRange(request_range);
    return this.#write(() => this.#follow(path));
  }

  #write<T>(work: () => T): T {
    this.#draft = new Map(this.#states[this.revision]);
    this.#written = [];
    const answer = work();
    if (this.#written.length > 0) {
      this.#states.push(this.#draft);
      this.events.push(...this.#written);
    }
    return answer;
  }

  #attached(id: bigint): string[] {
    const state = [...(this.#states[this.revision] as State).values()];
    return state
      .filter((kv) => kv.lease === id)
      .map((kv) => kv.key)
      .sort();
  }

  #checkPut(put: Draft<'PutRequest'>): void {
    const exists = (this.#states[this.revision] as State).has(put.key ?? '');
    if ((put.ignore_value || put.ignore_lease) && !exists) throw new Refusal(NO_KEY);
    if ((put.lease ?? 0n) !== 0n && !this.#leases.has(put.lease as bigint)) throw new Refusal(NO_LEASE);
  }

  #checkRange({ revision = 0 }: Draft<'RangeRequest'>): void {
    if (revision > this.revision) throw new Refusal(FUTURE);
    if (revision > 0 && revision < this.compacted) throw new Refusal(COMPACTED);
  }

  #put(put: Draft<'PutRequest'>): unknown {
    const key = put.key ?? '';
    const before = this.#draft.get(key);
    const revision = this.revision + 1;
    const kv: KeyValue = {
      key,
      create_revision: before?.create_revision ?? revision,
      mod_revision: revision,
      version: (before?.version ?? 0) + 1,
      value: put.ignore_value ? (before?.value ?? '') : (put.value ?? ''),
      lease: put.ignore_lease ? (before?.lease ?? 0n) : (put.lease ?? 0n),
    };
    this.#draft.set(key, kv);
    this.#written.push({ type: 0, kv, prev_kv: this.#states[this.revision]?.get(key) });
    return { prev_kv: put.prev_kv ? before : undefined };
  }

  #delete(request: Draft<'DeleteRangeRequest'>): unknown {
    const gone = [...this.#draft.values()].filter((kv) => within(kv.key, request.key, request.range_end)).sort(byKey);
    for (const before of gone) {
      this.#draft.delete(before.key);
      const kv: KeyValue = {
        key: before.key,
        create_revision: 0,
        mod_revision: this.revision + 1,
        version: 0,
        value: '',
        lease: 0n,
      };
      this.#written.push({ type: 1, kv, prev_kv: this.#states[this.revision]?.get(before.key) });
    }
    return { deleted: gone.length, prev_kvs: request.prev_kv ? gone : [] };
  }

  #range(request: Draft<'RangeRequest'>, now: State): unknown {
    const state = (request.revision ?? 0) > 0 ? (this.#states[request.revision as number] as State) : now;
    let kvs = [...state.values()].filter((kv) => within(kv.key, request.key, request.range_end)).sort(byKey);
    const count = kvs.length;
    const between = (value: number, least = 0, most = 0): boolean =>
      (least === 0 || value >= least) && (most === 0 || value <= most);
    kvs = kvs.filter(
      (kv) =>
        between(kv.mod_revision, request.min_mod_revision, request.max_mod_revision) &&
        between(kv.create_revision, request.min_create_revision, request.max_create_revision),
    );
    const limit = request.limit ?? 0;
    const filters = [
      request.min_mod_revision,
      request.max_mod_revision,
      request.min_create_revision,
      request.max_create_revision,
    ];
    // If no order is given, etcd applies the limit before it sorts.
    if ((request.sort_order ?? 0) === 0 && limit > 0 && filters.every((revision) => (revision ?? 0) === 0)) {
      kvs = kvs.slice(0, limit + 1);
    }
    const field = (['key', 'version', 'create_revision', 'mod_revision', 'value'] as const)[request.sort_target ?? 0];
    const sign = request.sort_order === 2 ? -1 : 1;
    if (field !== undefined && (field !== 'key' || (request.sort_order ?? 0) !== 0)) {
      kvs.sort((a, b) => (a[field] < b[field] ? -sign : a[field] > b[field] ? sign : 0));
    }
    if (request.count_only) kvs = [];
    const more = limit > 0 && kvs.length > limit;
    if (more) kvs = kvs.slice(0, limit);
    return { kvs: kvs.map((kv) => (request.keys_only ? { ...kv, value: '' } : kv)), more, count };
  }

  #path(request: Draft<'TxnRequest'>, state: State): Path {
    const succeeded = (request.compare ?? []).every((compare) => holds(compare, state));
    const all: Draft<'RequestOp'>[] = [];
    const steps = ((succeeded ? request.success : request.failure) ?? []).map((op): Path | Draft<'RequestOp'> => {
      if (op.request_txn === undefined) {
        all.push(op);
        return op;
      }
      const path = this.#path(op.request_txn, state);
      all.push(...path.all);
      return path;
    });
    return { succeeded, steps, all };
  }

  #follow(path: Path): unknown {
    const responses = path.steps.map((step) => {
      if ('steps' in step) return { response_txn: this.#follow(step) };
      if (step.request_put) return { response_put: this.#put(step.request_put) };
      if (step.request_range) return { response_range: this.#range(step.request_range, this.#draft) };
      return { response_delete_range: this.#delete(step.request_delete_range ?? {}) };
    });
    return { succeeded: path.succeeded, responses };
  }
}

interface Path {
  readonly succeeded: boolean;
  readonly steps: ReadonlyArray<Path | Draft<'RequestOp'>>;
  readonly all: ReadonlyArray<Draft<'RequestOp'>>;
}

function holds(compare: Draft<'Compare'>, state: State): boolean {
  const kvs = [...state.values()].filter((kv) => within(kv.key, compare.key, compare.range_end));
  const field = (['version', 'create_revision', 'mod_revision', 'value', 'lease'] as const)[compare.target ?? 0];
  if (field === undefined) return false;
  const one = (kv: KeyValue | undefined): boolean => {
    if (kv === undefined && field === 'value') return false;
    const actual = kv?.[field] ?? (field === 'lease' ? 0n : 0);
    const wanted = compare[field] ?? (field === 'lease' ? 0n : field === 'value' ? '' : 0);
    return [actual === wanted, actual > wanted, actual < wanted, actual !== wanted][compare.result ?? 0] as boolean;
  };
  return kvs.length === 0 ? one(undefined) : kvs.every(one);
}

interface Writes {
  readonly puts: string[];
  readonly deletes: Draft<'DeleteRangeRequest'>[];
}

/** Writes of a branch. Throws if a key could be written twice. */
function collectWrites(operations: ReadonlyArray<Draft<'RequestOp'>>): Writes {
  const puts: string[] = [];
  const deletes = operations.flatMap((op) => op.request_delete_range ?? []);
  const add = (keys: readonly string[]): void => {
    for (const key of keys) {
      if (puts.includes(key) || deletes.some((range) => within(key, range.key, range.range_end))) {
        throw new Refusal(DUPLICATE);
      }
    }
    puts.push(...keys);
  };
  for (const { request_txn } of operations) {
    if (request_txn === undefined) continue;
    const [yes, no] = [collectWrites(request_txn.success ?? []), collectWrites(request_txn.failure ?? [])];
    add([...new Set([...yes.puts, ...no.puts])]);
    deletes.push(...yes.deletes, ...no.deletes);
  }
  for (const { request_put } of operations) if (request_put) add([request_put.key ?? '']);
  return { puts, deletes };
}
