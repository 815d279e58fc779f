import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KindCache } from '../../../src/apiserver/watch-cache/kind-cache.ts';
import type { SubscriptionScope } from '../../../src/apiserver/watch-cache/subscribers.ts';
import { toStoreKey } from '../../../src/base/brand.ts';
import { generator } from '../../support/random.ts';

const PREFIX = '/registry/things/';
const fieldReaders = { place: (object: { place?: string }) => object.place ?? '' };

const stored = (namespace: string, name: string, place: string): Buffer =>
  Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Thing', metadata: { name, namespace }, place }));

it('each subscriber of the watch cache receives exactly its events, in order, over random histories', () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = generator(seed);
    const pick = (values: readonly string[]): string => values[Math.floor(random() * values.length)] ?? '';
    const [namespaces, names, places] = [
      ['a', 'b', 'c'],
      ['x', 'y', 'z'],
      ['', 'p', 'q'],
    ] as const;
    const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders });
    cache.load([], 0);
    const log: Array<{ key: string; namespace: string; name: string; places: string[] }> = [];
    const watchers: Array<{
      concern: SubscriptionScope;
      from: number;
      until: number;
      seen: string[];
      end: () => void;
    }> = [];
    const watch = (): void => {
      const concern: SubscriptionScope = {
        ...(random() < 0.5 ? { namespace: pick(namespaces) } : {}),
        ...(random() < 0.4 ? { name: pick(names) } : {}),
        ...(random() < 0.4 ? { field: { name: 'place', value: pick(places) } } : {}),
      };
      const seen: string[] = [];
      const end = cache.subscribe(
        {
          scope: concern,
          deliver: (batch) => seen.push(...batch.events.map(({ revision }) => String(revision))),
          reset: () => {},
        },
        undefined,
        0,
      );
      watchers.push({ concern, from: log.length, until: Number.POSITIVE_INFINITY, seen, end });
    };
    const placed = new Map<string, string>();
    for (let revision = 1; revision <= 150; revision++) {
      if (random() < 0.2) {
        cache.flush(revision - 1);
        watch();
      }
      if (random() < 0.1) {
        cache.flush(revision - 1);
        const leaving = watchers[Math.floor(random() * watchers.length)];
        leaving?.end();
        if (leaving !== undefined) leaving.until = Math.min(leaving.until, log.length);
      }
      const [namespace, name] = [pick(namespaces), pick(names)];
      const key = `${namespace}/${name}`;
      const before = placed.get(key);
      if (random() < 0.3) {
        cache.applyDelete(toStoreKey(PREFIX + key), revision);
        placed.delete(key);
        log.push({ key: before === undefined ? '' : String(revision), namespace, name, places: [before ?? ''] });
      } else {
        const place = pick(places);
        cache.applyPut(toStoreKey(PREFIX + key), stored(namespace, name, place), revision, 1);
        placed.set(key, place);
        log.push({ key: String(revision), namespace, name, places: before === undefined ? [place] : [place, before] });
      }
      if (random() < 0.6) cache.flush(revision);
    }
    cache.flush(150);
    for (const { concern, from, until, seen } of watchers) {
      const { namespace, name, field } = concern;
      const expected = log.slice(from, until).filter(
        (each) =>
          each.key !== '' &&
          // A concern with a name selects by name and namespace, one with a field by the field only, and any other by
          // namespace.
          (name !== undefined
            ? each.name === name && (namespace ?? each.namespace) === each.namespace
            : field !== undefined
              ? each.places.includes(field.value)
              : (namespace ?? each.namespace) === each.namespace),
      );
      assert.deepEqual(
        seen,
        expected.map(({ key }) => key),
        `seed ${seed}: ${JSON.stringify(concern)}`,
      );
    }
    assert.equal(cache.watchers, watchers.filter(({ until }) => until === Number.POSITIVE_INFINITY).length);
  }
});

it('does not notify subscribers of unrelated changes', () => {
  const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders });
  cache.load([], 0);
  let reported = 0;
  let resets = 0;
  const subscribe = (concern: SubscriptionScope): void =>
    void cache.subscribe({ scope: concern, deliver: () => reported++, reset: () => resets++ }, undefined, 0);
  for (let i = 0; i < 100; i++) {
    subscribe({ namespace: 'other' });
    subscribe({ namespace: 'a', name: `n${i}` });
    subscribe({ field: { name: 'place', value: `p${i}` } });
    // An unknown field does not exclude a subscriber.
    if (i === 0) subscribe({ namespace: 'a', field: { name: 'colour', value: 'red' } });
  }
  cache.applyPut(toStoreKey(`${PREFIX}a/n7`), stored('a', 'n7', 'p9'), 1, 1);
  cache.flush(1);
  assert.equal(reported, 3);
  assert.equal(cache.watchers, 301);
  cache.endWatches();
  assert.deepEqual([resets, cache.watchers], [301, 0]);
});
