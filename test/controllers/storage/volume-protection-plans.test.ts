import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../../src/api/generated/core/v1.ts';
import { claimNames } from '../../../src/api/volumes/pod-claims.ts';
import { withPlannedFinalizer } from '../../../src/controllers/framework/core/protection-finalizer.ts';
import { planClaim, usesClaim } from '../../../src/controllers/storage/persistent-volume-claim-protection/plan.ts';
import { planVolume } from '../../../src/controllers/storage/persistent-volume-protection/plan.ts';

const CLAIM = 'kubernetes.io/pvc-protection';
const VOLUME = 'kubernetes.io/pv-protection';
const DELETED = '2026-01-01T00:00:00Z';

const pod = (nodeName: string | undefined, volume: object): Pod =>
  ({
    metadata: { name: 'p', uid: 'u' },
    spec: { containers: [], volumes: [volume], ...(nodeName === undefined ? {} : { nodeName }) },
  }) as unknown as Pod;
const claim = (name: string, more: object = {}): PersistentVolumeClaim => ({ metadata: { name, ...more } });
const named = { name: 'v', persistentVolumeClaim: { claimName: 'c' } };
const own = { name: 'v', ephemeral: {} };

describe('protection of claims and volumes', () => {
  it('a pod on a node holds the claims that it references and its generic ephemeral claims', () => {
    const ownedBy = (uid: string) => ({
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true }],
    });
    assert.equal(usesClaim(pod('n', named), claim('c')), true);
    assert.equal(usesClaim(pod('n', named), claim('d')), false);
    assert.equal(usesClaim(pod(undefined, named), claim('c')), false);
    assert.equal(usesClaim(pod('n', own), claim('p-v', ownedBy('u'))), true);
    assert.equal(usesClaim(pod('n', own), claim('p-v', ownedBy('other'))), false);
    assert.deepEqual([...claimNames(pod('n', named)), ...claimNames(pod('n', own))], ['c', 'p-v']);
    assert.deepEqual(claimNames(pod('n', { name: 'v', emptyDir: {} })), []);
  });

  it('keeps the finalizer until a deleted object is no longer used', () => {
    const user = pod('n', named);
    const held = { finalizers: [CLAIM] };
    const going = { ...held, deletionTimestamp: DELETED as never };
    assert.equal(planClaim(claim('c'), []), 'add');
    assert.equal(planClaim(claim('c', held), []), 'keep');
    assert.equal(planClaim(claim('c', going), [user]), 'keep');
    assert.equal(planClaim(claim('c', going), [pod('n', own)]), 'remove');
    assert.equal(planClaim(claim('c', { deletionTimestamp: DELETED }), []), 'keep');
    const volume = (phase: string, metadata: object): PersistentVolume => ({ metadata, status: { phase } }) as never;
    assert.equal(planVolume(volume('Available', {})), 'add');
    assert.equal(planVolume(volume('Bound', { finalizers: [VOLUME], deletionTimestamp: DELETED })), 'keep');
    assert.equal(planVolume(volume('Released', { finalizers: [VOLUME], deletionTimestamp: DELETED })), 'remove');
  });

  it('protection of claims and volumes adds and removes only its own finalizer', () => {
    const object = claim('c', { finalizers: ['other', CLAIM] });
    assert.deepEqual(withPlannedFinalizer(object, CLAIM, 'remove').metadata?.finalizers, ['other']);
    assert.deepEqual(withPlannedFinalizer(claim('c', { finalizers: ['other'] }), CLAIM, 'add').metadata?.finalizers, [
      'other',
      CLAIM,
    ]);
  });
});
