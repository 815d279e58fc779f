import assert from 'node:assert/strict';
import { test } from 'node:test';
import { freeOf, mayGroup, sumIn } from '../../../../src/kubelet/core/topology/blocks.ts';

const nodes = [
  { id: 0, allocatable: { memory: 100 } },
  { id: 1, allocatable: { memory: 100 } },
  { id: 2, allocatable: { memory: 100 } },
];
const block = (size: number, ...numaAffinity: number[]) => ({ numaAffinity, type: 'memory', size });

test('assigns a memory block that spans several NUMA nodes to the first of the nodes with free memory', () => {
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

test('does not group a NUMA node with a single-node memory block, and keeps existing groups unchanged', () => {
  assert.equal(mayGroup(0b011, nodes, [block(1, 0)]), false);
  assert.equal(mayGroup(0b001, nodes, [block(1, 0)]), true);
  assert.equal(mayGroup(0b011, nodes, [block(1, 0, 1)]), true);
  assert.equal(mayGroup(0b110, nodes, [block(1, 0, 1)]), false);
  assert.equal(mayGroup(0b100, nodes, [block(1, 0, 1)]), true);
});
