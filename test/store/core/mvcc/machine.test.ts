import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { splitEvents } from '../../../../src/store/core/messages/event.ts';
import {
  type Compare,
  decodeKeyValue,
  type RangeRequest,
  type RequestOp,
  type TxnRequest,
} from '../../../../src/store/core/messages/kv.ts';
import { MvccError } from '../../../../src/store/core/mvcc/errors.ts';
import {
  type Answer,
  type DecidedRevision,
  type Decision,
  Machine,
  ValuesNeeded,
} from '../../../../src/store/core/mvcc/machine.ts';
import { checkTxn } from '../../../../src/store/core/mvcc/txn-check.ts';
import { isDelete, type Version } from '../../../../src/store/core/mvcc/version.ts';
import { Reader } from '../../../../src/wire/protobuf/protobuf.ts';
import { type Entry, Oracle, type OracleAnswer } from './oracle.ts';

/** Small seeded generator (mulberry32). */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

const KEYS = 'abcdefgh';

/** The machine with a map as its log, from which dropped values can be read. */
class Rig {
  readonly machine: Machine;
  readonly log = new Map<number, Buffer>();

  constructor(cacheBytes: number) {
    this.machine = new Machine({ currentBytes: cacheBytes, pastBytes: cacheBytes });
  }

  /** Repeats `work` with the values that it needs. */
  with<T>(work: (pinned: Map<Version, Buffer>) => T): T {
    const pinned = new Map<Version, Buffer>();
    for (;;) {
      try {
        return work(pinned);
      } catch (error) {
        if (!(error instanceof ValuesNeeded)) throw error;
        for (const version of error.versions) {
          const event = splitEvents(this.log.get(version.revision) as Buffer).find((e) => e.key === version.key);
          assert.ok(event, 'a value that is asked for is in the log');
          pinned.set(version, event.kv);
          this.machine.refill(version, event.kv);
        }
      }
    }
  }

  decide(request: TxnRequest): Decision {
    return this.with((pinned) => this.machine.decide(request, pinned));
  }

  store(decided: DecidedRevision): void {
    this.log.set(decided.revision, Buffer.concat(decided.changes.map((change) => change.field)));
    this.machine.stored(decided.revision);
  }

  kv(version: Version): Buffer {
    const event = splitEvents(this.log.get(version.revision) as Buffer).find((e) => e.key === version.key);
    return version.kv ?? (event?.kv as Buffer);
  }
}

function range(random: (below: number) => number, revision: number): RangeRequest {
  const some = (chance: number, value: number): number => (random(chance) === 0 ? value : 0);
  return {
    key: KEYS[random(KEYS.length)] as string,
    end: ['', '\0', KEYS[random(KEYS.length)] as string][random(3)] as string,
    limit: some(3, random(4)),
    revision: some(4, revision),
    sortOrder: random(3),
    sortTarget: random(5),
    serializable: false,
    keysOnly: random(4) === 0,
    countOnly: random(5) === 0,
    minModRevision: some(6, revision - random(5)),
    maxModRevision: some(6, revision),
    minCreateRevision: some(6, random(revision + 1)),
    maxCreateRevision: some(6, revision),
  };
}

function compare(random: (below: number) => number, revision: number): Compare {
  return {
    result: random(4),
    target: random(5),
    key: KEYS[random(KEYS.length)] as string,
    end: random(4) === 0 ? '\0' : '',
    number: [0, 1, 2, revision][random(4)] as number,
    value: Buffer.from(`v${random(40)}`),
    lease: 0n,
  };
}

function txn(random: (below: number) => number, oracle: Oracle, oldest: number, depth = 0): TxnRequest {
  const revision = oldest + random(oracle.revision - oldest + 1);
  const operation = (): RequestOp => {
    const kind = random(depth < 2 ? 7 : 6);
    if (kind < 3) {
      const value = Buffer.from(`v${random(40)}`);
      const put = {
        key: KEYS[random(8)] as string,
        value,
        lease: 0n,
        prevKv: random(3) === 0,
        ignoreValue: false,
        ignoreLease: false,
      };
      return { kind: 'put', put };
    }
    if (kind === 3) {
      const end = ['', KEYS[random(8)] as string][random(2)] as string;
      return { kind: 'delete', delete: { key: KEYS[random(8)] as string, end, prevKv: random(2) === 0 } };
    }
    if (kind < 6) return { kind: 'range', range: range(random, revision) };
    return { kind: 'txn', txn: txn(random, oracle, oldest, depth + 1) };
  };
  const list = (most: number): RequestOp[] => Array.from({ length: random(most) }, operation);
  const compares = Array.from({ length: random(3) }, () => compare(random, revision));
  return { compares, success: list(5), failure: list(4) };
}

