import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ignore, messageOf } from '../../src/base/errors.ts';

test('ignore handles a rejection, which then resolves with undefined', async () => {
  const failing = Promise.reject(new Error('x'));
  assert.equal(await failing.catch(ignore('the test expects it')), undefined);
});

test('messageOf omits the hint of Node.js about its flags', () => {
  const hint = 'if the root CA is installed locally, try running Node.js with --use-system-ca';
  assert.equal(
    messageOf(new Error(`unable to verify the first certificate; ${hint}`)),
    'unable to verify the first certificate',
  );
});
