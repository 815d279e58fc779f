/** Claims and volumes with the API server, the controllers and the scheduler together. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PersistentVolume } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../harness.ts';

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

test('binds a claim to a volume, and releases the volume with its claim', async () => {
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

test('binds many claims to distinct volumes', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  await Promise.all(names.flatMap((name) => [newClaim(name, 'many'), newVolume(name, { storageClassName: 'many' })]));
  const bound = await Promise.all(names.map((name) => phaseOfClaim(name, 'Bound')));
  assert.equal(new Set(bound.map(({ spec }) => spec?.volumeName)).size, 20);
});

test('binds a pod only after its claim, on the node of the volume', async () => {
  await plane.of(resources.storageClasses).create({
    metadata: { name: 'late' },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  await plane.addNode('near');
  await plane.addNode('far');
  await newClaim('waits', 'late');
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'waits' } }];
  const pods = plane.of(resources.pods);
  await pods.create({
    metadata: { name: 'user', namespace },
    spec: { containers: [{ name: 'c', image: 'i' }], volumes },
  });
  // The scheduler may receive the pod before the nodes.
  await eventually(async () => {
    const pod = await pods.get('user', namespace);
    return pod.status?.conditions?.find(
      ({ type, status, message }) =>
        type === 'PodScheduled' &&
        status === 'False' &&
        /didn't find available persistent volumes to bind/.test(message ?? ''),
    );
  }, 'the pod to be unschedulable');
  const far = {
    nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['far'] }] }],
  };
  await newVolume('of-far', { storageClassName: 'late', nodeAffinity: { required: far } });
  const claimAtBinding = await eventually(async () => {
    if ((await pods.get('user', namespace)).spec?.nodeName === undefined) return undefined;
    return plane.of(resources.persistentVolumeClaims).get('waits', namespace);
  }, 'the pod to be bound');
  assert.equal(claimAtBinding.status?.phase, 'Bound');
  assert.equal((await pods.get('user', namespace)).spec?.nodeName, 'far');
});

test('sets the node on a claim of a provisioner, and lets its pod wait without blocking other pods', async () => {
  await plane.of(resources.storageClasses).create({
    metadata: { name: 'made' },
    provisioner: 'example.com/disks',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  await newClaim('ordered', 'made');
  const pods = plane.of(resources.pods);
  const newPod = (name: string, volumes: object[]) =>
    pods.create({ metadata: { name, namespace }, spec: { containers: [{ name: 'c', image: 'i' }], volumes } } as never);
  await newPod('buyer', [{ name: 'v', persistentVolumeClaim: { claimName: 'ordered' } }]);
  const node = await eventually(async () => {
    const claim = await plane.of(resources.persistentVolumeClaims).get('ordered', namespace);
    return claim.metadata?.annotations?.['volume.kubernetes.io/selected-node'];
  }, 'the selected node');
  await newPod('other', []);
  await eventually(async () => (await pods.get('other', namespace)).spec?.nodeName, 'the other pod');
  assert.equal((await pods.get('buyer', namespace)).spec?.nodeName, undefined);
  await newVolume('delivered', { storageClassName: 'made' });
  await plane.of(resources.persistentVolumes).patch('delivered', undefined, 'merge', {
    spec: { claimRef: { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name: 'ordered' } },
  });
  const bound = await eventually(async () => (await pods.get('buyer', namespace)).spec?.nodeName, 'the pod');
  assert.equal(bound, node);
});
