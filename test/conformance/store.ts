/**
 * Conformance suite for implementations of the `Store` port: the array-of-revisions oracle, `hyperedge etcd` and a real
 * etcd (both through the etcd v3 client). `open` returns a new view of the store for each test. Keys have a unique
 * prefix, so data may remain between tests. Where implementations differ, etcd is right.
 */

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { storeRevision } from '../../src/base/brand.ts';
import { prefixEnd, type Revision, type Store, StoreError, type WatchEvent } from '../../src/store/port.ts';

export interface StoreSuite {
  readonly name: string;
  open(): Promise<Store>;
  close?(store: Store): Promise<void>;
}

const bytes = (text: string): Uint8Array => Buffer.from(text);
const text = (value: Uint8Array | undefined): string | undefined =>
  value === undefined ? undefined : Buffer.from(value).toString();
const coded = (code: string) => (error: unknown) => error instanceof StoreError && error.code === code;

interface Recorder {
  readonly events: WatchEvent[];
  readonly progress: Revision[];
  readonly batches: Revision[];
  readonly errors: StoreError[];
  until(condition: () => boolean, what: string): Promise<void>;
  readonly handler: Parameters<Store['watch']>[3];
}

/** Collects the events of a watch and lets a test wait for them. */
export function recorder(): Recorder {
  let wake: () => void = () => {};
  const events: WatchEvent[] = [];
  const progress: Revision[] = [];
  const batches: Revision[] = [];
  const errors: StoreError[] = [];
  const changed = (): void => wake();
  return {
    events,
    progress,
    batches,
    errors,
    handler: {
      events: (delivered, revision) => {
        events.push(...delivered);
        batches.push(revision);
        changed();
      },
      progress: (revision) => {
        progress.push(revision);
        changed();
      },
      closed: (error) => {
        errors.push(error);
        changed();
      },
    },
    until: async (condition, what) => {
      const deadline = performance.now() + 10_000;
      while (!condition()) {
        const left = deadline - performance.now();
        if (left <= 0) assert.fail(`timed out waiting for ${what}`);
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, Math.min(left, 1000));
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
    },
  };
}

let suffix = 0;

