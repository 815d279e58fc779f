/** Deleted claims and volumes stay while they are in use, with the API server's and the controllers' parts together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PersistentVolume, Pod } from '../../../src/api/generated/core/v1.ts';
import { isApiError } from '../../../src/api/meta/status.ts';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
  await eventually(() => plane.of(resources.serviceAccounts).get('default', 'default'), 'a service account');
});
after(() => plane.stop());

const namespace = 'default';
const isGone = (read: () => Promise<unknown>) =>
  eventually(async () => {
    try {
      await read();
      return false;
    } catch (error) {
      return isApiError(error, 'NotFound');
    }
  }, 'it to be gone');

test('keeps a deleted claim while pods on nodes use the claim', async () => {
  const claims = plane.of(resources.persistentVolumeClaims);
  const pods = plane.of(resources.pods);
  const newClaim = (name: string) =>
    claims.create({
      metadata: { name, namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
  const newPod = (name: string, more: Partial<NonNullable<Pod['spec']>>) =>
    pods.create({
      metadata: { name, namespace },
      spec: {
        containers: [{ name: 'c', image: 'i' }],
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'used' } }],
        ...more,
      },
    });
  const made = await newClaim('used');
  assert.deepEqual(made.metadata?.finalizers, ['kubernetes.io/pvc-protection']);
  await newClaim('unused');
  await newPod('holder', { nodeName: 'n' });
  await newPod('waiting', { schedulerName: 'nobody' });
  await claims.delete('used', namespace);
  await claims.delete('unused', namespace);
  await isGone(() => claims.get('unused', namespace));
  assert.notEqual((await claims.get('used', namespace)).metadata?.deletionTimestamp, undefined);
  await pods.delete('holder', namespace, { gracePeriodSeconds: 0 });
  await isGone(() => claims.get('used', namespace));
});

test('keeps a deleted volume while the volume is bound', async () => {
  const volumes = plane.of(resources.persistentVolumes);
  const volume: PersistentVolume = {
    metadata: { name: 'v' },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/v' } },
  };
  const made = await volumes.create(volume);
  assert.deepEqual(made.metadata?.finalizers, ['kubernetes.io/pv-protection']);
  const become = (phase: string) =>
    volumes.patch('v', undefined, 'merge', { status: { phase } }, { subresource: 'status' });
  await become('Bound');
  await volumes.delete('v');
  assert.notEqual((await volumes.get('v')).metadata?.deletionTimestamp, undefined);
  await become('Released');
  await isGone(() => volumes.get('v'));
});

test('keeps a deleted VolumeAttributesClass while claims reference the class', async () => {
  const classes = plane.of(resources.volumeAttributesClasses);
  const claims = plane.of(resources.persistentVolumeClaims);
  await classes.create({ metadata: { name: 'gold' }, driverName: 'd.test', parameters: { iops: '1' } } as never);
  await eventually(async () => (await classes.get('gold')).metadata?.finalizers?.length === 1, 'the finalizer');
  await claims.create({
    metadata: { name: 'golden', namespace },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeAttributesClassName: 'gold',
    },
  });
  await classes.delete('gold');
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.notEqual((await classes.get('gold')).metadata?.deletionTimestamp, undefined);
  await claims.delete('golden', namespace);
  await isGone(() => classes.get('gold'));
});
