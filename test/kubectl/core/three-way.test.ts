import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../../../src/kubectl/core/openapi.ts';
import { type MergeSchema, mergePatchFor, threeWayMerge } from '../../../src/kubectl/core/three-way.ts';

const merged = { 'x-kubernetes-patch-strategy': 'merge' };
const container: Schema = {
  properties: {
    name: { type: 'string' },
    ports: { ...merged, 'x-kubernetes-patch-merge-key': 'containerPort', items: { type: 'object' } },
    args: { items: { type: 'string' } },
  },
};
const SCHEMA: MergeSchema = {
  schemas: { Container: container },
  root: {
    properties: {
      containers: {
        ...merged,
        'x-kubernetes-patch-merge-key': 'name',
        items: { $ref: '#/components/schemas/Container' },
      },
      finalizers: { ...merged, items: { type: 'string' } },
      tolerations: { items: { type: 'object' } },
      strategy: { 'x-kubernetes-patch-strategy': 'retainKeys', properties: { type: { type: 'string' } } },
    },
  },
};

const apply = (former: unknown, manifest: unknown, live: unknown): unknown =>
  threeWayMerge(former, manifest, live, SCHEMA);

test('keeps fields of other writers and removes fields that are no longer in the manifest', () => {
  const former = { data: { a: '1', old: 'x' }, labels: { l: '1' } };
  const live = { data: { a: '1', old: 'x', other: 'y' }, labels: { l: '1' }, status: { n: 1 } };
  const result = apply(former, { data: { a: '2' } }, live);
  assert.deepEqual(result, { data: { a: '2', other: 'y' }, status: { n: 1 } });
  assert.deepEqual(mergePatchFor(live, result), { data: { a: '2', old: null }, labels: null });
});

test('merges list elements by their key and keeps the order of the live object', () => {
  const live = {
    containers: [
      { name: 'injected', image: 'i' },
      { name: 'main', image: '1', pullPolicy: 'Always', ports: [{ containerPort: 80, protocol: 'TCP' }] },
    ],
  };
  const manifest = { containers: [{ name: 'main', image: '1', ports: [{ containerPort: 80 }] }] };
  assert.deepEqual(apply(manifest, manifest, live), live);
  const changed = { containers: [{ name: 'main', image: '2' }, { name: 'new' }] };
  assert.deepEqual(apply(manifest, changed, live), {
    containers: [{ name: 'injected', image: 'i' }, { name: 'main', image: '2', pullPolicy: 'Always' }, { name: 'new' }],
  });
});

test('removes list elements that are only in the previous manifest', () => {
  const live = { containers: [{ name: 'a' }, { name: 'b' }, { name: 'c' }], finalizers: ['x', 'y'] };
  const former = { containers: [{ name: 'a' }, { name: 'b' }], finalizers: ['x'] };
  assert.deepEqual(apply(former, { containers: [{ name: 'b' }], finalizers: ['z'] }, live), {
    containers: [{ name: 'b' }, { name: 'c' }],
    finalizers: ['y', 'z'],
  });
});

test('a three-way patch reorders list elements if the manifest orders them differently', () => {
  const live = { containers: [{ name: 'a' }, { name: 'b' }] };
  const manifest = { containers: [{ name: 'b' }, { name: 'a' }] };
  assert.deepEqual(apply(live, manifest, live), manifest);
});

test('replaces lists without a merge key, and removes other members of a union', () => {
  const live = {
    tolerations: [{ key: 'a' }, { key: 'added' }],
    strategy: { type: 'RollingUpdate', rollingUpdate: {} },
  };
  const manifest = { tolerations: [{ key: 'a' }], strategy: { type: 'Recreate' } };
  assert.deepEqual(apply(manifest, manifest, live), manifest);
  const same = { strategy: { type: 'RollingUpdate' } };
  assert.deepEqual(apply(same, same, { strategy: live.strategy }), { strategy: live.strategy });
});

test('a three-way patch treats names of prototypes as data', () => {
  const manifest = JSON.parse('{"data":{"__proto__":"x","constructor":"y"}}');
  const result = apply(undefined, manifest, { data: {} }) as { data: object };
  assert.deepEqual(Object.entries(result.data), [
    ['__proto__', 'x'],
    ['constructor', 'y'],
  ]);
  assert.deepEqual(Object.keys(mergePatchFor({}, result) ?? {}), ['data']);
});
