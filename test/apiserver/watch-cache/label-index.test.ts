import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CachedObject, spliceRevision } from '../../../src/apiserver/watch-cache/cached-object.ts';
import { KindCache } from '../../../src/apiserver/watch-cache/kind-cache.ts';
import { toStoreKey } from '../../../src/base/brand.ts';
import { matchesLabels, parseLabelSelector } from '../../../src/base/selector.ts';
import { generator } from '../../support/random.ts';

const PREFIX = '/registry/things/';

const stored = (metadata: object, rest: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Thing', metadata, ...rest }));

describe('labels of a cached object', () => {
  it('reads labels of a cached object only from its metadata, not from similar fields', () => {
    const labels = { a: '1', 'example.com/"}': 'é', __proto__x: '' };
    const tricks = {
      annotations: { x: '"labels":{"no":"no"}', labels: 'no' },
      managedFields: [{ fieldsV1: { labels: { no: 'no' }, 'f:metadata': { 'f:labels': {} } } }],
    };
    for (const metadata of [
      { name: 'n', labels, ...tricks },
      { ...tricks, name: 'labels', labels },
      { name: 'n', ...tricks },
      { name: 'n', labels: {}, ...tricks },
      { name: 'n', labels: null, ...tricks },
    ]) {
      const value = stored(metadata, { labels: { no: 'no' }, spec: { metadata: { labels: { no: 'no' } } } });
      const object = new CachedObject('', 'n', spliceRevision(value, 3), 3, 3);
      assert.deepEqual({ ...object.labels() }, 'labels' in metadata ? (metadata.labels ?? {}) : {});
    }
  });
});

describe('objects with a label', () => {
  it('objects with a label are the same as in a full scan, over random histories', () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = generator(seed);
      const pick = (values: readonly string[]): string => values[Math.floor(random() * values.length)] ?? '';
      const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders: {} });
      cache.load([], 0);
      let revision = 0;
      const change = (): void => {
        revision += 1;
        const [namespace, name] = [pick(['a', 'b', 'b-c']), `n${Math.floor(random() * 60)}`];
        const key = `${PREFIX}${namespace}/${name}`;
        if (random() < 0.25) {
          cache.applyDelete(toStoreKey(key), revision);
          return;
        }
        const labels = {
          ...(random() < 0.8 ? { app: pick(['x', 'y', 'z', '']) } : {}),
          ...(random() < 0.5 ? { tier: pick(['p', 'q']) } : {}),
          unique: String(revision),
        };
        cache.applyPut(toStoreKey(key), stored({ name, namespace, labels }), revision, revision);
      };
      for (let round = 0; round < 60; round++) {
        // Occasionally, there are more changes than the index follows.
        for (let n = random() < 0.05 ? 1500 : Math.floor(random() * 20); n >= 0; n--) change();
        for (const text of [
          `app=${pick(['x', 'y', ''])}`,
          'tier in (p,q),app!=x',
          'app in (x,z),tier=p',
          '!tier',
          'tier',
          `unique=${revision}`,
        ]) {
          const selector = parseLabelSelector(text);
          const namespace = random() < 0.5 ? pick(['a', 'b', 'b-c', 'none']) : undefined;
          const matches = (object: CachedObject): boolean => matchesLabels(selector, object.labels());
          const shown = (objects: readonly CachedObject[]): string[] =>
            objects.filter(matches).map((object) => `${object.key}@${object.revision}`);
          const seen = shown(cache.listSelected(namespace, selector));
          assert.deepEqual(seen, shown(cache.list(namespace)), `seed ${seed}, ${text} in ${namespace}`);
        }
      }
    }
  });

  it('finding objects with a label reads no other objects', () => {
    const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders: {} });
    for (let n = 1; n <= 1000; n++) {
      const metadata = { name: `n${n}`, namespace: 'a', labels: { tenth: String(n % 10) } };
      cache.applyPut(toStoreKey(`${PREFIX}a/n${n}`), stored(metadata), n, n);
    }
    assert.equal(cache.listSelected('a', parseLabelSelector('tenth=3')).length, 100);
    assert.equal(cache.listSelected(undefined, parseLabelSelector('tenth in (3,4)')).length, 200);
    cache.applyDelete(toStoreKey(`${PREFIX}a/n3`), 1001);
    assert.equal(cache.listSelected('a', parseLabelSelector('tenth=3')).length, 99);
  });

  it('objects with a label do not change in a result that was already returned', () => {
    const cache = new KindCache({ prefix: PREFIX, namespaced: true, fieldReaders: {} });
    for (let n = 1; n <= 100; n++) {
      cache.applyPut(
        toStoreKey(`${PREFIX}a/n${n}`),
        stored({ name: `n${n}`, namespace: 'a', labels: { all: 'yes' } }),
        n,
        n,
      );
    }
    const before = cache.listSelected(undefined, parseLabelSelector('all=yes'));
    const keys = before.map((object) => object.key);
    for (let n = 1; n <= 50; n++) cache.applyDelete(toStoreKey(`${PREFIX}a/n${n}`), 100 + n);
    assert.equal(cache.listSelected(undefined, parseLabelSelector('all=yes')).length, 50);
    assert.deepEqual(
      before.map((object) => object.key),
      keys,
    );
  });
});