export function storeConformance(suite: StoreSuite): void {
  describe(`store contract: ${suite.name}`, () => {
    let store: Store;
    before(async () => {
      store = await suite.open();
    });
    after(async () => {
      await store.close();
      await suite.close?.(store);
    });
    const fresh = (): string => {
      suffix += 1;
      return `/conformance/${process.pid}-${suffix}/`;
    };
    const put = async (key: string, value: string): Promise<Revision> => {
      const result = await store.commit({ guards: [], puts: [{ key, value: bytes(value) }] });
      assert.equal(result.committed, true);
      return result.revision;
    };

    it('a guard with revision 0 requires that the key does not exist', async () => {
      const key = `${fresh()}a`;
      const first = await store.commit({ guards: [{ key, modRevision: 0 }], puts: [{ key, value: bytes('1') }] });
      assert.ok(first.committed);
      const second = await store.commit({ guards: [{ key, modRevision: 0 }], puts: [{ key, value: bytes('2') }] });
      assert.ok(!second.committed);
      assert.equal(second.current.length, 1);
      assert.equal(text(second.current[0]?.value), '1');
      assert.equal(second.current[0]?.modRevision, first.revision);
      const { kv } = await store.get(key);
      assert.equal(text(kv?.value), '1');
      assert.equal(kv?.createRevision, first.revision);
    });

    it('updates and deletes under a mod-revision guard, and returns the current value for a stale guard', async () => {
      const key = `${fresh()}a`;
      const created = await put(key, '1');
      const updated = await store.commit({
        guards: [{ key, modRevision: created }],
        puts: [{ key, value: bytes('2') }],
      });
      assert.ok(updated.committed);
      assert.ok(updated.revision > created);
      const stale = await store.commit({ guards: [{ key, modRevision: created }], deletes: [key] });
      assert.ok(!stale.committed);
      assert.equal(stale.current[0]?.modRevision, updated.revision);
      assert.equal(stale.current[0]?.createRevision, created);
      const removed = await store.commit({ guards: [{ key, modRevision: updated.revision }], deletes: [key] });
      assert.ok(removed.committed);
      assert.equal((await store.get(key)).kv, undefined);
      assert.equal(text((await store.get(key, { revision: updated.revision })).kv?.value), '2');
      const gone = await store.commit({
        guards: [{ key, modRevision: updated.revision }],
        puts: [{ key, value: bytes('3') }],
      });
      assert.ok(!gone.committed);
      assert.deepEqual(gone.current, [undefined]);
    });

    it('commits several guards and keys atomically in a single revision', async () => {
      const prefix = fresh();
      const [a, b, c] = [`${prefix}a`, `${prefix}b`, `${prefix}c`];
      const revision = await put(c, 'c');
      const both = await store.commit({
        guards: [
          { key: a, modRevision: 0 },
          { key: c, modRevision: revision },
        ],
        puts: [
          { key: a, value: bytes('a') },
          { key: b, value: bytes('b') },
        ],
        deletes: [c],
      });
      assert.ok(both.committed);
      const { kvs } = await store.range(prefix, prefixEnd(prefix));
      assert.deepEqual(
        kvs.map((kv) => [kv.key, kv.modRevision]),
        [
          [a, both.revision],
          [b, both.revision],
        ],
      );
      const neither = await store.commit({
        guards: [
          { key: a, modRevision: both.revision },
          { key: b, modRevision: 0 },
        ],
        deletes: [a, b],
      });
      assert.ok(!neither.committed);
      assert.deepEqual(
        neither.current.map((kv) => text(kv?.value)),
        ['a', 'b'],
      );
      assert.equal((await store.range(prefix, prefixEnd(prefix))).count, 2);
    });

    it('creates no revision for a commit without changes', async () => {
      const key = `${fresh()}none`;
      const { revision } = await store.get(key);
      const result = await store.commit({ guards: [], deletes: [key] });
      assert.ok(result.committed);
      assert.equal(result.revision, revision);
      assert.equal((await store.get(key)).revision, revision);
    });

    it('ranges return keys in order, with limit, count, keys-only, and at a revision', async () => {
      const prefix = fresh();
      const keys = ['b', 'a', 'd', 'c'].map((name) => prefix + name);
      let last = 0;
      for (const key of keys) last = await put(key, key);
      await put(`${prefix}e`, 'later');
      const end = prefixEnd(prefix);
      const all = await store.range(prefix, end);
      assert.deepEqual(
        all.kvs.map((kv) => kv.key),
        ['a', 'b', 'c', 'd', 'e'].map((name) => prefix + name),
      );
      assert.equal(all.more, false);
      const page = await store.range(prefix, end, { limit: 2, revision: storeRevision(last) });
      assert.deepEqual([page.kvs.length, page.more, page.count], [2, true, 4]);
      const rest = await store.range(`${page.kvs[1]?.key}\0`, end, { limit: 2, revision: storeRevision(last) });
      assert.deepEqual([rest.kvs.map((kv) => kv.key), rest.more], [[`${prefix}c`, `${prefix}d`], false]);
      assert.deepEqual([...(await store.range(prefix, end, { countOnly: true })).kvs], []);
      assert.equal((await store.range(prefix, end, { countOnly: true })).count, 5);
      const names = await store.range(prefix, end, { keysOnly: true });
      assert.ok(names.kvs.every((kv) => kv.value.length === 0 && kv.modRevision > 0));
    });

    it('rejects compacted and future revisions', async () => {
      const key = `${fresh()}a`;
      const first = await put(key, '1');
      const second = await put(key, '2');
      await store.compact(second);
      await assert.rejects(store.get(key, { revision: first }), coded('compacted'));
      await assert.rejects(store.range(key, `${key}\0`, { revision: first }), coded('compacted'));
      assert.equal(text((await store.get(key, { revision: second })).kv?.value), '2');
      await assert.rejects(store.get(key, { revision: storeRevision(second + 1000) }), coded('future-revision'));
      await assert.rejects(store.compact(first), coded('compacted'));
      await assert.rejects(store.compact(storeRevision(second + 1000)), coded('future-revision'));
      const watched = recorder();
      store.watch(key, `${key}\0`, first, watched.handler);
      await watched.until(() => watched.errors.length > 0, 'the watch to be refused');
      assert.equal(watched.errors[0]?.code, 'compacted');
      assert.equal(watched.events.length, 0);
    });

    it('a watch from a past revision reports every event once, in order', async () => {
      const prefix = fresh();
      const key = `${prefix}a`;
      await put(`${prefix}before`, 'x');
      const first = await put(key, '1');
      const second = await put(key, '2');
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), first, watched.handler);
      const removed = await store.commit({ guards: [], deletes: [key] });
      const third = await put(key, '3');
      await put(`${prefix.slice(0, -1)}0`, 'outside');
      await watched.until(() => watched.events.length >= 4, 'four events');
      watch.cancel();
      assert.deepEqual(
        watched.events.map(({ type, kv }) => [type, kv.key, text(kv.value), kv.modRevision]),
        [
          ['put', key, '1', first],
          ['put', key, '2', second],
          ['delete', key, '', removed.revision],
          ['put', key, '3', third],
        ],
      );
      assert.equal(watched.events[1]?.kv.createRevision, first);
      assert.equal(watched.events[3]?.kv.createRevision, third);
    });

    it('a watch receives the events of a revision together', async () => {
      const prefix = fresh();
      const start = (await store.get(prefix)).revision + 1;
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), storeRevision(start), watched.handler);
      const puts = Array.from({ length: 20 }, (_, i) => ({ key: `${prefix}${i + 10}`, value: bytes('v') }));
      const { revision } = await store.commit({ guards: [], puts });
      await watched.until(() => watched.events.length > 0, 'the events');
      assert.equal(watched.events.length, 20);
      assert.deepEqual(watched.batches, [revision]);
      watch.cancel();
    });

    it('starts a watch at a future revision', async () => {
      const prefix = fresh();
      const now = await put(`${prefix}a`, '1');
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), storeRevision(now + 2), watched.handler);
      await put(`${prefix}a`, '2');
      const later = await put(`${prefix}a`, '3');
      await watched.until(() => watched.events.length > 0, 'the event');
      assert.equal(watched.events[0]?.kv.modRevision, later);
      watch.cancel();
    });

    it('reports progress on request, at a revision not older than the last write', async () => {
      const prefix = fresh();
      const start = await put(`${prefix}a`, '1');
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), start, watched.handler);
      await watched.until(() => watched.events.length === 1, 'the first event');
      const elsewhere = await put(`${fresh()}elsewhere`, '1');
      watch.requestProgress();
      await watched.until(() => watched.progress.some((revision) => revision >= elsewhere), 'progress');
      watch.cancel();
    });

    it('a watch delivers no event after its cancellation', async () => {
      const prefix = fresh();
      const start = await put(`${prefix}a`, '1');
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), start, watched.handler);
      await watched.until(() => watched.events.length === 1, 'the first event');
      watch.cancel();
      await put(`${prefix}a`, '2');
      await new Promise((resolve) => setTimeout(resolve, 50));
      assert.equal(watched.events.length, 1);
      assert.equal(watched.errors.length, 0);
    });

    it('each of many watches receives only its own events', async () => {
      const prefix = fresh();
      const start = (await store.get(prefix)).revision + 1;
      const all = Array.from({ length: 40 }, (_, i) => {
        const watched = recorder();
        const mine = `${prefix}${i + 10}/`;
        return { watched, mine, watch: store.watch(mine, prefixEnd(mine), storeRevision(start), watched.handler) };
      });
      await Promise.all(all.map(({ mine }) => put(`${mine}k`, mine)));
      for (const { watched, mine, watch } of all) {
        await watched.until(() => watched.events.length === 1, mine);
        assert.equal(text(watched.events[0]?.kv.value), mine);
        watch.cancel();
      }
    });

    it('applies relaxed commits immediately, in revision order with durable commits', async () => {
      const key = `${fresh()}a`;
      const first = await store.commit({ guards: [], puts: [{ key, value: bytes('1') }], durability: 'relaxed' });
      const seen = await store.get(key);
      assert.equal(seen.kv?.modRevision, first.revision);
      const second = await put(key, '2');
      assert.equal(second, first.revision + 1);
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          store.commit({
            guards: [],
            puts: [{ key: `${key}${i}`, value: bytes('x') }],
            durability: i % 2 === 0 ? 'relaxed' : 'durable',
          }),
        ),
      );
      assert.equal(new Set(results.map((result) => result.revision)).size, 20);
    });

    it('exactly one of many concurrent guarded writers succeeds at each revision', async () => {
      const key = `${fresh()}counter`;
      await put(key, '0');
      const add = async (): Promise<void> => {
        for (;;) {
          const { kv } = await store.get(key);
          assert.ok(kv);
          const next = String(Number(text(kv.value)) + 1);
          const result = await store.commit({
            guards: [{ key, modRevision: kv.modRevision }],
            puts: [{ key, value: bytes(next) }],
          });
          if (result.committed) return;
        }
      };
      await Promise.all(Array.from({ length: 8 }, async () => Promise.all([add(), add(), add()])));
      assert.equal(text((await store.get(key)).kv?.value), '24');
    });

    it('renews a lease and reports its expiry', async () => {
      const prefix = fresh();
      const lease = await store.grantLease(2);
      await store.commit({ guards: [], puts: [{ key: `${prefix}kept`, value: bytes('v'), lease }] });
      const begin = performance.now();
      while (performance.now() - begin < 4000) {
        assert.equal(await store.keepLease(lease), true);
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      assert.ok((await store.get(`${prefix}kept`)).kv);
      assert.equal(await store.keepLease('123456789'), false);
    });

    it('deletes the keys of an expired lease and rejects an unknown lease', async () => {
      const prefix = fresh();
      const lease = await store.grantLease(1);
      const start = (await store.get(prefix)).revision + 1;
      const watched = recorder();
      const watch = store.watch(prefix, prefixEnd(prefix), storeRevision(start), watched.handler);
      for (const name of ['a', 'b']) {
        await store.commit({ guards: [], puts: [{ key: prefix + name, value: bytes('v'), lease }] });
      }
      await put(`${prefix}c`, 'stays');
      await watched.until(() => watched.events.filter((event) => event.type === 'delete').length === 2, 'the expiry');
      assert.deepEqual(
        (await store.range(prefix, prefixEnd(prefix))).kvs.map((kv) => kv.key),
        [`${prefix}c`],
      );
      watch.cancel();
      await assert.rejects(
        store.commit({ guards: [], puts: [{ key: `${prefix}d`, value: bytes('v'), lease: '123456789' }] }),
        coded('lease-not-found'),
      );
    });

    it('stores values with arbitrary bytes and values of one megabyte', async () => {
      const key = `${fresh()}big`;
      const value = new Uint8Array(1_200_000);
      for (let i = 0; i < value.length; i += 1) value[i] = (i * 31) & 0xff;
      const { revision } = await store.commit({ guards: [{ key, modRevision: 0 }], puts: [{ key, value }] });
      const { kv } = await store.get(key);
      assert.equal(kv?.modRevision, revision);
      assert.deepEqual(Buffer.compare(Buffer.from(kv?.value ?? []), Buffer.from(value)), 0);
    });

    it('the store reports its size', async () => {
      assert.ok((await store.size(5000)) > 0);
    });

    it('the store responds to a ping', async () => {
      await store.ping(5000);
    });
  });
}
