import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  anything,
  type Decoded,
  decode,
  decodeJson,
  fields,
  flag,
  list,
  map,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
} from '../../src/base/decode.ts';

const CLAIMS = object({
  version: oneOf(1),
  claims: list(object({ uid: text, size: optional(number), labels: optional(map(text)), used: nullable(flag) })),
});

const faultOf = (value: unknown): string => {
  try {
    decode(CLAIMS, value, 'claims.json');
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  return '';
};

test('a decoder returns a valid value unchanged, with its unknown fields', () => {
  const value = { version: 1, claims: [{ uid: 'a', used: null, later: {} }], later: true };
  const decoded: Decoded<typeof CLAIMS> = decode(CLAIMS, value, 'claims.json');
  assert.equal(decoded, value);
  assert.deepEqual(decodeJson(CLAIMS, JSON.stringify(value), 'claims.json'), value);
});

test('the error of a decoder names the wrong field', () => {
  const claims = (claim: unknown): unknown => ({ version: 1, claims: [{ uid: 'a', used: false }, claim] });
  assert.equal(faultOf(null), 'claims.json: must be an object');
  assert.equal(faultOf([]), 'claims.json: must be an object');
  assert.equal(faultOf({ version: 2, claims: [] }), 'claims.json: version: must be one of 1');
  assert.equal(faultOf({ version: 1 }), 'claims.json: claims: must be a list');
  assert.equal(faultOf(claims({ used: true })), 'claims.json: claims[1].uid: must be a string');
  assert.equal(faultOf(claims({ uid: 'b', used: 1 })), 'claims.json: claims[1].used: must be true or false');
  assert.equal(faultOf(claims({ uid: 'b', used: true, size: 'x' })), 'claims.json: claims[1].size: must be a number');
  assert.equal(
    faultOf(claims({ uid: 'b', used: true, labels: { a: 1 } })),
    'claims.json: claims[1].labels.a: must be a string',
  );
});

test('a decoder of objects ignores inherited properties such as toString', () => {
  assert.equal(object({ toString: optional(text) }).faultOf({}), undefined);
});

test('rejects text that is not JSON with the name of the document', () => {
  assert.throws(() => decodeJson(anything, '{', 'state.json'), {
    code: 'bad-value',
    message: /^state\.json: not valid/,
  });
  assert.throws(() => decodeJson(fields, '[]', 'state.json'), { message: 'state.json: must be an object' });
});
