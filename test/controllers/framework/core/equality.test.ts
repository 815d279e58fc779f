import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  equalIgnoringEmptyLists,
  jsonIgnoringEmptyLists,
} from '../../../../src/controllers/framework/core/equality.ts';

test('an absent field equals null and an empty list, but not an empty object', () => {
  assert.ok(equalIgnoringEmptyLists({ a: 1, b: [] }, { c: null, a: 1 }));
  assert.ok(!equalIgnoringEmptyLists({ a: 1, b: {} }, { a: 1 }));
  assert.ok(!equalIgnoringEmptyLists({ a: [1] }, { a: [1, 2] }));
});

test('semantic JSON omits null fields and fields with an empty list, and keeps the items of lists', () => {
  const value = { b: [1, [], { d: null }], a: { z: [], y: '"', x: null, w: {} } };
  assert.equal(jsonIgnoringEmptyLists(value), '{"a":{"w":{},"y":"\\""},"b":[1,[],{}]}');
});
