import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CachedObject, spliceRevision } from '../../../src/apiserver/watch-cache/cached-object.ts';
import type { EventBatch } from '../../../src/apiserver/watch-cache/event-window.ts';
import { CacheEvent, EventWindow, WindowBudget } from '../../../src/apiserver/watch-cache/event-window.ts';
import { KindCache } from '../../../src/apiserver/watch-cache/kind-cache.ts';
import { ReadIndex } from '../../../src/apiserver/watch-cache/read-index.ts';
import { toStoreKey } from '../../../src/base/brand.ts';
import { generator } from '../../support/random.ts';

const PREFIX = '/registry/things/';

const storedValue = (namespace: string, name: string, text: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Thing',
      metadata: { name, namespace, labels: { text } },
      text: 'é"metadata":{',
    }),
  );

function newCache(): KindCache {
  return new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders: {} });
}

describe('cached object of a write', () => {
  it('the watch cache uses the object that a request has written until its event has been delivered', () => {
    const written = { metadata: { name: 'b', namespace: 'a' }, size: 'large' };
    const bytes = spliceRevision(Buffer.from(JSON.stringify(written)), 7);
    const cache = new KindCache({
      prefix: PREFIX,
      namespaced: true,
      fieldReaders: { size: ({ size }: { readonly size: string }) => size },
    });
    const object = new CachedObject('a', 'b', bytes, 7, 7, written);
    cache.expect(object);
    const seen: unknown[] = [];
    cache.subscribe({ deliver: ({ events }) => seen.push(events[0]?.object.peek()), reset: () => {} }, undefined, 0);
    cache.applyPut(toStoreKey(`${PREFIX}a/b`), bytes, 7, 7);
    cache.flush(7);
    assert.equal(seen[0], written);
    assert.equal(object.field('size', cache.options.fieldReaders), 'large');
    const again = object.peek();
    assert.notEqual(again, written);
    assert.equal(again.metadata?.resourceVersion, '7');
  });
});

describe('insertion of the revision into cached objects', () => {
  it('the revision is inserted at the start of metadata without another change of the bytes', () => {
    const value = storedValue('a', 'b', 'c');
    const parsed = JSON.parse(spliceRevision(value, 42).toString()) as {
      metadata: Record<string, unknown>;
      text: string;
    };
    assert.equal(parsed.metadata['resourceVersion'], '42');
    assert.equal(Object.keys(parsed.metadata)[0], 'resourceVersion');
    delete parsed.metadata['resourceVersion'];
    assert.deepEqual(parsed, JSON.parse(value.toString()));
  });

  it('a deletion event contains the object with the revision of the delete', () => {
    const object = new CachedObject('a', 'b', spliceRevision(storedValue('a', 'b', 'c'), 7), 7, 7);
    const parsed = object.atRevision(1234).parse();
    assert.equal(parsed.metadata?.resourceVersion, '1234');
    assert.equal(parsed.metadata?.name, 'b');
  });
});

describe('objects written by this server', () => {
  const key = `${PREFIX}a/b`;
  const written = (revision: number): CachedObject =>
    new CachedObject('a', 'b', spliceRevision(storedValue('a', 'b', `of ${revision}`), revision), revision, revision);
  const event = (cache: KindCache, revision: number): void =>
    cache.applyPut(toStoreKey(key), storedValue('a', 'b', `of ${revision}`), revision, revision);

  it('objects written by this server are reused only when the event of the same revision arrives', () => {
    const cache = newCache();
    cache.load([], 1);
    const mine = written(5);
    cache.expect(mine);
    assert.equal(cache.get('a', 'b'), undefined);
    event(cache, 4);
    assert.notEqual(cache.get('a', 'b'), mine);
    event(cache, 5);
    assert.equal(cache.get('a', 'b'), mine);
    event(cache, 6);
    assert.equal(cache.get('a', 'b')?.revision, 6);
  });

  it('objects written by this server are dropped after a write by another server, a delete or a reload', () => {
    for (const meanwhile of [
      (cache: KindCache) => event(cache, 6),
      (cache: KindCache) => cache.applyDelete(toStoreKey(key), 6),
      (cache: KindCache) => cache.load([], 6),
    ]) {
      const cache = newCache();
      cache.load([], 1);
      const mine = written(5);
      cache.expect(mine);
      meanwhile(cache);
      event(cache, 7);
      assert.equal(cache.get('a', 'b')?.revision, 7);
      // After the reload, an object with the expected revision is not reused.
      cache.load([], 1);
      event(cache, 5);
      assert.notEqual(cache.get('a', 'b'), mine);
    }
  });
});

