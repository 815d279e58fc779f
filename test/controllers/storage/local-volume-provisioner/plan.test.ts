import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../../../src/api/generated/core/v1.ts';
import { volumeNames } from '../../../../src/api/volumes/local-provisioner.ts';
import {
  localStorageClass,
  planLocalClaim,
  planLocalVolume,
} from '../../../../src/controllers/storage/local-volume-provisioner/plan.ts';

const UID = '01234567-89ab-cdef-0123-456789abcdef';
const NAME = `pvc-${UID}`;
const node = (annotations: Record<string, string>): Node => ({
  metadata: { name: 'a', labels: { 'kubernetes.io/hostname': 'host-a' }, annotations },
});
const ready = node({ 'local-volumes.hyperedge.dev/directory': '/volumes' });
const claim = (spec: object = {}, more: Record<string, string> = {}): PersistentVolumeClaim => ({
  metadata: {
    name: 'c',
    namespace: 'n',
    uid: UID,
    annotations: {
      'volume.kubernetes.io/storage-provisioner': 'hyperedge.dev/local',
      'volume.kubernetes.io/selected-node': 'a',
      ...more,
    },
  },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const planned = (each: PersistentVolumeClaim, on: Node | undefined = ready) =>
  planLocalClaim(each, localStorageClass, (name) => (name === 'a' ? on : undefined));

describe('local volume provisioner', () => {
  it('creates a volume for the claim on its node', () => {
    const plan = planned(claim());
    assert.ok(plan.kind === 'create');
    const { metadata, spec } = plan.volume;
    assert.equal(metadata?.name, NAME);
    assert.deepEqual(metadata?.finalizers, ['hyperedge.dev/local-volume']);
    assert.equal(spec?.local?.path, `/volumes/${NAME}`);
    assert.equal(spec?.persistentVolumeReclaimPolicy, 'Delete');
    assert.deepEqual(spec?.claimRef?.uid, UID);
    assert.deepEqual(spec?.nodeAffinity?.required?.nodeSelectorTerms, [
      { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['host-a'] }] },
    ]);
  });

  it('ignores claims of other provisioners and rejects claims that a directory cannot serve', () => {
    const other = { 'volume.kubernetes.io/storage-provisioner': 'example.com/disks' };
    assert.equal(planned(claim({}, other)).kind, 'keep');
    assert.equal(planned(claim({ volumeName: 'v' })).kind, 'keep');
    for (const spec of [
      { accessModes: ['ReadWriteMany'] },
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'other' } },
    ]) {
      const plan = planned(claim(spec));
      assert.ok(plan.kind === 'fail');
      assert.match(
        plan.message,
        /^failed to provision volume with StorageClass "hyperedge-local": (accessModes|dataSource): /,
      );
    }
    assert.equal(planned(claim(), node({})).kind, 'fail');
  });

  it('removes the selected node from a claim when the node is deleted, so that the scheduler selects another', () => {
    const plan = planLocalClaim(claim(), localStorageClass, () => undefined);
    assert.ok(plan.kind === 'deselect');
    assert.equal(plan.claim.metadata?.annotations?.['volume.kubernetes.io/selected-node'], undefined);
  });

  it('deletes data only of released volumes with the policy Delete, and waits for their host', () => {
    const volume = (phase: string, deleting: boolean, policy = 'Delete'): PersistentVolume =>
      ({
        metadata: {
          name: NAME,
          annotations: { 'pv.kubernetes.io/provisioned-by': 'hyperedge.dev/local' },
          finalizers: ['hyperedge.dev/local-volume'],
          ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
        },
        spec: { persistentVolumeReclaimPolicy: policy },
        status: { phase },
      }) as never;
    const done = node({ 'local-volumes.hyperedge.dev/deleted': NAME });
    assert.equal(planLocalVolume(volume('Bound', false), ready), 'keep');
    assert.equal(planLocalVolume(volume('Bound', true), ready), 'keep');
    assert.equal(planLocalVolume(volume('Released', false), ready), 'delete');
    assert.equal(planLocalVolume(volume('Released', true), ready), 'deleteData');
    assert.equal(planLocalVolume(volume('Released', true), done), 'release');
    assert.equal(planLocalVolume(volume('Released', true), undefined), 'release');
    assert.equal(planLocalVolume(volume('Released', false, 'Retain'), ready), 'keep');
    assert.equal(planLocalVolume(volume('Released', true, 'Retain'), ready), 'release');
    const foreign = volume('Released', false);
    assert.equal(planLocalVolume({ ...foreign, metadata: { name: NAME } }, ready), 'keep');
  });

  it('local volume provisioner derives no path from names on a Node', () => {
    assert.deepEqual(volumeNames(`../etc,${NAME},,pvc-x/../..,${NAME}/..`), [NAME]);
    assert.deepEqual(volumeNames(undefined), []);
  });
});
