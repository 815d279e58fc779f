import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NodeSelectorTerm, Taint, Toleration } from '../../../src/api/generated/core/v1.ts';
import { matchesTerm } from '../../../src/api/podspec/node-terms.ts';
import { matchesNode } from '../../../src/api/podspec/scheduling/node-affinity.ts';
import { tolerates, untoleratedTaint } from '../../../src/api/podspec/scheduling/tolerations.ts';
import { node, pod } from './cluster-objects.ts';

const tolerations: readonly (readonly [string, Toleration, boolean])[] = [
  ['equal', { key: 'k', operator: 'Equal', value: 'v', effect: 'NoSchedule' }, true],
  ['equal is the default', { key: 'k', value: 'v' }, true],
  ['another value', { key: 'k', value: 'w' }, false],
  ['another key', { key: 'l', operator: 'Exists' }, false],
  ['another effect', { key: 'k', operator: 'Exists', effect: 'NoExecute' }, false],
  ['exists', { key: 'k', operator: 'Exists' }, true],
  ['everything', { operator: 'Exists' }, true],
  ['an empty key without Exists', { value: 'v' }, false],
];
const taint: Taint = { key: 'k', value: 'v', effect: 'NoSchedule' };

for (const [title, toleration, expected] of tolerations) {
  test(`toleration: ${title}`, () => assert.equal(tolerates(toleration, taint), expected));
}

test('considers only taints with the given effects', () => {
  assert.equal(untoleratedTaint([taint], [], ['NoExecute']), undefined);
  assert.equal(untoleratedTaint([taint], undefined, ['NoSchedule']), taint);
});

const requirement = (key: string, operator: string, ...values: string[]): NodeSelectorTerm => ({
  matchExpressions: [{ key, operator, values }],
});
const terms: readonly (readonly [string, NodeSelectorTerm, boolean])[] = [
  ['In', requirement('zone', 'In', 'a', 'b'), true],
  ['In, absent', requirement('none', 'In', 'a'), false],
  ['NotIn', requirement('zone', 'NotIn', 'c'), true],
  ['NotIn, absent', requirement('none', 'NotIn', 'c'), true],
  ['Exists', requirement('zone', 'Exists'), true],
  ['DoesNotExist', requirement('zone', 'DoesNotExist'), false],
  ['Gt', requirement('cores', 'Gt', '3'), true],
  ['Gt, equal', requirement('cores', 'Gt', '4'), false],
  ['Lt', requirement('cores', 'Lt', '5'), true],
  ['Lt, not a number', requirement('zone', 'Lt', '5'), false],
  ['an inherited property is no label', requirement('constructor', 'Exists'), false],
  ['the name as field', { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }, true],
  ['another name', { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['m'] }] }, false],
  ['nothing at all', {}, false],
];
const subject = node('n', { labels: { zone: 'a', cores: '4' } });

for (const [title, term, expected] of terms) {
  test(`node selector: ${title}`, () => assert.equal(matchesTerm(term, subject), expected));
}

test('requires nodeSelector and affinity, of which one alternative must match', () => {
  const affinity = (...each: NodeSelectorTerm[]) => ({
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: each } },
  });
  const both = pod({ spec: { nodeSelector: { zone: 'a' }, affinity: affinity(requirement('zone', 'In', 'x')) } });
  assert.equal(matchesNode(both, subject), false);
  const either = pod({ spec: { affinity: affinity(requirement('zone', 'In', 'x'), requirement('zone', 'In', 'a')) } });
  assert.equal(matchesNode(either, subject), true);
  assert.equal(matchesNode(pod({ spec: { affinity: affinity() } }), subject), false);
});