describe('metadata of a cached object', () => {
  it('extracts the metadata of a cached object from the bytes, with any content of strings', () => {
    const metadata = {
      name: 'b',
      annotations: { a: '}"\\', b: '{{"metadata":{', 'c\\"}': 'é', d: '\\' },
      finalizers: ['}'],
    };
    const value = Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Thing', metadata, spec: { metadata: {} } }));
    const object = new CachedObject('', 'b', spliceRevision(value, 3), 3, 3);
    assert.deepEqual(JSON.parse(object.metadataBytes().toString()), { resourceVersion: '3', ...metadata });
  });
});

describe('kind cache', () => {
  it('the kind cache keeps no larger buffer in memory than the bytes of its objects', () => {
    const cache = newCache();
    cache.applyPut(toStoreKey(`${PREFIX}a/b`), storedValue('a', 'b', 'c'), 2, 2);
    const kept = cache.get('a', 'b')?.bytes;
    assert.equal(kept?.buffer.byteLength, kept?.length);
    // DELETED events stay in the window while thousands of others arrive.
    const gone = cache.get('a', 'b')?.atRevision(9).bytes;
    assert.equal(gone?.buffer.byteLength, gone?.length);
  });

  it('the kind cache equals a sorted map over random histories', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = generator(seed);
      const cache = newCache();
      const oracle = new Map<string, string>();
      const seen: string[] = [];
      cache.load([], 0);
      cache.subscribe(
        {
          deliver: (batch: EventBatch) => seen.push(...batch.events.map((each) => `${each.type} ${each.object.key}`)),
          reset: () => {},
        },
        undefined,
        0,
      );
      const expected: string[] = [];
      for (let revision = 1; revision <= 200; revision++) {
        // Names with '-' and '.', which sort before '/', distinguish order by key from order by parts.
        const namespace = ['a', 'a-b', 'a.b', 'b'][Math.floor(random() * 4)] ?? 'a';
        const name = ['x', 'x-1', 'x.1', 'y', 'z'][Math.floor(random() * 5)] ?? 'x';
        const key = `${namespace}/${name}`;
        if (random() < 0.3) {
          if (oracle.has(key)) expected.push(`DELETED ${key}`);
          oracle.delete(key);
          cache.applyDelete(toStoreKey(PREFIX + key), revision);
        } else {
          expected.push(`${oracle.has(key) ? 'MODIFIED' : 'ADDED'} ${key}`);
          oracle.set(key, String(revision));
          cache.applyPut(toStoreKey(PREFIX + key), storedValue(namespace, name, String(revision)), revision, 1);
        }
        if (random() < 0.5) cache.flush(revision);
      }
      cache.flush(200);
      const sorted = [...oracle.keys()].sort();
      assert.deepEqual(
        cache.list(undefined).map((each) => each.key),
        sorted,
        `seed ${seed}`,
      );
      for (const namespace of ['a', 'a-b', 'a.b', 'b', 'c']) {
        assert.deepEqual(
          cache.list(namespace).map((each) => each.key),
          sorted.filter((key) => key.startsWith(`${namespace}/`)),
          `seed ${seed}`,
        );
        assert.equal(cache.count(namespace), cache.list(namespace).length, `seed ${seed}`);
      }
      for (const [key, text] of oracle) {
        const [namespace = '', name = ''] = key.split('/');
        assert.equal(cache.get(namespace, name)?.labels()['text'], text);
      }
      assert.deepEqual(seen, expected, `seed ${seed}`);
    }
  });

  it('the kind cache keeps its order through additions of any number of objects', () => {
    const random = generator(7);
    const cache = newCache();
    const keys = new Set<string>();
    cache.load([], 0);
    for (let run = 0, revision = 1; run < 60; run++) {
      for (let left = Math.floor(random() * 40); left > 0; left--, revision++) {
        const [namespace, name] = [`n${Math.floor(random() * 3)}`, `x${Math.floor(random() * 1e6)}`];
        keys.add(`${namespace}/${name}`);
        cache.applyPut(
          toStoreKey(`${PREFIX}${namespace}/${name}`),
          storedValue(namespace, name, ''),
          revision,
          revision,
        );
      }
      const sorted = [...keys].sort();
      assert.equal(cache.size, sorted.length);
      assert.deepEqual(
        run % 2 === 0 ? cache.list(undefined).map((each) => each.key) : [...cache].map((each) => each.key),
        sorted,
      );
      const gone = sorted[Math.floor(random() * sorted.length)] ?? '';
      if (keys.delete(gone)) cache.applyDelete(toStoreKey(PREFIX + gone), revision++);
    }
  });

  it('later changes of the kind cache do not affect a list that was already returned', () => {
    const cache = newCache();
    cache.load([], 0);
    cache.applyPut(toStoreKey(`${PREFIX}a/x`), storedValue('a', 'x', '1'), 1, 1);
    const before = cache.list(undefined);
    cache.applyPut(toStoreKey(`${PREFIX}a/x`), storedValue('a', 'x', '2'), 2, 1);
    cache.applyPut(toStoreKey(`${PREFIX}a/w`), storedValue('a', 'w', '2'), 3, 3);
    assert.deepEqual(
      before.map((each) => each.revision),
      [1],
    );
  });

  it('resumes a watch from any available revision, and returns 410 for older revisions', () => {
    const cache = newCache();
    cache.load([], 10);
    for (let revision = 11; revision <= 20; revision++) {
      cache.applyPut(toStoreKey(`${PREFIX}a/x`), storedValue('a', 'x', String(revision)), revision, 11);
      cache.flush(revision);
    }
    const revisions: number[] = [];
    const subscriber = {
      deliver: (batch: EventBatch) => revisions.push(...batch.events.map((each) => each.revision)),
      reset: () => {},
    };
    cache.subscribe(subscriber, 15, 20);
    assert.deepEqual(revisions, [16, 17, 18, 19, 20]);
    assert.throws(() => cache.subscribe(subscriber, 9, 20), { reason: 'Expired', httpCode: 410 });
  });

  it('shares one buffer among all watches of an entire kind', () => {
    const cache = newCache();
    cache.load([], 0);
    const buffers: Buffer[] = [];
    for (let index = 0; index < 3; index++) {
      cache.subscribe({ deliver: (batch) => buffers.push(batch.joined), reset: () => {} }, undefined, 0);
    }
    cache.applyPut(toStoreKey(`${PREFIX}a/x`), storedValue('a', 'x', '1'), 1, 1);
    cache.flush(1);
    assert.equal(buffers.length, 3);
    assert.ok(buffers.every((each) => each === buffers[0]));
  });
});

