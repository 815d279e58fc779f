import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeOf, mayGroup, sumIn } from '../../../../src/kubelet/core/topology/blocks.ts';

const nodes = [
  { id: 0, allocatable: { memory: 100 } },
  { id: 1, allocatable: { memory: 100 } },
  { id: 2, allocatable: { memory: 100 } },
];
const block = (size: number, ...numaAffinity: number[]) => ({ numaAffinity, type: 'memory', size });

test('takes a block of several nodes from the first ones with free memory', () => {
  const free = freeOf(nodes, 'memory', [block(60, 0), block(90, 0, 1), { ...block(5, 2), type: 'hugepages-2Mi' }]);
  assert.deepEqual(
    [...free],
    [
      [0, 0],
      [1, 50],
      [2, 100],
    ],
  );
  assert.equal(sumIn(free, 0b110), 150);
});

test('keeps single nodes out of groups, and nodes of a group in that group', () => {
  assert.equal(mayGroup(0b011, nodes, [block(1, 0)]), false);
  assert.equal(mayGroup(0b001, nodes, [block(1, 0)]), true);
  assert.equal(mayGroup(0b011, nodes, [block(1, 0, 1)]), true);
  assert.equal(mayGroup(0b110, nodes, [block(1, 0, 1)]), false);
  assert.equal(mayGroup(0b100, nodes, [block(1, 0, 1)]), true);
});
