/** Processing of large documents in steps, between which the event loop runs. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../../src/api/meta/object.ts';
import { schemaOfType } from '../../../../src/api/schema/index.ts';
import {
  applyServerSide,
  applySteps,
  managedFieldsAfter,
  managedFieldsSteps,
} from '../../../../src/apiserver/core/patch/index.ts';

const FIELDS = 20_000;
const facts = {
  manager: 'a',
  apiVersion: 'v1',
  schema: schemaOfType('io.k8s.api.core.v1.ConfigMap'),
  nowIso: '2026-01-01T00:00:00Z',
};

function configMap(value: string): JsonObject {
  const data = Object.fromEntries(Array.from({ length: FIELDS }, (_, n) => [`field-${n}`, value]));
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large' }, data };
}

/** Duration of each step, and the result. */
function timed<T>(steps: Generator<undefined, T>): { readonly took: number[]; readonly value: T } {
  const took: number[] = [];
  for (;;) {
    const before = process.threadCpuUsage();
    const step = steps.next();
    const { user, system } = process.threadCpuUsage(before);
    took.push(user + system);
    if (step.done === true) return { took, value: step.value };
  }
}

const most = (took: readonly number[]): number => Math.max(...took) / took.reduce((sum, each) => sum + each, 0);

it('computing field ownership in steps yields the same result as computing it at once', () => {
  const live = applyServerSide({ ...facts, live: undefined, applied: configMap('one'), force: false });
  const apply = { ...facts, manager: 'b', live, applied: configMap('two'), force: true };
  const update = { ...facts, manager: 'c', live, updated: configMap('three') };
  for (const [steps, expected] of [
    [() => applySteps(apply), applyServerSide(apply)],
    [() => managedFieldsSteps(update), managedFieldsAfter(update)],
  ] as const) {
    const shares: number[] = [];
    for (let round = 0; round < 5; round++) {
      const { took, value } = timed<unknown>(steps());
      if (round === 0) assert.deepEqual(value, expected);
      assert.ok(took.length >= 6, `${took.length} steps`);
      shares.push(most(took));
    }
    // At least one of five rounds has no garbage collection in its longest step.
    assert.ok(Math.min(...shares) < 0.6, `one step takes most of the time: ${shares.join(', ')}`);
  }
});

it('merges the entries of very many managers quickly', () => {
  const entries = Array.from({ length: 12_000 }, (_, n) => ({
    manager: `m${n}`,
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': { [`f:field-${n}`]: {} } },
  }));
  // The fields of the entries do not exist in the object, so they stay.
  const updated = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large', managedFields: entries } };
  const before = process.threadCpuUsage();
  const owners = managedFieldsAfter({ ...facts, live: undefined, updated });
  const { user, system } = process.threadCpuUsage(before);
  const [folded, ...others] = owners as { manager: string; fieldsV1: { 'f:data': object } }[];
  assert.equal(folded?.manager, 'ancient-changes');
  assert.equal(Object.keys(folded.fieldsV1['f:data']).length + others.length, entries.length);
  assert.equal(owners.length, 10);
  // Inserting the entries one by one into a growing set takes minutes.
  assert.ok(user + system < 5_000_000, `${user + system} µs`);
});

it('recording the owners of a large new object in steps yields the same result as recording them at once', () => {
  const pod = schemaOfType('io.k8s.api.core.v1.Pod');
  const many = <T>(make: (n: number) => T): T[] => Array.from({ length: 1_500 }, (_, n) => make(n));
  const labels = Object.fromEntries(many((n) => [`l${(n * 7919) % 1500}`, 'x']));
  const containers = many((n) => ({
    name: `c${n}`,
    ports: [{ containerPort: 80 }],
    resources: { limits: { cpu: '1' } },
  }));
  const spec = { containers, tolerations: many((n) => ({ key: `k${n}` })), nodeSelector: { ...labels, '.': 'x' } };
  const documents: readonly (readonly [JsonObject, typeof pod])[] = [
    [{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'large', labels, generation: 1 }, spec, status: {} }, pod],
    [
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'large' },
        spec: { ...spec, containers: [...containers, {}] },
      },
      pod,
    ],
    [{ apiVersion: 'x/v1', kind: 'Odd', spec: { deep: { labels, list: containers } } }, undefined],
    [configMap('one'), facts.schema],
  ];
  for (const [updated, schema] of documents) {
    for (const skeleton of [
      {},
      { spec: {}, status: { phase: 'Pending' } },
      { spec: { containers: null, tolerations: [] } },
      { spec: { nodeSelector: { l1: 'x' } } },
    ]) {
      const write = { ...facts, schema, live: undefined, updated, skeleton, resetFields: [['status']] };
      assert.equal(
        JSON.stringify(managedFieldsAfter({ ...write, large: true })),
        JSON.stringify(managedFieldsAfter(write)),
      );
    }
  }
});

it('recording the changes of a large object in steps yields the same result as recording them at once', () => {
  const pod = schemaOfType('io.k8s.api.core.v1.Pod');
  const containers = (from: number, image: string) =>
    Array.from({ length: 1_500 }, (_, n) => ({ name: `c${n + from}`, image, args: n % 7 === 0 ? ['x', image] : [] }));
  const podOf = (spec: object): JsonObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'large', uid: 'x' },
    spec: spec as JsonObject,
  });
  const states = [
    podOf({ containers: containers(0, 'a') }),
    podOf({ containers: containers(0, 'b') }),
    podOf({ containers: containers(3, 'a'), volumes: Array.from({ length: 1_200 }, (_, n) => ({ name: `v${n}` })) }),
    podOf({ containers: [...containers(0, 'a'), {}] }),
    podOf({ nodeSelector: configMap('x')['data'] ?? {} }),
    podOf({ nodeSelector: null, affinity: null }),
  ];
  for (const [from, before] of states.entries()) {
    const live = applyServerSide({
      ...facts,
      manager: 'b',
      schema: pod,
      live: undefined,
      applied: before,
      force: false,
    });
    for (const [to, updated] of states.entries()) {
      for (const schema of [pod, undefined]) {
        const write = { ...facts, schema, live, updated };
        const [large, small] = [managedFieldsAfter({ ...write, large: true }), managedFieldsAfter(write)];
        assert.equal(JSON.stringify(large), JSON.stringify(small), `from ${from} to ${to}`);
      }
    }
  }
});

it('applying a large configuration in steps yields the same result as applying it at once', () => {
  const live = applyServerSide({ ...facts, live: undefined, applied: configMap('one'), force: false });
  const apply = { ...facts, manager: 'b', live, applied: configMap('two'), force: true };
  assert.deepEqual(applyServerSide({ ...apply, large: true }), applyServerSide(apply));
});
