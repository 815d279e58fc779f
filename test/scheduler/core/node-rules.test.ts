import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeSelectorTerm, Taint, Toleration } from '../../../src/api/generated/core/v1.ts';
import { matchesTerm } from '../../../src/api/podspec/node-terms.ts';
import { matchesNode } from '../../../src/api/podspec/scheduling/node-affinity.ts';
import { tolerates, untoleratedTaint } from '../../../src/api/podspec/scheduling/tolerations.ts';
import { node, pod } from './cluster-objects.ts';

const tolerations: readonly (readonly [string, Toleration, boolean])[] = [
  ['operator Equal and the same value', { key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' }, true],
  ['the same value and no operator', { key: 'k', value: 'v' }, true],
  ['another value', { key: 'k', value: 'w' }, false],
  ['another key', { key: 'l', operator: 'Exists' }, false],
  ['another effect', { key: 'k', operator: 'Exists', effect: 'NoExecute' }, false],
  ['operator Exists and the same key', { key: 'k', operator: 'Exists' }, true],
  ['operator Exists and no key', { operator: 'Exists' }, true],
  ['neither key nor operator', { value: 'v' }, false],
];
const taint: Taint = { key: 'k', value: 'v', effect: 'NoSchedule' };

for (const [title, toleration, expected] of tolerations) {
  test(`a toleration with ${title} ${expected ? 'tolerates' : 'does not tolerate'} the taint k=v:NoSchedule`, () =>
    assert.equal(tolerates(toleration, taint), expected));
}

test('checks tolerations only for taints with the given effects', () => {
  assert.equal(untoleratedTaint([taint], [], ['NoExecute']), undefined);
  assert.equal(untoleratedTaint([taint], undefined, ['NoSchedule']), taint);
});

const requirement = (key: string, operator: string, ...values: string[]): NodeSelectorTerm => ({
  matchExpressions: [{ key, operator, values }],
});
const terms: readonly (readonly [string, NodeSelectorTerm, boolean])[] = [
  ['In and a listed value', requirement('zone', 'In', 'a', 'b'), true],
  ['In and an absent label', requirement('none', 'In', 'a'), false],
  ['NotIn and an unlisted value', requirement('zone', 'NotIn', 'c'), true],
  ['NotIn and an absent label', requirement('none', 'NotIn', 'c'), true],
  ['Exists and a present label', requirement('zone', 'Exists'), true],
  ['DoesNotExist and a present label', requirement('zone', 'DoesNotExist'), false],
  ['Gt and a greater label', requirement('cores', 'Gt', '3'), true],
  ['Gt and an equal label', requirement('cores', 'Gt', '4'), false],
  ['Lt and a smaller label', requirement('cores', 'Lt', '5'), true],
  ['Lt and a label that is not a number', requirement('zone', 'Lt', '5'), false],
  ['Exists and the name of a prototype property', requirement('constructor', 'Exists'), false],
  ['the name of the node as field', { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }, true],
  [
    'the name of another node as field',
    { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['m'] }] },
    false,
  ],
  ['no requirement', {}, false],
];
const subject = node('n', { labels: { zone: 'a', cores: '4' } });

for (const [title, term, expected] of terms) {
  test(`a node selector term with ${title} ${expected ? 'matches' : 'does not match'}`, () =>
    assert.equal(matchesTerm(term, subject), expected));
}

test('a node must match nodeSelector and at least one term of the node affinity', () => {
  const affinity = (...each: NodeSelectorTerm[]) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: each } },
  });
  const both = pod({ spec: { nodeSelector: { zone: 'a' }, affinity: affinity(requirement('zone', 'In', 'x')) } });
  assert.equal(matchesNode(both, subject), false);
  const either = pod({ spec: { affinity: affinity(requirement('zone', 'In', 'x'), requirement('zone', 'In', 'a')) } });
  assert.equal(matchesNode(either, subject), true);
  assert.equal(matchesNode(pod({ spec: { affinity: affinity() } }), subject), false);
});