describe('event window', () => {
  it('the event window limits events and bytes, and reports its first complete revision', () => {
    const budget = new WindowBudget();
    const window = new EventWindow(0, budget, 100, 10_000);
    for (let revision = 1; revision <= 5000; revision++) {
      const object = new CachedObject('a', 'x', Buffer.alloc(150), revision, 1);
      window.push(new CacheEvent('MODIFIED', object, undefined));
    }
    const kept = window.after(window.since);
    assert.ok(kept !== undefined && kept.length <= 66 && kept.length > 0);
    assert.equal(kept[0]?.revision, window.since + 1);
    assert.equal(window.after(window.since - 1), undefined);
    assert.equal(budget.bytes, kept.length * 150);
  });

  it('event windows of many kinds share a limit, and evict the oldest event first', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = generator(seed);
      const maxBytes = 2000 + Math.floor(random() * 20_000);
      const budget = new WindowBudget(maxBytes);
      const windows = Array.from({ length: 6 }, (_, n) => new EventWindow(0, budget, 20 + n * 10, 3000));
      const pushed: { window: number; revision: number; bytes: number }[] = [];
      const resets = windows.map(() => 0);
      for (let revision = 1; revision <= 2000; revision++) {
        // One kind is written far more often than the others.
        const window = random() < 0.6 ? 0 : Math.floor(random() * windows.length);
        if (random() < 0.002) {
          windows[window]?.reset(revision);
          resets[window] = revision;
          continue;
        }
        const bytes = 20 + Math.floor(random() * 300);
        const object = new CachedObject('a', 'x', Buffer.alloc(bytes), revision, 1);
        windows[window]?.push(new CacheEvent('MODIFIED', object, undefined));
        pushed.push({ window, revision, bytes });
        if (revision % 20 > 0) continue;
        const kept = windows.flatMap((each, n) => {
          const events = each.after(each.since) ?? [];
          const expected = pushed.filter((one) => one.window === n && one.revision > each.since);
          assert.equal(events.length, expected.length, `seed ${seed}, window ${n}`);
          return expected;
        });
        const held = kept.reduce((sum, one) => sum + one.bytes, 0);
        assert.equal(budget.bytes, held, `seed ${seed}, revision ${revision}`);
        assert.ok(held <= maxBytes);
      }
    }
  });

  it('event windows use the whole shared limit, and evict no event while there is room', () => {
    const budget = new WindowBudget(1000);
    const [busy, quiet] = [new EventWindow(0, budget, 5), new EventWindow(0, budget)];
    const event = (revision: number): CacheEvent =>
      new CacheEvent('MODIFIED', new CachedObject('a', 'x', Buffer.alloc(100), revision, 1), undefined);
    quiet.push(event(1));
    for (let revision = 2; revision < 5000; revision++) busy.push(event(revision));
    assert.equal(quiet.after(0)?.length, 1);
    for (let revision = 5000; revision < 5005; revision++) quiet.push(event(revision));
    assert.deepEqual([quiet.after(quiet.since)?.length, quiet.since], [5, 1]);
    assert.equal(busy.after(busy.since)?.length, 5);
    assert.equal(budget.bytes, 1000);
  });
});

describe('read index', () => {
  it('reads of the revision that arrive during a read share the next read', async () => {
    let requested = 0;
    const pending: ((revision: number) => void)[] = [];
    const index = new ReadIndex(() => {
      requested += 1;
      return new Promise((resolve) => pending.push(resolve));
    });
    const first = index.current();
    const second = index.current();
    const third = index.current();
    assert.equal(requested, 1);
    pending[0]?.(1);
    assert.equal(await first, 1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(requested, 2);
    pending[1]?.(2);
    assert.deepEqual(await Promise.all([second, third]), [2, 2]);
    await new Promise((resolve) => setImmediate(resolve));
    const fourth = index.current();
    assert.equal(requested, 3);
    pending[2]?.(3);
    assert.equal(await fourth, 3);
  });

  it('reads the revision again after a failed read', async () => {
    let fail = true;
    const index = new ReadIndex(() => (fail ? Promise.reject(new Error('down')) : Promise.resolve(9)));
    await assert.rejects(index.current());
    fail = false;
    assert.equal(await index.current(), 9);
  });
});
