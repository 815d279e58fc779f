import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { toNodeName } from '../../../../src/base/brand.ts';
import { type HeldNode, planVolume, type VolumeView } from '../../../../src/controllers/storage/attach-detach/plan.ts';

const pod = (name: string, namespace = 'x'): Pod => ({ metadata: { name, namespace, uid: name } });
const need = (node: string, ...pods: Pod[]) => ({ nodeName: toNodeName(node), pods, exists: true });
const held = (node: string, more: Partial<HeldNode> = {}): HeldNode => ({
  nodeName: toNodeName(node),
  state: 'attached',
  isMounted: false,
  isHealthy: true,
  isOutOfService: false,
  unneededMs: 0,
  isListed: true,
  isOwn: true,
  ...more,
});
const plan = (more: Partial<VolumeView>) =>
  planVolume({ name: 'pv1', isForOneNode: true, wanted: [], held: [], ...more });
const messages = (more: Partial<VolumeView>) => plan(more).events.map(({ message }) => message);

test('attaches a volume to one node, or to all nodes if it can be shared', () => {
  const wanted = [need('n1', pod('a')), need('n2', pod('b'))];
  assert.deepEqual(plan({ wanted }).attach, ['n1']);
  assert.deepEqual(plan({ wanted, isForOneNode: false }).attach, ['n1', 'n2']);
  assert.deepEqual(plan({ wanted: [{ ...need('n1', pod('a')), exists: false }] }).attach, []);
});

test('does not attach a single-node volume while another node holds it', () => {
  const wanted = [need('n2', pod('b'))];
  for (const state of ['attaching', 'attached', 'detaching'] as const) {
    const { attach, events } = plan({ wanted, held: [held('n1', { state, isMounted: true })] });
    assert.deepEqual([attach, events[0]?.type, events[0]?.reason], [[], 'Warning', 'FailedAttachVolume']);
  }
});

test('names only pods of the same namespace in the multi-attach event', () => {
  const prefix = 'Multi-Attach error for volume "pv1" Volume is already ';
  const last = need('n2', pod('b'));
  const first = held('n1', { isMounted: true });
  assert.deepEqual(messages({ wanted: [need('n1', pod('a'), pod('c')), last], held: [first] }), [
    `${prefix}used by pod(s) a, c`,
  ]);
  assert.deepEqual(messages({ wanted: [need('n1', pod('a', 'y')), last], held: [first] }), [
    `${prefix}used by 1 pod(s) in different namespaces`,
  ]);
  assert.deepEqual(messages({ wanted: [need('n1', pod('a'), pod('c', 'y')), last], held: [first] }), [
    `${prefix}used by pod(s) a and 1 pod(s) in different namespaces`,
  ]);
  assert.deepEqual(messages({ wanted: [last], held: [first] }), [
    `${prefix}exclusively attached to one node and can't be attached to another`,
  ]);
});

test('records events of attachments and failures on the pod', () => {
  const wanted = [need('n1', pod('a'))];
  assert.deepEqual(messages({ wanted, held: [held('n1', { isListed: false })] }), [
    'AttachVolume.Attach succeeded for volume "pv1" ',
  ]);
  assert.deepEqual(messages({ wanted, held: [held('n1')] }), []);
  assert.deepEqual(messages({ wanted, held: [held('n1', { state: 'attaching', error: 'no slot' })] }), [
    'AttachVolume.Attach failed for volume "pv1" : no slot',
  ]);
});

test('detaches a volume in use only from a node that is out of service or has been unhealthy for six minutes', () => {
  const detach = (more: Partial<HeldNode>) => plan({ held: [held('n1', more)] }).detach;
  assert.deepEqual(detach({}), [{ nodeName: 'n1', isForced: false }]);
  const silent = { isMounted: true, isHealthy: false };
  assert.deepEqual(detach({ ...silent, unneededMs: 360_000 }), []);
  assert.deepEqual(detach({ ...silent, unneededMs: 360_001 }), [{ nodeName: 'n1', isForced: true }]);
  assert.deepEqual(detach({ isMounted: true, unneededMs: 1e9 }), []);
  assert.deepEqual(detach({ isMounted: true, isOutOfService: true }), [{ nodeName: 'n1', isForced: true }]);
  assert.deepEqual(plan({ held: [held('n1', { isMounted: true })] }).waiting, ['n1']);
  assert.deepEqual(detach({ state: 'detaching' }), []);
  assert.deepEqual(detach({ isOwn: false }), [], 'an attachment of another client');
  assert.deepEqual(plan({ held: [held('n1')], wanted: [need('n1', pod('a'))] }).detach, []);
});
