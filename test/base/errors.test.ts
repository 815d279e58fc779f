import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ignore } from '../../src/base/errors.ts';

test('ignore handles a rejection, which then resolves with undefined', async () => {
  const failing = Promise.reject(new Error('x'));
  assert.equal(await failing.catch(ignore('the test expects it')), undefined);
});
