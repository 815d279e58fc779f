import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  applySetId,
  groupKindsText,
  inApplyOrder,
  parseGroupKinds,
} from '../../../../src/host/manifests/core/apply-set.ts';

test('computes the ID of an ApplySet as KEP-3659 specifies', () => {
  const hash = (text: string): string => createHash('sha256').update(text).digest('base64url');
  const id = applySetId({ name: 'my-set', namespace: 'test', kind: 'Secret', group: '' }, hash);
  assert.equal(id, 'applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1');
});

test('formats and parses the kinds of an ApplySet, sorted and without duplicates', () => {
  const kinds = [
    { group: 'apps', kind: 'Deployment' },
    { group: '', kind: 'ConfigMap' },
    { group: 'apps', kind: 'Deployment' },
  ];
  assert.equal(groupKindsText(kinds), 'ConfigMap,Deployment.apps');
  assert.deepEqual(parseGroupKinds('ConfigMap,Deployment.apps'), [kinds[1], kinds[0]]);
  assert.deepEqual(parseGroupKinds(undefined), []);
});

test('applies namespaces and definitions first', () => {
  const order = inApplyOrder([
    { group: 'lab.dev', kind: 'Rig' },
    { group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition' },
    { group: '', kind: 'Namespace' },
  ]);
  assert.deepEqual(
    order.map(({ kind }) => kind),
    ['Namespace', 'CustomResourceDefinition', 'Rig'],
  );
});
