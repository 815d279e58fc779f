/** Claims and volumes with the API server, the controllers and the scheduler together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PersistentVolume } from 'kubernetes-types/core/v1';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  await eventually(() => plane.of(resources.serviceAccounts).get('default', 'default'), 'a service account');
});
after(() => plane.stop());

const namespace = 'default';
const newVolume = (name: string, spec: Partial<NonNullable<PersistentVolume['spec']>> = {}) =>
  plane.of(resources.persistentVolumes).create({
    metadata: { name },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: `/v/${name}` }, ...spec },
  });
const newClaim = (name: string, storageClassName: string) =>
  plane.of(resources.persistentVolumeClaims).create({
    metadata: { name, namespace },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
  });
const phaseOfClaim = (name: string, phase: string) =>
  eventually(async () => {
    const claim = await plane.of(resources.persistentVolumeClaims).get(name, namespace);
    return claim.status?.phase === phase && claim;
  }, `claim ${name} to be ${phase}`);
const phaseOfVolume = (name: string, phase: string) =>
  eventually(async () => {
    const volume = await plane.of(resources.persistentVolumes).get(name);
    return volume.status?.phase === phase && volume;
  }, `volume ${name} to be ${phase}`);

test('a claim and a volume find each other, and the volume is released with its claim', async () => {
  await newClaim('static', 'static');
  await newVolume('of-static', { storageClassName: 'static' });
  const claim = await phaseOfClaim('static', 'Bound');
  assert.equal(claim.spec?.volumeName, 'of-static');
  assert.deepEqual(claim.status?.capacity, { storage: '1Gi' });
  const volume = await phaseOfVolume('of-static', 'Bound');
  assert.equal(volume.spec?.claimRef?.uid, claim.metadata?.uid);
  await plane.of(resources.persistentVolumeClaims).delete('static', namespace);
  await phaseOfVolume('of-static', 'Released');
});

test('many claims get as many volumes, one each', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  await Promise.all(names.flatMap((name) => [newClaim(name, 'many'), newVolume(name, { storageClassName: 'many' })]));
  const bound = await Promise.all(names.map((name) => phaseOfClaim(name, 'Bound')));
  assert.equal(new Set(bound.map(({ spec }) => spec?.volumeName)).size, 20);
});
