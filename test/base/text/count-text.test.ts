import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countText } from '../../../src/base/text/count-text.ts';

test('prints a count with the singular only for one', () => {
  assert.deepEqual(
    [0, 1, 2].map((count) => countText(count, 'file')),
    ['0 files', '1 file', '2 files'],
  );
  assert.equal(countText(3, 'entry', 'entries'), '3 entries');
});