const asEntry = (kv: Buffer): Entry => {
  const reader = new Reader(kv);
  assert.equal(reader.field(), 2);
  const { key, value, createRevision, modRevision, version } = decodeKeyValue(reader.bytes());
  return { key, value: value.toString(), create: createRevision, mod: modRevision, version };
};

/** Compares two responses. Equal sort keys may come in any order, so sorted ranges are compared as sets. */
function same(actual: Answer, expected: OracleAnswer, request: RequestOp | { kind: 'txn'; txn: TxnRequest }): void {
  assert.equal(actual.kind, expected.kind);
  if (actual.kind === 'put' && expected.kind === 'put') {
    if (request.kind === 'put' && request.put.prevKv) {
      assert.deepEqual(actual.previous === undefined ? undefined : asEntry(actual.previous), expected.previous);
    }
  } else if (actual.kind === 'delete' && expected.kind === 'delete') {
    assert.equal(actual.deleted, expected.deleted);
    if (request.kind === 'delete' && request.delete.prevKv)
      assert.deepEqual(actual.previous.map(asEntry), expected.previous);
  } else if (actual.kind === 'range' && expected.kind === 'range' && request.kind === 'range') {
    assert.equal(actual.count, expected.count);
    assert.equal(actual.more, expected.more);
    assert.equal(actual.versions.length, expected.entries.length);
    const unique = request.range.sortTarget === 0 || request.range.limit === 0;
    const keys = actual.versions.map((version) => version.key);
    const wanted = expected.entries.map((entry) => entry.key);
    if (request.range.sortTarget === 0) assert.deepEqual(keys, wanted);
    else if (unique) assert.deepEqual(keys.sort(), wanted.sort());
    if (!actual.keysOnly && request.range.sortTarget === 0) assert.deepEqual(actual.kvs.map(asEntry), expected.entries);
  } else if (actual.kind === 'txn' && expected.kind === 'txn' && request.kind === 'txn') {
    assert.equal(actual.succeeded, expected.succeeded);
    assert.equal(actual.answers.length, expected.answers.length);
    const operations = actual.succeeded ? request.txn.success : request.txn.failure;
    actual.answers.forEach((answer, i) => {
      same(answer, expected.answers[i] as OracleAnswer, operations[i] as RequestOp);
    });
  }
}

function run(seed: number, cacheBytes: number, steps: number): { accepted: number; refused: number } {
  const random = seeded(seed);
  const rig = new Rig(cacheBytes);
  const oracle = new Oracle();
  let published = 1;
  let compacted = 0;
  let refused = 0;
  for (let step = 0; step < steps; step += 1) {
    const what = random(20);
    if (what === 0 && rig.machine.head > published) {
      rig.machine.rollBack();
      oracle.rollBack(published);
    } else if (what === 1 && published > compacted + 3) {
      compacted += 1 + random(published - compacted - 1);
      rig.machine.compact(compacted);
      for (let done = false; !done; ) {
        const step = rig.machine.collect(1 + random(3));
        done = step.done;
        for (const { revision, keys } of step.discarded) {
          const left =
            keys === undefined ? [] : splitEvents(rig.log.get(revision) as Buffer).filter((e) => !keys.includes(e.key));
          if (left.length === 0) rig.log.delete(revision);
          else rig.log.set(revision, Buffer.concat(left.map((e) => e.field)));
        }
      }
    } else if (what < 5) {
      for (const decided of rig.machine.publish(rig.machine.head)) rig.store(decided);
      published = rig.machine.head;
      watchAgrees(rig, oracle, Math.max(compacted, 1) + random(published - Math.max(compacted, 1) + 1));
    } else if (what < 7) {
      const request = range(random, Math.max(compacted, 1) + random(published - Math.max(compacted, 1) + 1));
      const state = oracle.states[request.revision > 0 ? request.revision : published];
      assert.ok(state);
      same(
        rig.with((pinned) => rig.machine.range(request, pinned)),
        oracle.range(request, state),
        { kind: 'range', range: request },
      );
    } else {
      const request = txn(random, oracle, Math.max(compacted, 1));
      try {
        checkTxn(request);
      } catch (error) {
        assert.ok(error instanceof MvccError && error.code === 'duplicate-key');
        refused += 1;
        continue;
      }
      same(rig.decide(request).answer, oracle.txn(request), { kind: 'txn', txn: request });
      assert.equal(rig.machine.head, oracle.revision);
    }
    assert.equal(rig.machine.keyCount, oracle.states[oracle.revision]?.size ?? 0);
  }
  for (const decided of rig.machine.publish(rig.machine.head)) rig.store(decided);
  restartAgrees(rig, oracle, compacted);
  return { accepted: oracle.revision, refused };
}

