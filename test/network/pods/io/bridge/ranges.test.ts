import assert from 'node:assert/strict';
import { test } from 'node:test';
import { contains } from '../../../../../src/network/pods/io/bridge/ranges.ts';

test('detects whether an address is inside an address range', () => {
  assert.equal(contains('172.30.0.0/16', '172.30.0.10'), true);
  assert.equal(contains('172.30.0.0/16', '172.31.0.10'), false);
  assert.equal(contains('fd00:1::/64', 'fd00:1::a'), true);
  assert.equal(contains('172.30.0.0/16', 'fd00:1::a'), false);
  assert.equal(contains('0.0.0.0/0', 'default'), false);
});
