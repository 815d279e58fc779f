/** Documents so large that one pass over them is a while: others have their turn between any two. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { schemaOfType } from '../../../src/api/schema/index.ts';
import { applyServerSide, applySteps, managedFieldsAfter, managedFieldsSteps } from '../../../src/core/patch/index.ts';

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

/** What each step took, and what came of all. */
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

it('works out who owns what a pass at a time, with the same result', () => {
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
    // Of five rounds one has no collection of garbage in its longest step.
    assert.ok(Math.min(...shares) < 0.6, `one step takes most of the time: ${shares.join(', ')}`);
  }
});

it('folds the entries of very many owners into one in no more than a moment', () => {
  const entries = Array.from({ length: 12_000 }, (_, n) => ({
    manager: `m${n}`,
    operation: 'Update',
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': { [`f:field-${n}`]: {} } },
  }));
  // None of what they own is there, so nobody takes it from them.
  const updated = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large', managedFields: entries } };
  const before = process.threadCpuUsage();
  const owners = managedFieldsAfter({ ...facts, live: undefined, updated });
  const { user, system } = process.threadCpuUsage(before);
  const [folded, ...others] = owners as { manager: string; fieldsV1: { 'f:data': object } }[];
  assert.equal(folded?.manager, 'ancient-changes');
  assert.equal(Object.keys(folded.fieldsV1['f:data']).length + others.length, entries.length);
  assert.equal(owners.length, 10);
  // One by one into a set that grows, it takes minutes.
  assert.ok(user + system < 5_000_000, `${user + system} µs`);
});