/** Compares the history from a revision on with the oracle's, including previous values. */
function watchAgrees(rig: Rig, oracle: Oracle, from: number): void {
  const changes = rig.machine.changes('', undefined, from, rig.machine.visible, Number.POSITIVE_INFINITY);
  const actual = changes.map(({ version, previous }) => ({
    revision: version.revision,
    type: isDelete(version) ? 'delete' : 'put',
    key: version.key,
    value: isDelete(version) ? '' : asEntry(rig.kv(version)).value,
    // The previous value may have been compacted.
    ...(previous === undefined ? {} : { previous: asEntry(rig.kv(previous)).value }),
  }));
  const expected = oracle.events
    .filter((e) => e.revision >= from && e.revision <= rig.machine.visible)
    .map(({ previous, ...event }, i) => {
      const known = previous !== undefined && changes[i]?.previous !== undefined;
      const before = oracle.states[event.revision - 1]?.get(event.key);
      if (before !== undefined && before.mod >= rig.machine.compacted)
        assert.ok(known, 'history from here on is complete');
      return known ? { ...event, previous } : event;
    });
  assert.deepEqual(actual, expected);
}

/** Checks that a machine loaded from the log equals the one that wrote it. */
function restartAgrees(rig: Rig, oracle: Oracle, compacted: number): void {
  const again = new Machine({ currentBytes: 1 << 20, pastBytes: 1 << 20 });
  for (const [revision, events] of [...rig.log].sort((a, b) => a[0] - b[0])) again.load(revision, splitEvents(events));
  again.loaded(compacted);
  const all: RangeRequest = {
    ...range(seeded(1), 1),
    key: '\0',
    end: '\0',
    limit: 0,
    revision: 0,
    sortOrder: 0,
    sortTarget: 0,
    keysOnly: false,
    countOnly: false,
    minModRevision: 0,
    maxModRevision: 0,
    minCreateRevision: 0,
    maxCreateRevision: 0,
  };
  const expected = oracle.range(all, oracle.states[oracle.revision] as ReadonlyMap<string, Entry>);
  assert.deepEqual(again.range(all).kvs.map(asEntry), expected.entries);
  assert.equal(again.keyCount, expected.entries.length);
}

describe('comparison of the MVCC machine with a list of revisions', () => {
  for (const [name, cacheBytes] of [
    ['all values in memory', 1 << 20],
    ['almost no values in memory', 40],
  ] as const) {
    it(`the MVCC machine returns the same responses and history as a list of revisions, with ${name}`, () => {
      let accepted = 0;
      let refused = 0;
      for (let seed = 1; seed <= 60; seed += 1) {
        try {
          const counts = run(seed, cacheBytes, 150);
          accepted += counts.accepted;
          refused += counts.refused;
        } catch (error) {
          throw new Error(`seed ${seed}`, { cause: error });
        }
      }
      assert.ok(accepted > 1000 && refused > 100, `${accepted} accepted, ${refused} refused`);
    });
  }
});

