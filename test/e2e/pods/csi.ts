/** Volumes of a CSI driver that registers with the kubelet. The test acts as its attacher. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Container, PersistentVolumeSpec } from '../../../src/api/generated/core/v1.ts';
import { TestDriver } from '../../csi/driver.ts';
import { eventually } from '../harness.ts';
import { idle, type PodLab, pod, secret, shell } from './lab.ts';

const LIMIT = { timeout: 120_000 };

const kubeletRoot = (lab: PodLab): string => join(lab.appliance.root, 'var/lib/origin/openshift.local.volumes');

async function startDriver(lab: PodLab, name: string, spec: object = {}): Promise<TestDriver> {
  await lab.apply({ apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver', metadata: { name }, spec });
  const driver = new TestDriver({
    name,
    nodeId: `id-of-${name}`,
    directory: join(lab.scratch, name),
    registry: join(kubeletRoot(lab), 'plugins_registry'),
  });
  await driver.start();
  await eventually(`${name} to be registered`, 20_000, async () => (driver.registered === true ? true : undefined));
  return driver;
}

const boundPair = (name: string, driver: string, more: Partial<PersistentVolumeSpec> = {}): object[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      capacity: { storage: '10Mi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      claimRef: { namespace: 'default', name },
      csi: { driver, volumeHandle: `handle-${name}`, fsType: 'ext4', volumeAttributes: { colour: 'red' } },
      ...more,
    },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default' },
    spec: {
      accessModes: more.accessModes ?? ['ReadWriteOnce'],
      storageClassName: '',
      volumeName: name,
      resources: { requests: { storage: '10Mi' } },
      ...(more.volumeMode === undefined ? {} : { volumeMode: more.volumeMode }),
    },
  },
];

const user = (name: string, claim: string, container: Container, more: object = {}): object =>
  pod(name, {
    ...more,
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
    containers: [container],
  });

const MOUNT = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };

async function mountsBelow(path: string): Promise<string[]> {
  const text = await readFile('/proc/self/mountinfo', 'utf8');
  return text.split('\n').flatMap((line) => (line.includes(path) ? [line] : []));
}

export function csiTests(lab: () => PodLab): void {
  test('attaches, stages, publishes and measures a CSI volume, and reverses the steps in order', LIMIT, async () => {
    const name = 'attached.csi.test';
    const driver = await startDriver(lab(), name, { podInfoOnMount: true });
    try {
      const [node] = (await lab().kubectl('get', 'nodes', '-o', 'name')).trim().split('\n');
      const nodeName = node?.replace('node/', '') ?? '';
      const csiNode = JSON.parse(await lab().kubectl('get', 'csinode', nodeName, '-o', 'json'));
      assert.deepEqual(
        csiNode.spec.drivers.find((each: { name: string }) => each.name === name),
        { name, nodeID: `id-of-${name}`, topologyKeys: [`topology.${name}/node`], allocatable: { count: 7 } },
      );
      await lab().apply(
        secret('stage-key', { password: 'hunter2' }),
        ...boundPair('attached', name, {
          csi: {
            driver: name,
            volumeHandle: 'handle-attached',
            fsType: 'ext4',
            volumeAttributes: { colour: 'red' },
            nodeStageSecretRef: { name: 'stage-key', namespace: 'default' },
          },
        }),
        user('uses-csi', 'attached', shell('stat -c owner=%g /data && echo kept > /data/file && sleep 1000', MOUNT), {
          securityContext: { fsGroup: 4321 },
        }),
      );
      const attachment = await eventually('a VolumeAttachment', 20_000, async () => {
        const { items } = JSON.parse(await lab().kubectl('get', 'volumeattachments', '-o', 'json'));
        return items.find((each: { spec: { attacher: string } }) => each.spec.attacher === name);
      });
      assert.deepEqual(attachment.spec, { attacher: name, nodeName, source: { persistentVolumeName: 'attached' } });
      assert.equal(driver.called('NodeStageVolume').length, 0);
      const status = { attached: true, attachmentMetadata: { slot: '4' } };
      await lab().kubectl(
        ...['patch', 'volumeattachment', attachment.metadata.name, '--subresource=status', '--type=merge'],
        ...['-p', JSON.stringify({ status })],
      );
      await lab().ready('uses-csi');
      await lab().event('uses-csi', 'SuccessfulAttachVolume', /"attached"/);
      assert.match(await lab().logs('uses-csi'), /owner=4321/);
      const [stage] = driver.called('NodeStageVolume');
      assert.deepEqual(stage?.texts, { colour: 'red', slot: '4', password: 'hunter2' });
      assert.match(
        stage?.staging ?? '',
        /var\/lib\/kubelet\/plugins\/kubernetes\.io\/csi\/attached\.csi\.test\/[0-9a-f]{64}\/globalmount$/,
      );
      const [publish] = driver.called('NodePublishVolume');
      assert.equal(publish?.texts['csi.storage.k8s.io/pod.name'], 'uses-csi');
      assert.equal(publish?.texts['csi.storage.k8s.io/ephemeral'], 'false');
      assert.match(publish?.target ?? '', /\/pods\/[0-9a-f-]{36}\/volumes\/kubernetes\.io~csi\/attached\/mount$/);
      const unique = `kubernetes.io/csi/${name}^handle-attached`;
      const state = JSON.parse(await lab().kubectl('get', 'node', nodeName, '-o', 'json')).status;
      assert.deepEqual(state.volumesInUse, [unique]);
      assert.deepEqual(state.volumesAttached, [{ name: unique, devicePath: '' }]);

      await lab().kubectl('delete', 'pod', 'uses-csi');
      await eventually('the attachment to be deleted', 20_000, async () =>
        (await lab().kubectl('get', 'volumeattachments', '-o', 'name')) === '' ? true : undefined,
      );
      const order = driver.calls.map(({ method }) => method).filter((method) => method !== 'NodeGetVolumeStats');
      assert.deepEqual(order, ['NodeStageVolume', 'NodePublishVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume']);
      assert.deepEqual(await mountsBelow(`plugins/kubernetes.io/csi/${name}`), []);
      assert.deepEqual(await readdir(join(kubeletRoot(lab()), 'plugins/kubernetes.io/csi', name)), []);
      await lab().kubectl('delete', 'pvc', 'attached', '--wait=false');
    } finally {
      await driver.stop();
    }
    await eventually('the driver to leave the CSINode', 30_000, async () =>
      (await lab().kubectl('get', 'csinodes', '-o', 'json')).includes(name) ? undefined : true,
    );
  });

  test(
    'an inline CSI volume gets the pod and a token, and is published again if its driver requires it',
    LIMIT,
    async () => {
      const name = 'inline.csi.test';
      const driver = await startDriver(lab(), name, {
        podInfoOnMount: true,
        attachRequired: false,
        volumeLifecycleModes: ['Ephemeral'],
        tokenRequests: [{ audience: 'vault' }],
      });
      try {
        const csi = { driver: name, volumeAttributes: { size: '1' }, readOnly: true };
        const container = shell('touch /data/x 2>/dev/null; echo touch=$?; sleep 1000', MOUNT);
        await lab().apply(pod('inline', { volumes: [{ name: 'data', csi }], containers: [container] }));
        await lab().ready('inline');
        assert.match(await lab().logs('inline'), /touch=1/);
        assert.deepEqual(driver.called('NodeStageVolume'), []);
        const [publish] = driver.called('NodePublishVolume');
        assert.match(publish?.volumeId ?? '', /^csi-[0-9a-f]{64}$/);
        assert.equal(publish?.texts['csi.storage.k8s.io/ephemeral'], 'true');
        const tokens = JSON.parse(publish?.texts['csi.storage.k8s.io/serviceAccount.tokens'] ?? '{}');
        assert.match(tokens.vault.token, /^ey.*\..*\./);
        await lab().kubectl('delete', 'pod', 'inline');
        await eventually('NodeUnpublishVolume', 20_000, async () =>
          driver.called('NodeUnpublishVolume').length > 0 ? true : undefined,
        );
      } finally {
        await driver.stop();
      }
    },
  );

  test('provides a CSI block volume as a device in the container', LIMIT, async () => {
    const name = 'block.csi.test';
    const driver = await startDriver(lab(), name, { attachRequired: false });
    try {
      await lab().apply(
        ...boundPair('raw', name, { volumeMode: 'Block' }),
        user(
          'uses-raw',
          'raw',
          shell('test -b /dev/raw && echo written > /dev/raw && head -c 7 /dev/raw && sleep 1000', {
            volumeDevices: [{ name: 'data', devicePath: '/dev/raw' }],
          }),
        ),
      );
      await lab().ready('uses-raw');
      await eventually('the log', 10_000, async () =>
        (await lab().logs('uses-raw')).includes('written') ? true : undefined,
      );
      await lab().kubectl('delete', 'pod', 'uses-raw');
      assert.ok(driver.called('NodeUnpublishVolume').length > 0);
      await lab().kubectl('delete', 'pvc', 'raw', '--wait=false');
    } finally {
      await driver.stop();
    }
  });

  test('retries a driver that crashed during a call, and leaves no mount behind', LIMIT, async () => {
    const name = 'dying.csi.test';
    const driver = await startDriver(lab(), name, { attachRequired: false });
    try {
      driver.dieIn = 'NodePublishVolume';
      await lab().apply(...boundPair('dying', name), user('survivor', 'dying', idle(MOUNT)));
      await lab().event(
        'survivor',
        'FailedMount',
        /MountVolume\.SetUp failed for volume "dying" : rpc error: code = Unavailable/,
      );
      await driver.start();
      await lab().ready('survivor', 45_000);
      driver.dieIn = 'NodeUnpublishVolume';
      await lab().kubectl('delete', 'pod', 'survivor', '--wait=false');
      await eventually('the driver to exit', 20_000, async () => (driver.dieIn === undefined ? true : undefined));
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      assert.ok(lab().pod('survivor') !== undefined, 'the pod waits for its driver');
      await driver.start();
      await lab().gone('survivor', 45_000);
      await eventually('the volume to be unstaged', 20_000, async () =>
        driver.called('NodeUnstageVolume').length > 0 && (await mountsBelow(`csi/${name}`)).length === 0
          ? true
          : undefined,
      );
      await lab().kubectl('delete', 'pvc', 'dying', '--wait=false');
    } finally {
      await driver.stop();
    }
  });

  test('the next pod starts and uses a volume although the driver fails to unstage the volume', LIMIT, async () => {
    const name = 'sticky.csi.test';
    const driver = await startDriver(lab(), name, { attachRequired: false });
    try {
      driver.failing.set('NodeUnstageVolume', 'busy');
      await lab().apply(...boundPair('sticky', name), user('leaves', 'sticky', shell('echo kept > /data/file', MOUNT)));
      await lab().until('leaves', 'to have written its file', ({ status }) => {
        const [container] = status?.containerStatuses ?? [];
        return (container?.state?.terminated ?? container?.lastState?.terminated) !== undefined;
      });
      await lab().kubectl('delete', 'pod', 'leaves');
      await eventually('two attempts to unstage', 20_000, async () =>
        driver.called('NodeUnstageVolume').length >= 2 ? true : undefined,
      );
      await lab().apply(user('follows', 'sticky', shell('cat /data/file && sleep 1000', MOUNT)));
      await lab().ready('follows');
      assert.equal(await lab().logs('follows'), 'kept\n');
      driver.failing.clear();
      await lab().kubectl('delete', 'pod', 'follows');
      await eventually('the staging directory to be deleted', 20_000, async () =>
        (await readdir(join(kubeletRoot(lab()), 'plugins/kubernetes.io/csi', name))).length === 0 ? true : undefined,
      );
      assert.deepEqual(await mountsBelow(`csi/${name}`), []);
      await lab().kubectl('delete', 'pvc', 'sticky', '--wait=false');
    } finally {
      await driver.stop();
    }
  });

  test('expands a CSI volume on its node and updates the claim', LIMIT, async () => {
    const name = 'growing.csi.test';
    const driver = await startDriver(lab(), name, { attachRequired: false });
    try {
      await lab().apply(...boundPair('growing', name), user('grower', 'growing', idle(MOUNT)));
      await lab().ready('grower');
      // The test changes the capacity in place of the driver's resizer.
      await lab().kubectl('patch', 'pv', 'growing', '--type=merge', '-p', '{"spec":{"capacity":{"storage":"20Mi"}}}');
      const status = {
        allocatedResources: { storage: '20Mi' },
        allocatedResourceStatuses: { storage: 'NodeResizePending' },
      };
      await lab().kubectl(
        ...['patch', 'pvc', 'growing', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status })],
      );
      await eventually('the capacity', 30_000, async () => {
        const capacity = await lab().kubectl('get', 'pvc', 'growing', '-o', 'jsonpath={.status.capacity.storage}');
        return capacity === '20Mi' ? true : undefined;
      });
      assert.equal(driver.called('NodeExpandVolume')[0]?.bytes, 20 << 20);
      await lab().event('grower', 'FileSystemResizeSuccessful');
      await lab().remove('grower');
      await lab().kubectl('delete', 'pvc', 'growing', '--wait=false');
      await lab().gone('grower');
    } finally {
      await driver.stop();
    }
  });

  test("reports upstream's event for a volume of an absent driver", LIMIT, async () => {
    const name = 'absent.csi.test';
    await lab().apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name },
      spec: { attachRequired: false },
    });
    await lab().apply(...boundPair('absent', name), user('hopeful', 'absent', idle(MOUNT)));
    await lab().event(
      'hopeful',
      'FailedMount',
      /driver name absent\.csi\.test not found in the list of registered CSI drivers/,
    );
    await lab().remove('hopeful');
    await lab().kubectl('delete', 'pvc', 'absent', '--wait=false');
    await lab().gone('hopeful');
  });
}
