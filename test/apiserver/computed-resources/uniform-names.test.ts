import assert from 'node:assert/strict';
import { test } from 'node:test';
import { secretUniform } from '../../../src/apiserver/computed-resources/uniform-names.ts';
import { systemRandom } from '../../../src/host/process/process.ts';

test('random numbers for generated names are uniform, cryptographic and drawn in batches', () => {
  let draws = 0;
  const next = secretUniform({
    ...systemRandom,
    bytes: (length) => {
      draws += 1;
      return systemRandom.bytes(length);
    },
  });
  const numbers = Array.from({ length: 20_000 }, next);
  assert.ok(draws < 200, `${draws} draws`);
  assert.ok(numbers.every((each) => each >= 0 && each < 1));
  const mean = numbers.reduce((sum, each) => sum + each, 0) / numbers.length;
  assert.ok(mean > 0.48 && mean < 0.52, String(mean));
  assert.equal(new Set(numbers).size > 19_900, true);
});