describe('range requests over many keys', () => {
  const KEYS_IN_ALL = 3000;
  const all: RangeRequest = {
    key: 'k',
    end: 'l',
    limit: 0,
    revision: 0,
    sortOrder: 0,
    sortTarget: 0,
    serializable: false,
    keysOnly: true,
    countOnly: false,
    minModRevision: 0,
    maxModRevision: 0,
    minCreateRevision: 0,
    maxCreateRevision: 0,
  };
  const put = (key: string): RequestOp => ({
    kind: 'put',
    put: { key, value: Buffer.from('v'), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  });
  const del = (key: string): RequestOp => ({ kind: 'delete', delete: { key, end: '', prevKv: false } });
  const key = (n: number): string => `k${String(n).padStart(6, '0')}`;

  it('a paged range request reports the total number of keys, at the current and at earlier revisions', () => {
    const random = seeded(7);
    const { machine } = new Rig(1 << 20);
    const stored = (): void => {
      machine.stored(machine.head);
      machine.publish(machine.head);
    };
    let used = 0;
    for (let step = 0; step < 400; step += 1) {
      const names = new Set(Array.from({ length: 60 }, () => key(random(KEYS_IN_ALL))));
      const success = [...names].map((name) => (random(3) === 0 ? del(name) : put(name)));
      machine.decide({ compares: [], success, failure: [] });
      if (random(10) === 0) {
        machine.rollBack();
        used += 1;
      } else stored();
      if (step === 200) machine.compact(machine.visible - 50);
      if (step > 200) machine.collect(100);
      const oldest = Math.max(machine.compacted, 2);
      for (const revision of [0, oldest + random(machine.visible - oldest + 1)]) {
        const part = { ...all, revision, key: key(random(KEYS_IN_ALL)) };
        const whole = machine.range(part);
        assert.equal(whole.count, whole.versions.length);
        const limit = 1 + random(700);
        const some = machine.range({ ...part, limit });
        assert.equal(some.count, whole.count, `step ${step}, revision ${revision}, ${limit} of ${whole.count}`);
        assert.equal(some.more, whole.count > limit);
        assert.deepEqual(some.versions, whole.versions.slice(0, limit));
        assert.equal(machine.range({ ...part, countOnly: true }).count, whole.count);
      }
    }
    assert.ok(used > 10);
  });

  it('the cost of a range request depends on the returned keys, not on the number of existing keys', () => {
    const { machine } = new Rig(1 << 20);
    for (let n = 0; n < 100_000; n += 100) {
      const success = Array.from({ length: 100 }, (_, i) => put(key(n + i)));
      machine.decide({ compares: [], success, failure: [] });
      machine.stored(machine.head);
      machine.publish(machine.head);
    }
    /** Minimum of several runs, because other work only adds to the cost. */
    const cost = (request: RangeRequest): number => {
      let least = Number.POSITIVE_INFINITY;
      for (let tries = 0; tries < 10; tries += 1) {
        const began = performance.now();
        assert.equal(machine.range(request).count, 100_000);
        least = Math.min(least, performance.now() - began);
      }
      return least;
    };
    const whole = cost(all);
    for (const request of [
      { ...all, limit: 10 },
      { ...all, countOnly: true },
    ]) {
      const part = cost(request);
      assert.ok(part < whole / 5, `${part} ms beside ${whole} ms for everything`);
    }
  });
});

describe('transaction checks', () => {
  const put = (key: string): RequestOp => ({
    kind: 'put',
    put: { key, value: Buffer.from('v'), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  });
  const del = (key: string, end = ''): RequestOp => ({ kind: 'delete', delete: { key, end, prevKv: false } });
  const nested = (success: RequestOp[], failure: RequestOp[] = []): RequestOp => ({
    kind: 'txn',
    txn: { compares: [], success, failure },
  });
  const refusedWith = (success: RequestOp[], code: string): void => {
    assert.throws(
      () => checkTxn({ compares: [], success, failure: [] }),
      (e) => e instanceof MvccError && e.code === code,
    );
  };

  it('rejects a transaction that writes one key twice at any nesting depth', () => {
    refusedWith([put('a'), put('a')], 'duplicate-key');
    refusedWith([put('a'), del('a')], 'duplicate-key');
    refusedWith([del('a', 'c'), put('b')], 'duplicate-key');
    refusedWith([del('a', '\0'), put('z')], 'duplicate-key');
    refusedWith([put('a'), nested([put('a')])], 'duplicate-key');
    refusedWith([nested([put('a')]), nested([], [put('a')])], 'duplicate-key');
    refusedWith([nested([del('a', 'c')]), put('b')], 'duplicate-key');
  });

  it('accepts a transaction that writes one key in both exclusive branches, or deletes overlapping ranges', () => {
    checkTxn({ compares: [], success: [nested([put('a')], [put('a')])], failure: [put('a')] });
    checkTxn({ compares: [], success: [del('a', 'c'), del('b'), put('c')], failure: [] });
  });

  it('rejects transactions with empty keys or more than 128 operations', () => {
    refusedWith([put('')], 'empty-key');
    refusedWith(
      Array.from({ length: 129 }, (_, i) => put(`k${i}`)),
      'too-many-operations',
    );
    checkTxn({ compares: [], success: Array.from({ length: 128 }, (_, i) => put(`k${i}`)), failure: [] });
  });
});
