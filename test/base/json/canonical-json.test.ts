import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalJson } from '../../../src/base/json/canonical-json.ts';

const value = { b: [1, [], { d: null, c: undefined }, undefined], a: { z: [], y: '"', x: null, w: {} } };

test('sorts keys at every level and omits undefined fields only', () => {
  assert.equal(canonicalJson(value), '{"a":{"w":{},"x":null,"y":"\\"","z":[]},"b":[1,[],{"d":null},null]}');
});

test('omits the fields that the caller considers absent, but keeps the items of lists', () => {
  const isNull = (field: unknown): boolean => field === undefined || field === null;
  assert.equal(canonicalJson(value, isNull), '{"a":{"w":{},"y":"\\"","z":[]},"b":[1,[],{},null]}');
});

test('a value that JSON cannot represent becomes null', () => {
  assert.equal(canonicalJson(undefined), 'null');
  assert.equal(canonicalJson([() => 1]), '[null]');
});
