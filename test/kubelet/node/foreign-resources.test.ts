/** Extended resources that are patched into a Node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepForeignResources } from '../../../src/kubelet/node/foreign-resources.ts';

test('makes patched capacity of a Node allocatable until the capacity is removed', () => {
  const own = { capacity: { cpu: '4' }, allocatable: { cpu: '3' } };
  const patched = { capacity: { cpu: '9', 'example.com/dongle': '4' }, allocatable: { cpu: '3' } };
  const kept = keepForeignResources(own, patched);
  assert.deepEqual(kept, {
    status: {
      capacity: { cpu: '4', 'example.com/dongle': '4' },
      allocatable: { cpu: '3', 'example.com/dongle': '4' },
    },
    gone: [],
  });
  const removed = keepForeignResources(own, { ...kept.status, capacity: own.capacity });
  assert.deepEqual(removed, { status: own, gone: ['example.com/dongle'] });
});
