import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim } from '../../../../src/api/generated/core/v1.ts';
import type { JsonObject } from '../../../../src/api/meta/object.ts';
import { resources } from '../../../../src/api/resources.ts';
import { schemaOf } from '../../../../src/api/schema/index.ts';
import { awaitsNodeExpansion, expandedStatus } from '../../../../src/api/volumes/expansion.ts';
import { strategicMergePatch } from '../../../../src/apiserver/core/patch/index.ts';
import { planExpansion } from '../../../../src/controllers/storage/persistent-volume-expander/plan.ts';

const claim = (status: object = {}): PersistentVolumeClaim =>
  ({
    metadata: { name: 'c', namespace: 'x', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: 'pv1', resources: { requests: { storage: '2Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '1Gi' }, ...status },
  }) as PersistentVolumeClaim;
const volume = (storage: string, provisioner = 'hyperedge.dev/local', source: object = {}): PersistentVolume => ({
  metadata: { name: 'pv1', annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
  spec: { capacity: { storage }, ...source },
});

test('expands a local volume: updates the claim, then the volume, then waits for the node', () => {
  const first = planExpansion(claim(), volume('1Gi'), 0);
  assert.ok(first.kind === 'status');
  assert.deepEqual((first.status as { conditions: unknown }).conditions, [
    { type: 'Resizing', status: 'True', lastTransitionTime: '1970-01-01T00:00:00Z' },
  ]);
  const growing = claim(first.status);
  const second = planExpansion(growing, volume('1Gi'), 0);
  assert.ok(second.kind === 'volume');
  assert.deepEqual(second.volume.spec?.capacity, { storage: '2Gi' });
  const third = planExpansion(growing, second.volume, 0);
  assert.ok(third.kind === 'status');
  const waiting = claim({ ...first.status, ...third.status });
  assert.deepEqual(planExpansion(waiting, second.volume, 0), { kind: 'keep' });
  assert.equal(awaitsNodeExpansion(waiting), true);
  const schema = schemaOf(resources.persistentVolumeClaims);
  assert.ok(schema !== undefined);
  const patch = { status: expandedStatus(waiting, '2Gi') } as JsonObject;
  const done = strategicMergePatch(waiting as unknown as JsonObject, patch, schema) as unknown as PersistentVolumeClaim;
  assert.deepEqual(planExpansion(done, second.volume, 0), { kind: 'keep' });
  assert.equal(awaitsNodeExpansion(done), false);
});

test("does not expand a CSI volume, and emits upstream's event", () => {
  const csi = { csi: { driver: 'd', volumeHandle: 'h' } };
  const plan = planExpansion(claim(), volume('1Gi', 'd', csi), 0);
  assert.deepEqual([plan.kind, plan.kind === 'event' && plan.reason], ['event', 'ExternalExpanding']);
  assert.deepEqual(planExpansion(claim({ capacity: { storage: '2Gi' } }), volume('2Gi'), 0), { kind: 'keep' });
  assert.deepEqual(planExpansion(claim({ phase: 'Pending' }), volume('1Gi'), 0), { kind: 'keep' });
});
