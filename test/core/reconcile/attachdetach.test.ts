/** What is attached to a node, kept there and detached from it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from 'kubernetes-types/core/v1';
import type { VolumeAttachment } from 'kubernetes-types/storage/v1';
import { attachmentNameOf } from '../../../src/api/volumes/attachment.ts';
import { type AttachView, planAttachments } from '../../../src/core/reconcile/attachdetach/plan.ts';

const sha256 = (text: string): string => `<${text}>`;
const UNIQUE = 'kubernetes.io/csi/d.test^h1';
const NAME = attachmentNameOf('h1', 'd.test', 'n1', sha256);

const volume: PersistentVolume = {
  metadata: { name: 'pv1' },
  spec: { accessModes: ['ReadWriteOnce'], csi: { driver: 'd.test', volumeHandle: 'h1' } },
};
const claim: PersistentVolumeClaim = {
  metadata: { name: 'c', namespace: 'x', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
  spec: { volumeName: 'pv1' },
};
const pod = (phase = 'Pending'): Pod => ({
  metadata: { name: 'p', namespace: 'x', uid: 'u' },
  spec: { nodeName: 'n1', containers: [], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
  status: { phase },
});
const node = (status: Node['status'] = {}, ready = 'True'): Node => ({
  metadata: { name: 'n1' },
  status: { conditions: [{ type: 'Ready', status: ready }], ...status },
});
const attachment = (more: Partial<VolumeAttachment['status']> = {}, nodeName = 'n1'): VolumeAttachment => ({
  metadata: { name: attachmentNameOf('h1', 'd.test', nodeName, sha256) },
  spec: { attacher: 'd.test', nodeName, source: { persistentVolumeName: 'pv1' } },
  status: { attached: false, ...more },
});
const plan = (more: Partial<AttachView>) =>
  planAttachments({
    ...{ nodeName: 'n1', node: node(), pods: [], attachments: [], nowMs: 1_000_000, sha256 },
    claim: (key) => (key === 'x/c' ? claim : undefined),
    volume: (name) => (name === 'pv1' ? volume : undefined),
    driver: () => undefined,
    unneededSinceMs: () => undefined,
    ...more,
  });

test('the volume of a pod is attached once, unless its driver needs none of it', () => {
  const [made, ...others] = plan({ pods: [pod(), pod()] }).create;
  assert.deepEqual(others, []);
  assert.equal(made?.metadata?.name, NAME);
  assert.deepEqual(made?.spec, attachment().spec);
  assert.deepEqual(plan({ pods: [pod('Succeeded')] }).create, []);
  const driver = () => ({ metadata: {}, spec: { attachRequired: false } });
  assert.deepEqual(plan({ pods: [pod()], driver }).create, []);
});

test('a volume for one node that is attached elsewhere waits, with an event', () => {
  const { create, events, again } = plan({ pods: [pod()], attachments: [attachment({ attached: true }, 'n2')] });
  assert.deepEqual(create, []);
  assert.deepEqual([events[0]?.reason, again], ['FailedAttachVolume', true]);
  assert.match(events[0]?.message ?? '', /^Multi-Attach error for volume "pv1"/);
});

test('the node shows what is attached, and the pod what failed', () => {
  const done = plan({ pods: [pod()], attachments: [attachment({ attached: true })] });
  assert.deepEqual(done.volumesAttached, [{ name: UNIQUE, devicePath: '' }]);
  assert.equal(done.events[0]?.reason, 'SuccessfulAttachVolume');
  const shown = node({ volumesAttached: [{ name: UNIQUE, devicePath: '' }] });
  const again = plan({ pods: [pod()], node: shown, attachments: [attachment({ attached: true })] });
  assert.deepEqual([again.volumesAttached, again.events], [undefined, []]);
  const failed = plan({ pods: [pod()], attachments: [attachment({ attachError: { message: 'no slot' } })] });
  assert.equal(failed.events[0]?.message, 'AttachVolume.Attach failed for volume "pv1" : no slot');
});

test('what the node uses stays attached, until the node is out of service or silent for minutes', () => {
  const attachments = [attachment({ attached: true })];
  const used = { volumesInUse: [UNIQUE], volumesAttached: [{ name: UNIQUE, devicePath: '' }] };
  const kept = plan({ node: node(used), attachments });
  assert.deepEqual([kept.remove, kept.unneeded, kept.volumesAttached], [[], [NAME], undefined]);
  const free = plan({ node: node({ volumesAttached: used.volumesAttached }), attachments });
  assert.deepEqual([free.remove, free.volumesAttached], [[NAME], []]);
  const silent = { node: node(used, 'Unknown'), attachments };
  assert.deepEqual(plan({ ...silent, unneededSinceMs: () => 700_000 }).remove, []);
  assert.deepEqual(plan({ ...silent, unneededSinceMs: () => 600_000 }).remove, [NAME]);
  const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }];
  assert.deepEqual(plan({ node: { ...node(used), spec: { taints } }, attachments }).remove, [NAME]);
  assert.deepEqual(plan({ node: undefined, attachments }).remove, [NAME]);
});
