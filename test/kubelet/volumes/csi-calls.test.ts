/** Calls to a CSI driver, and the calls that undo work after its errors. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { attachmentNameOf } from '../../../src/api/volumes/attachment.ts';
import { toNodeName } from '../../../src/base/brand.ts';
import { silentLog } from '../../../src/base/log.ts';
import { AllocatableUpdates } from '../../../src/kubelet/volumes/csi/allocatable.ts';
import { AttachLimitError } from '../../../src/kubelet/volumes/csi/attachments.ts';
import { CsiContext } from '../../../src/kubelet/volumes/csi/context.ts';
import { CsiDrivers } from '../../../src/kubelet/volumes/csi/drivers.ts';
import { CsiError, type CsiNode } from '../../../src/kubelet/volumes/csi/port.ts';
import { CsiVolumes, type CsiVolumesOptions } from '../../../src/kubelet/volumes/csi/volumes.ts';
import { sha256Hex } from '../../../src/wire/digest.ts';
import { ManualClock, seededRandom, settle } from '../../client/clocks.ts';
import { MemoryApi } from '../memory-api.ts';
import { CsiNodeLab, DRIVER, UNIQUE } from './csi-node.ts';

const KEY = 'csi.storage.k8s.io/serviceAccount.tokens';

async function published(serviceAccountTokenInSecrets?: boolean) {
  let call: { secrets: Record<string, string>; volumeContext: Record<string, string> } | undefined;
  const publish = async (given: typeof call): Promise<void> => {
    call = given;
  };
  const spec = { tokenRequests: [{ audience: 'vault' }], volumeLifecycleModes: ['Ephemeral'] };
  const driver = { name: 'd', capabilities: new Set(), node: { publish } };
  const path = (...parts: readonly string[]): string => parts.join('/');
  const volumes = new CsiVolumes({
    drivers: {
      get: () => driver,
      object: async () => ({ spec: { ...spec, attachRequired: false, serviceAccountTokenInSecrets } }),
    },
    records: { get: async () => undefined, put: async () => {} },
    directories: { volume: path, asDriversKnow: path },
    files: { makeDirectory: async () => {} },
    staging: { inTurn: (_: unknown, work: () => Promise<void>) => work() },
    context: new CsiContext({ issued: async () => ({ token: 'ey', expiresAtMs: 0 }) }),
  } as unknown as CsiVolumesOptions);
  const pod: Pod = { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [] } };
  await volumes.setUp({ pod, volume: { name: 'v', csi: { driver: 'd' } } });
  return call;
}

/** Names of the calls that undo a volume whose staging failed with this code. */
async function undone(code: string): Promise<string[]> {
  const lab = new CsiNodeLab();
  lab.does.set('stage', () => Promise.reject(new CsiError(code, 'fake')));
  await assert.rejects(lab.setUp('u'), /MountVolume.MountDevice failed/);
  await lab.tearDown('u');
  await settle();
  return lab.calls.slice(1);
}

test('unstages a volume after failed staging, unless the error was final', async () => {
  assert.deepEqual(await undone('InvalidArgument'), ['unpublish']);
  for (const code of ['DeadlineExceeded', 'Unavailable', 'Aborted', 'ResourceExhausted', 'Canceled']) {
    assert.deepEqual(await undone(code), ['unpublish', 'unstage']);
  }
});

test('terminates a pod while its volume cannot be unstaged, and retries while the volume stays in use', async () => {
  const lab = new CsiNodeLab();
  lab.does.set('unstage', () => Promise.reject(new CsiError('Internal', 'fake')));
  await lab.setUp('u');
  await lab.tearDown('u');
  await settle();
  assert.deepEqual(lab.calls, ['stage', 'publish', 'unpublish', 'unstage']);
  const attempts: number[] = [];
  for (let seconds = 0.5; seconds <= 8; seconds += 0.5) {
    const before = lab.calls.length;
    await lab.clock.advance(500);
    if (lab.calls.length > before) attempts.push(seconds);
  }
  assert.deepEqual(attempts, [0.5, 1.5, 3.5, 7.5]);
  assert.deepEqual(lab.node()?.status?.volumesInUse, [UNIQUE]);
  // The maximum delay is 2 minutes and 2 seconds.
  await lab.clock.advance(600_000);
  lab.does.delete('unstage');
  const before = lab.calls.length;
  await lab.clock.advance(122_000);
  assert.deepEqual(lab.calls.slice(before), ['unstage']);
  assert.deepEqual(lab.node()?.status?.volumesInUse, []);
  assert.deepEqual([...lab.disk.keys()], []);
  await lab.clock.advance(300_000);
  assert.equal(lab.calls.length, before + 1);
});

