import assert from 'node:assert/strict';
import { test } from 'node:test';
import { omitEmpty, omitUndefined } from '../../../src/base/json/omit-fields.ts';

const FIELDS = { z: 1, a: undefined, n: null, zero: 0, no: false, text: '', list: [], map: {}, y: ['x'], x: { b: 0 } };

test('omits undefined fields only, and keeps the order', () => {
  const { a: _a, ...others } = FIELDS;
  assert.equal(JSON.stringify(omitUndefined(FIELDS)), JSON.stringify(others));
  assert.ok(!('a' in omitUndefined(FIELDS)));
});

test('omits the values that Go considers empty, but not the empty fields of values', () => {
  assert.equal(JSON.stringify(omitEmpty(FIELDS)), '{"z":1,"y":["x"],"x":{"b":0}}');
});

test('a field that can be undefined is optional in the type', () => {
  const given: { size: number; name: string | undefined } = { size: 1, name: undefined };
  const fields: { size: number; name?: string } = omitUndefined(given);
  assert.deepEqual(fields, { size: 1 });
});
