import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { explainNode } from '../../../../src/console/data/hosts/explain-node.ts';
import { explainRig } from '../../../../src/console/data/hosts/explain-rig.ts';

const READY = { type: 'Ready', status: 'True' };
const node = (name: string, fixtures: Readonly<Record<string, string>> = {}, conditions: object[] = [READY]): Node =>
  ({
    metadata: { name },
    status: {
      conditions,
      capacity: Object.fromEntries(Object.keys(fixtures).map((each) => [`rig.hyperedge.dev/${each}`, '1'])),
      allocatable: Object.fromEntries(
        Object.entries(fixtures).map(([each, amount]) => [`rig.hyperedge.dev/${each}`, amount]),
      ),
    },
  }) as Node;
const rig = (spec: object, status: object = {}) => ({ metadata: { name: 'bench' }, spec, status });
const fixtures = [
  { fixture: 'board', role: 'serial' },
  { fixture: 'relay', role: 'power' },
];
const titles = (found: readonly { title: string }[]): readonly string[] => found.map(({ title }) => title);

describe('explanation of a rig that does not answer', () => {
  test('names each fixture that no host reports', () => {
    assert.deepEqual(titles(explainRig(rig({ fixtures }), [node('a', { relay: '1' })])), [
      'The fixture board (serial) is on no host.',
    ]);
  });

  test('names the hosts if the fixtures are on different ones', () => {
    const nodes = [node('a', { board: '1' }), node('b', { relay: '1' })];
    assert.match(
      titles(explainRig(rig({ fixtures }), nodes))[0] ?? '',
      /board \(serial\) on a, relay \(power\) on b\.$/,
    );
  });

  test('names the host that is not reachable, and a fixture that was unplugged', () => {
    const lost = node('a', { board: '1' }, [{ type: 'Ready', status: 'Unknown' }]);
    const used = rig({ fixtures }, { node: 'a' });
    assert.deepEqual(titles(explainRig(used, [lost])), ['The host a of the rig is not reachable.']);
    assert.deepEqual(titles(explainRig(used, [node('a', { board: '0', relay: '1' })])), [
      'The host a does not reach 1 fixture of the rig: board.',
    ]);
    assert.deepEqual(explainRig(used, [node('a', { board: '1', relay: '1' })]), []);
  });
});

describe('explanation of a node', () => {
  test('has a cause, the message of the kubelet and a fix for a node that is not ready or short of disk', () => {
    const conditions = [
      { type: 'Ready', status: 'False', message: 'node is shutting down' },
      { type: 'DiskPressure', status: 'True', message: 'kubelet has disk pressure' },
    ];
    const [first, second] = explainNode(node('a', {}, conditions));
    assert.match(first?.title ?? '', /shutting down/);
    assert.equal(second?.detail, 'kubelet has disk pressure');
    assert.match(second?.fix ?? '', /Delete unused images/);
    assert.deepEqual(explainNode(node('a')), []);
  });
});