test('unstages unused volumes after a restart, even when the driver registers later', async () => {
  const lab = new CsiNodeLab();
  lab.does.set('unstage', () => Promise.reject(new CsiError('Unavailable', 'fake')));
  await lab.setUp('gone');
  await lab.tearDown('gone');
  await settle();
  lab.does.clear();
  lab.isRegistered = false;
  lab.calls.length = 0;
  await lab.restart();
  await lab.clock.advance(60_000);
  assert.deepEqual([lab.calls, lab.node()?.status?.volumesInUse], [[], [UNIQUE]]);
  lab.isRegistered = true;
  await lab.staging.resume(DRIVER);
  await settle();
  assert.deepEqual([lab.calls, lab.node()?.status?.volumesInUse], [['unstage'], []]);
});

test('does not unstage volumes of running pods after a restart', async () => {
  const lab = new CsiNodeLab();
  await lab.setUp('runs');
  lab.calls.length = 0;
  await lab.restart();
  await lab.clock.advance(300_000);
  assert.deepEqual([lab.calls, lab.node()?.status?.volumesInUse], [[], [UNIQUE]]);
  await lab.tearDown('runs');
  await settle();
  assert.deepEqual(lab.calls, ['unpublish', 'unstage']);
});

test('unstages a volume that an older release staged without a record', async () => {
  const lab = new CsiNodeLab();
  lab.does.set('unstage', () => Promise.reject(new CsiError('Internal', 'fake')));
  await lab.setUp('u');
  for (const path of lab.disk.keys()) if (path.includes('/staged-volumes/')) lab.disk.delete(path);
  await lab.restart();
  await lab.tearDown('u');
  await lab.restart();
  lab.does.clear();
  await lab.clock.advance(10_000);
  assert.deepEqual([lab.calls.at(-1), [...lab.disk.keys()]], ['unstage', []]);
});

test('stages a volume again for the next pod and stops the unstage retries', async () => {
  const lab = new CsiNodeLab();
  lab.does.set('unstage', () => Promise.reject(new CsiError('InvalidArgument', 'fake')));
  await lab.setUp('first');
  await lab.tearDown('first');
  await settle();
  lab.calls.length = 0;
  await lab.setUp('second');
  await lab.clock.advance(300_000);
  assert.deepEqual(lab.calls, ['stage', 'publish']);
  // A further pod needs no staging, and it keeps the volume staged.
  await lab.setUp('third');
  await lab.tearDown('second');
  await lab.clock.advance(300_000);
  assert.deepEqual(lab.calls.slice(2), ['publish', 'unpublish']);
  lab.does.clear();
  await lab.tearDown('third');
  await settle();
  assert.deepEqual(lab.calls.slice(4), ['unpublish', 'unstage']);
});

test('waits for an unstage in progress before staging for the next pod', async () => {
  const lab = new CsiNodeLab();
  let end = (): void => {};
  lab.does.set('unstage', () => new Promise((resolve) => (end = resolve)));
  await lab.setUp('first');
  await lab.tearDown('first');
  await settle();
  const second = lab.setUp('second');
  await settle();
  assert.deepEqual(lab.calls, ['stage', 'publish', 'unpublish', 'unstage']);
  end();
  await second;
  await settle();
  assert.deepEqual(lab.calls.slice(4), ['stage', 'publish']);
  assert.deepEqual(lab.node()?.status?.volumesInUse, [UNIQUE]);
});

