/** Volumes restricted to one node, on a real API server. Drivers, kubelets and the scheduler are simulated. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Event, Node, PersistentVolumeSpec, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { VolumeAttachment } from '../../../../src/api/generated/storage/v1.ts';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import { uniqueIscsiName, uniqueVolumeName } from '../../../../src/api/volumes/attachment.ts';
import type { Clock } from '../../../../src/base/time/clock.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const namespace = 'default';
const DRIVER = 'd.test';
const VOLUMES = 10;
const iscsi = { targetPortal: '192.0.2.9', iqn: 'iqn.2001-04.com.example:disk', lun: 1 };

let passedMs = 0;
const clock: Clock = {
  nowMs: () => systemClock.nowMs(),
  monotonicMs: () => systemClock.monotonicMs() + passedMs,
  setTimer: (delayMs, callback) => systemClock.setTimer(delayMs, callback),
};

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false, clock });
  await eventually(() => plane.of(resources.serviceAccounts).get('default', namespace), 'a service account');
  for (const name of ['n1', 'n2']) await plane.addNode(name);
});
after(() => plane.stop());

async function newVolume(name: string, source: Partial<PersistentVolumeSpec>): Promise<void> {
  const capacity = { storage: '1Gi' };
  const accessModes = ['ReadWriteOnce'];
  await plane.of(resources.persistentVolumeClaims).create({
    metadata: { name, namespace },
    spec: { accessModes, resources: { requests: capacity }, storageClassName: '', volumeName: name },
  });
  await plane.of(resources.persistentVolumes).create({
    metadata: { name },
    spec: { capacity, accessModes, claimRef: { namespace, name }, ...source },
  });
  await eventually(async () => {
    const claim = await plane.of(resources.persistentVolumeClaims).get(name, namespace);
    return claim.status?.phase === 'Bound';
  }, `${name} to be bound`);
}

const newPod = (name: string, nodeName: string, volume: object): Promise<Pod> =>
  plane.of(resources.pods).create({
    metadata: { name, namespace },
    spec: { nodeName, containers: [{ name: 'c', image: 'i' }], volumes: [{ name: 'v', ...volume }] },
  });
const ofClaim = (claimName: string) => ({ persistentVolumeClaim: { claimName } });
const end = (name: string) => plane.of(resources.pods).delete(name, namespace, { gracePeriodSeconds: 0 });

const attachmentsOf = async (volume: string): Promise<VolumeAttachment[]> =>
  (await plane.of(resources.volumeAttachments).list()).items.filter(
    ({ spec }) => spec.source.persistentVolumeName === volume,
  );
const attachedTo = async (unique: string): Promise<string[]> =>
  (await plane.of(resources.nodes).list()).items
    .filter(({ status }) => status?.volumesAttached?.some(({ name }) => name === unique) === true)
    .map(({ metadata }) => metadata?.name ?? '');
const use = (node: string, ...volumesInUse: string[]): Promise<Node> =>
  plane.of(resources.nodes).patch(node, undefined, 'merge', { status: { volumesInUse } }, { subresource: 'status' });
const events = async (pod: string): Promise<Event[]> =>
  (await plane.of(resources.events).list({ namespace })).items.filter(
    ({ involvedObject }) => involvedObject.name === pod,
  );
const hasEvent = (pod: string, pattern: RegExp) =>
  eventually(async () => (await events(pod)).some(({ message }) => pattern.test(message ?? '')), `an event of ${pod}`);
const is = (unique: string, ...nodes: string[]) =>
  eventually(
    async () => (await attachedTo(unique)).join() === nodes.join(),
    `${unique} on ${nodes.join() || 'no node'}`,
  );
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const ready = (node: string, status: string) =>
  plane
    .of(resources.nodes)
    .patch(
      ...[node, undefined, 'strategic' as const],
      { status: { conditions: [{ type: 'Ready', status }] } },
      { subresource: 'status' },
    );

test('attaches a single-node volume once although pods on two nodes need the volume at the same time', async () => {
  const names = Array.from({ length: VOLUMES }, (_, at) => `csi${at}`);
  await Promise.all(names.map((name) => newVolume(name, { csi: { driver: DRIVER, volumeHandle: name } })));
  await Promise.all(
    names.flatMap((name) => ['n1', 'n2'].map((node) => newPod(`${name}-${node}`, node, ofClaim(name)))),
  );
  for (const name of names) {
    const [first] = await eventually(async () => {
      const found = await attachmentsOf(name);
      return found.length > 0 && found;
    }, `an attachment of ${name}`);
    const loser = first?.spec.nodeName === 'n1' ? 'n2' : 'n1';
    await hasEvent(
      `${name}-${loser}`,
      new RegExp(`^Multi-Attach error for volume "${name}" Volume is already used by pod`),
    );
  }
  await pause(500);
  for (const name of names) assert.equal((await attachmentsOf(name)).length, 1, name);
});

test('moves a volume to the next node after the present node has stopped using the volume', async () => {
  const [attachment] = await attachmentsOf('csi0');
  const from = attachment?.spec.nodeName ?? '';
  const to = from === 'n1' ? 'n2' : 'n1';
  const unique = uniqueVolumeName(DRIVER, 'csi0');
  await plane
    .of(resources.volumeAttachments)
    .patch(
      ...[attachment?.metadata?.name ?? '', undefined, 'merge' as const],
      { status: { attached: true } },
      { subresource: 'status' },
    );
  await is(unique, from);
  await hasEvent(`csi0-${from}`, /^AttachVolume.Attach succeeded for volume "csi0"/);
  await use(from, unique);
  await end(`csi0-${from}`);
  await pause(500);
  assert.deepEqual(
    (await attachmentsOf('csi0')).map(({ spec }) => spec.nodeName),
    [from],
  );
  await use(from);
  await eventually(
    async () => (await attachmentsOf('csi0')).map(({ spec }) => spec.nodeName).join() === to,
    'the move',
  );
  await is(unique);
});

test('records an iSCSI disk for one node at a time', async () => {
  const unique = uniqueIscsiName(iscsi);
  await newVolume('disk', { iscsi });
  await newPod('disk-1', 'n1', ofClaim('disk'));
  await is(unique, 'n1');
  await use('n1', unique);
  await newPod('disk-2', 'n2', ofClaim('disk'));
  await hasEvent('disk-2', /^Multi-Attach error for volume "disk" Volume is already used by pod\(s\) disk-1$/);
  await end('disk-1');
  await pause(300);
  assert.deepEqual(await attachedTo(unique), ['n1']);
  await use('n1');
  await is(unique, 'n2');
});

test('attaches an inline iSCSI disk to several nodes only for read-only pods', async () => {
  const disk = { ...iscsi, lun: 2 };
  const shared = { ...iscsi, lun: 3, readOnly: true };
  await newPod('writer-1', 'n1', { iscsi: disk });
  await is(uniqueIscsiName(disk), 'n1');
  await newPod('writer-2', 'n2', { iscsi: disk });
  await hasEvent('writer-2', /^Multi-Attach error for volume "v"/);
  await newPod('reader-1', 'n1', { iscsi: shared });
  await newPod('reader-2', 'n2', { iscsi: shared });
  await is(uniqueIscsiName(shared), 'n1', 'n2');
  assert.deepEqual(await attachedTo(uniqueIscsiName(disk)), ['n1']);
  for (const name of ['writer-1', 'writer-2', 'reader-1', 'reader-2']) await end(name);
  for (const each of [disk, shared]) await is(uniqueIscsiName(each));
});

test('restarts the six-minute timeout of an unhealthy node when a pod needed the volume in between', async () => {
  const disk = { ...iscsi, lun: 4 };
  const unique = uniqueIscsiName(disk);
  const touch = (): Promise<Node> =>
    plane
      .of(resources.nodes)
      .patch('n1', undefined, 'merge', { spec: { taints: [{ key: `t${passedMs}`, effect: 'PreferNoSchedule' }] } });
  await newVolume('again', { iscsi: disk });
  await newPod('again-1', 'n1', ofClaim('again'));
  await is(unique, 'n1');
  await use('n1', unique);
  await end('again-1');
  await pause(300);
  await newPod('again-2', 'n1', ofClaim('again'));
  await pause(300);
  passedMs += 400_000;
  await ready('n1', 'Unknown');
  await end('again-2');
  await newPod('again-3', 'n2', ofClaim('again'));
  await hasEvent('again-3', /^Multi-Attach error/);
  await touch();
  await pause(500);
  assert.deepEqual(await attachedTo(unique), ['n1'], 'the volume may be mounted on n1');
  passedMs += 400_000;
  await touch();
  await is(unique, 'n2');
  await end('again-3');
  await use('n1');
  await ready('n1', 'True');
});

test('keeps the last used volumes of a deleted Node for six minutes', async () => {
  await plane.addNode('n3');
  await newVolume('kept', { csi: { driver: DRIVER, volumeHandle: 'kept' } });
  await newPod('kept-3', 'n3', ofClaim('kept'));
  await eventually(async () => (await attachmentsOf('kept')).length === 1, 'the attachment');
  await use('n3', uniqueVolumeName(DRIVER, 'kept'));
  await pause(200);
  await plane.of(resources.nodes).delete('n3');
  await end('kept-3').catch((error: unknown) => assert.ok(isApiError(error, 'NotFound')));
  await newPod('kept-2', 'n2', ofClaim('kept'));
  await hasEvent('kept-2', /^Multi-Attach error for volume "kept" Volume is already exclusively attached/);
  await pause(500);
  assert.deepEqual(
    (await attachmentsOf('kept')).map(({ spec }) => spec.nodeName),
    ['n3'],
  );
  passedMs += 400_000;
  // Any change of a pod that uses the volume queues the volume.
  await end('kept-2');
  await newPod('kept-4', 'n2', ofClaim('kept'));
  await eventually(
    async () => (await attachmentsOf('kept')).map(({ spec }) => spec.nodeName).join() === 'n2',
    'the move',
  );
});

test('a new leader keeps volumes that an earlier leader has attached', async () => {
  const disk = { ...iscsi, lun: 5 };
  const unique = uniqueIscsiName(disk);
  await newVolume('led', { iscsi: disk });
  await newPod('led-1', 'n1', ofClaim('led'));
  await is(unique, 'n1');
  await use('n1', unique);
  await plane.controllers.stop();
  await end('led-1');
  const next = await startControlPlane({ kubelets: false, api: plane.api, identity: 'next' });
  try {
    await newPod('led-2', 'n2', ofClaim('led'));
    await hasEvent('led-2', /^Multi-Attach error for volume "led"/);
    assert.deepEqual(await attachedTo(unique), ['n1']);
    await use('n1');
    await is(unique, 'n2');
  } finally {
    await next.stop();
  }
});
