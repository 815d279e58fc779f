import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storeRevision, toStoreKey } from '../../src/base/brand.ts';

test('accepts non-negative safe integers as store revisions', () => {
  for (const value of [0, 1, Number.MAX_SAFE_INTEGER]) assert.equal(storeRevision(value), value);
});

test('a store revision must be a non-negative safe integer', () => {
  for (const value of [-1, 1.5, Number.NaN, 2 ** 53]) assert.throws(() => storeRevision(value), { code: 'bad-value' });
});

test('a store key must be a path, not the name of an object', () => {
  assert.equal(toStoreKey('/registry/pods/a/b'), '/registry/pods/a/b');
  for (const key of ['', 'a/b', '/registry']) assert.throws(() => toStoreKey(key), { code: 'bad-value' });
});
