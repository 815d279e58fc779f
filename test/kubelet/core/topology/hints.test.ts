import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideTopology, hintsFor, inMask, nodeMask } from '../../../../src/kubelet/core/topology/hints.ts';

const NODES = [0, 1];
const inNodes =
  (amounts: readonly number[]) =>
  (mask: number): number =>
    amounts.reduce((sum, amount, node) => sum + (inMask(mask, node) ? amount : 0), 0);
const hints = (requested: number, total: readonly number[], free: readonly number[]) =>
  hintsFor(NODES, requested, inNodes(total), inNodes(free));

test('prefers a set of NUMA nodes only if no smaller set can serve the request', () => {
  assert.deepEqual(hints(2, [4, 4], [1, 4]), [
    { nodes: 0b10, preferred: true },
    { nodes: 0b11, preferred: false },
  ]);
  assert.deepEqual(hints(6, [4, 4], [4, 4]), [{ nodes: 0b11, preferred: true }]);
  assert.deepEqual(hints(2, [4, 4], [1, 0]), []);
  assert.equal(nodeMask([0, 2]), 0b101);
});

test('aligns resources of a container to a common NUMA node', () => {
  const cpu = hints(2, [4, 4], [4, 4]);
  const memory = hints(5, [8, 8], [1, 8]);
  for (const policy of ['best-effort', 'restricted', 'single-numa-node'] as const)
    assert.deepEqual(decideTopology(policy, NODES, [cpu, memory, undefined]), {
      admitted: true,
      hint: { nodes: 0b10, preferred: true },
    });
});

test('only the policy best-effort admits requests that cannot be aligned', () => {
  const cpu = hints(4, [4, 4], [4, 0]);
  const memory = hints(8, [8, 8], [0, 8]);
  assert.equal(decideTopology('none', NODES, [cpu, memory]).hint, undefined);
  assert.equal(decideTopology('best-effort', NODES, [cpu, memory]).admitted, true);
  assert.equal(decideTopology('restricted', NODES, [cpu, memory]).admitted, false);
  assert.equal(decideTopology('single-numa-node', NODES, [cpu, memory]).admitted, false);
});

test('restricted admits and aligns a request larger than a NUMA node, and single-numa-node rejects the request', () => {
  const cpu = hints(6, [4, 4], [4, 4]);
  assert.equal(decideTopology('restricted', NODES, [cpu]).admitted, true);
  assert.equal(decideTopology('single-numa-node', NODES, [cpu]).admitted, false);
  assert.equal(decideTopology('single-numa-node', NODES, [undefined]).admitted, true);
});