test('publishes volumes in use once the API server responds again', async () => {
  const lab = new CsiNodeLab();
  await lab.setUp('u');
  lab.api.down = true;
  await lab.tearDown('u');
  await lab.clock.advance(5_000);
  assert.deepEqual([lab.calls.at(-1), lab.node()?.status?.volumesInUse], ['unstage', [UNIQUE]]);
  lab.api.down = false;
  await lab.clock.advance(10_000);
  assert.deepEqual(lab.node()?.status?.volumesInUse, []);
});

test('publishes volumes in use without a warning once the Node has been read', async () => {
  const lab = new CsiNodeLab();
  await lab.setUp('u');
  lab.api.remove(resources.nodes, 'n1');
  await lab.restart();
  await lab.clock.advance(60_000);
  lab.api.put(resources.nodes, { metadata: { name: 'n1' } });
  assert.equal(await lab.attachments.isOutdated(), true);
  lab.staging.reportSoon();
  await settle();
  assert.deepEqual([lab.node()?.status?.volumesInUse, lab.warnings], [[UNIQUE], []]);
});

test('publishes volumes in use on a re-created Node', async () => {
  const lab = new CsiNodeLab();
  lab.api.put(resources.nodes, { metadata: { name: 'n1', uid: 'first' }, status: lab.node()?.status ?? {} });
  await lab.setUp('u');
  assert.deepEqual(lab.node()?.status?.volumesInUse, [UNIQUE]);
  assert.equal(await lab.attachments.isOutdated(), false);
  lab.api.put(resources.nodes, { metadata: { name: 'n1', uid: 'second' } });
  assert.equal(await lab.attachments.isOutdated(), true);
  await lab.attachments.report();
  assert.deepEqual(lab.node()?.status?.volumesInUse, [UNIQUE]);
  assert.deepEqual(await lab.attachments.inUse(), [UNIQUE]);
});

test('reports an iSCSI disk as in use, even when an older release recorded the disk without a name', async () => {
  const lab = new CsiNodeLab();
  const disk = { kind: 'iscsi', iqn: 'iqn.2001-04.com.example:disk', portals: ['192.0.2.1'], name: 'pv' };
  const record = (volume: string, more: object): void => {
    const text = JSON.stringify({ ...disk, uid: 'u', volume, ...more });
    lab.disk.set(`/vol/pods/u/mounts/${volume}`, text);
  };
  record('a', { block: false, staging: `/vol/plugins/kubernetes.io/iscsi/${disk.iqn}-lun-1`, path: '/p' });
  record('b', { block: true, staging: '', path: `/dev/disk/by-path/ip-192.0.2.1:3260-iscsi-${disk.iqn}-lun-2` });
  record('c', { block: true, staging: '', path: '/dev/sdx', unique: 'kubernetes.io/iscsi/x:y:3' });
  await lab.attachments.report();
  const [first, second] = [1, 2].map((lun) => `kubernetes.io/iscsi/192.0.2.1:${disk.iqn}:${lun}`);
  assert.deepEqual(lab.node()?.status?.volumesInUse, [first, second, 'kubernetes.io/iscsi/x:y:3']);
});

test('does not mount a volume whose attachment is being deleted', async () => {
  const lab = new CsiNodeLab();
  const name = attachmentNameOf('h', DRIVER, 'n1', sha256Hex);
  const attachment = lab.api.get(resources.volumeAttachments, name);
  assert.ok(attachment !== undefined);
  const metadata = { ...attachment.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  lab.api.put(resources.volumeAttachments, { ...attachment, metadata });
  const waiting = assert.rejects(lab.setUp('u'), /timed out waiting for the condition/);
  for (let at = 0; at < 60; at++) await lab.clock.advance(200);
  await waiting;
  assert.deepEqual(lab.calls, []);
});

test('fails a pod after two minutes if the node has reached its volume limit, and refreshes the limit of the driver', async () => {
  for (const period of [undefined, 60]) {
    const lab = new CsiNodeLab();
    lab.spec = { nodeAllocatableUpdatePeriodSeconds: period };
    lab.attach({ attached: false, attachError: { message: 'no slots', errorCode: 8 } });
    const tried = async (): Promise<unknown> => {
      const error = lab.setUp('u').then(
        () => undefined,
        (reason: unknown) => reason,
      );
      await lab.clock.advance(10_000);
      return error;
    };
    const noRoom = new Error('rpc error: no slots');
    assert.deepEqual(await tried(), noRoom);
    await lab.clock.advance(90_000);
    assert.deepEqual(await tried(), noRoom);
    assert.equal(lab.refreshed, 0);
    await lab.clock.advance(10_000);
    const last = await tried();
    if (period === undefined) assert.deepEqual(last, noRoom);
    else assert.ok(last instanceof AttachLimitError);
    assert.equal(lab.refreshed, period === undefined ? 0 : 1);
    // The next pod of the same name has its own timeout.
    await lab.tearDown('u');
    assert.deepEqual(await tried(), noRoom);
    lab.attach({ attached: true });
    assert.equal(await tried(), undefined);
  }
});

test('stops reporting a volume as in use when its driver no longer requires attachment', async () => {
  const lab = new CsiNodeLab();
  lab.attach({ attached: false });
  const failed = assert.rejects(lab.setUp('u'), /timed out waiting for the condition/);
  await lab.clock.advance(11_000);
  await failed;
  assert.deepEqual(lab.node()?.status?.volumesInUse, [UNIQUE]);
  lab.spec = { attachRequired: false };
  await lab.setUp('u');
  await settle();
  assert.deepEqual(lab.node()?.status?.volumesInUse, []);
});

test('refreshes the volume limit at the period in the CSIDriver', async () => {
  const api = new MemoryApi();
  const clock = new ManualClock();
  const log = silentLog;
  let maxVolumes = 5;
  api.put(resources.nodes, { metadata: { name: 'n1', uid: 'u' } });
  const info = async () => ({ nodeId: 'id', maxVolumes, topology: {} });
  const drivers = new CsiDrivers({
    nodeName: toNodeName('n1'),
    log,
    connect: () => ({ capabilities: async () => new Set(), info }) as unknown as CsiNode,
    onRegistered: (driver) => updates.registered(driver),
  });
  const random = seededRandom(1);
  const updates = new AllocatableUpdates({ drivers, clock, log, random });
  drivers.connect(api.client());
  updates.connect(api.client());
  const plugin = { type: 'CSIPlugin', name: DRIVER, endpoint: '/s', socket: '/s', versions: ['1.0.0'] };
  const count = () => api.get(resources.csiNodes, 'n1')?.spec.drivers[0]?.allocatable?.count;
  const setPeriod = (nodeAllocatableUpdatePeriodSeconds?: number): void => {
    const spec = { nodeAllocatableUpdatePeriodSeconds } as object;
    api.put(resources.csiDrivers, { metadata: { name: DRIVER }, spec });
  };
  await drivers.register(plugin);
  maxVolumes = 6;
  await clock.advance(100_000);
  assert.equal(count(), 5);
  setPeriod(20);
  await clock.advance(19_000);
  assert.equal(count(), 5);
  await clock.advance(1_000);
  assert.equal(count(), 6);
  maxVolumes = 0;
  await clock.advance(20_000);
  assert.equal(count(), undefined);
  maxVolumes = 7;
  setPeriod(undefined);
  await clock.advance(100_000);
  assert.equal(count(), undefined);
  setPeriod(10);
  await clock.advance(10_000);
  assert.equal(count(), 7);
  await drivers.deregister(plugin);
  await clock.advance(100_000);
  assert.deepEqual(api.get(resources.csiNodes, 'n1')?.spec.drivers, []);
  await updates.stop();
});

test('passes tokens as volume context, or as secrets if the driver requests secrets', async () => {
  const tokens = '{"vault":{"token":"ey","expirationTimestamp":"1970-01-01T00:00:00Z"}}';
  for (const inSecrets of [undefined, false]) {
    const call = await published(inSecrets);
    assert.deepEqual([call?.secrets, call?.volumeContext[KEY]], [{}, tokens]);
  }
  const call = await published(true);
  assert.deepEqual([call?.secrets, call?.volumeContext], [{ [KEY]: tokens }, {}]);
});
