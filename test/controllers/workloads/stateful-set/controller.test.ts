import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { StatefulSet } from '../../../../src/api/generated/apps/v1.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { run } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  await plane.addNode('n1');
});
after(() => plane.stop());

const namespace = 'default';
const statefulSet = (
  name: string,
  replicas: number,
  more: Partial<NonNullable<StatefulSet['spec']>> = {},
): StatefulSet => ({
  metadata: { name, namespace },
  spec: {
    replicas,
    serviceName: name,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: { containers: [{ name: 'c', image: 'v1' }], terminationGracePeriodSeconds: 1 },
    },
    ...more,
  },
});
const sets = () => plane.of(resources.statefulSets);
const podsOf = async (app: string): Promise<Pod[]> =>
  (await plane.of(resources.pods).list({ namespace, labelSelector: `app=${app}` })).items;
const imagesOf = async (app: string): Promise<string[]> =>
  (await podsOf(app)).map((pod) => `${pod.metadata?.name}=${pod.spec?.containers[0]?.image}`).sort();
const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', plane.api.kubeconfig, ...args]);
const rolledOut = async (name: string): Promise<void> => {
  const status = await kubectl('rollout', 'status', `statefulset/${name}`, '--timeout=10s');
  assert.equal(status.code, 0, status.stderr + status.stdout);
};
const setImage = (name: string, image: string) =>
  sets().patch(name, namespace, 'strategic', {
    spec: { template: { spec: { containers: [{ name: 'c', image }] } } },
  });

test('supports kubectl roll-out, partition, undo and restart of a stateful set', async () => {
  await sets().create(statefulSet('web', 3));
  await rolledOut('web');
  const pods = await podsOf('web');
  assert.deepEqual(pods.map((pod) => pod.metadata?.name).sort(), ['web-0', 'web-1', 'web-2']);
  const born = pods.toSorted((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
  const versions = born.map((pod) => Number(pod.metadata?.uid === undefined ? 0 : pod.metadata.resourceVersion));
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
    'one after the other',
  );
  await sets().patch('web', namespace, 'merge', {
    spec: { updateStrategy: { rollingUpdate: { partition: 2 } } },
  });
  await setImage('web', 'v2');
  const partitioned = await kubectl('rollout', 'status', 'statefulset/web', '--timeout=10s');
  assert.match(partitioned.stdout, /partitioned roll out complete: 1 new pods have been updated/);
  assert.deepEqual(await imagesOf('web'), ['web-0=v1', 'web-1=v1', 'web-2=v2']);
  const half = (await sets().get('web', namespace)).status;
  assert.notEqual(half?.currentRevision, half?.updateRevision);
  await sets().patch('web', namespace, 'merge', {
    spec: { updateStrategy: { rollingUpdate: { partition: 0 } } },
  });
  await rolledOut('web');
  await eventually(async () => (await imagesOf('web')).join() === 'web-0=v2,web-1=v2,web-2=v2', 'all at v2');
  const undo = await kubectl('rollout', 'undo', 'statefulset/web');
  assert.equal(undo.code, 0, undo.stderr);
  await rolledOut('web');
  await eventually(async () => (await imagesOf('web')).join() === 'web-0=v1,web-1=v1,web-2=v1', 'all at v1');
  const history = await kubectl('rollout', 'history', 'statefulset/web');
  assert.match(history.stdout, /^2\s/m);
  assert.match(history.stdout, /^3\s/m);
  assert.equal((await kubectl('rollout', 'restart', 'statefulset/web')).code, 0);
  await rolledOut('web');
  const done = await eventually(async () => {
    const { status } = await sets().get('web', namespace);
    return status?.currentRevision === status?.updateRevision && status?.availableReplicas === 3 && status;
  }, 'the roll-out to be recorded as complete');
  assert.deepEqual([done.replicas, done.readyReplicas, done.currentReplicas, done.updatedReplicas], [3, 3, 3, 3]);
  const events = (await plane.of(resources.events).list({ namespace })).items;
  const messages = events.filter((event) => event.involvedObject.name === 'web').map((event) => event.message);
  assert.ok(messages.includes('create Pod web-0 in StatefulSet web successful'), messages.join('\n'));
  assert.ok(messages.includes('delete Pod web-2 in StatefulSet web successful'), messages.join('\n'));
});

test('keeps claims of a set with the policy Retain, and deletes claims with the pod or the set otherwise', async () => {
  const claims = async (app: string): Promise<string[]> =>
    (await plane.of(resources.persistentVolumeClaims).list({ namespace, labelSelector: `app=${app}` })).items
      .map((claim) => claim.metadata?.name ?? '')
      .sort();
  const withClaims = (name: string, policy: 'Retain' | 'Delete') =>
    statefulSet(name, 2, {
      podManagementPolicy: 'Parallel',
      persistentVolumeClaimRetentionPolicy: { whenDeleted: policy, whenScaled: policy },
      volumeClaimTemplates: [
        {
          metadata: { name: 'data' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
        },
      ],
    });
  await sets().create(withClaims('keep', 'Retain'));
  await sets().create(withClaims('drop', 'Delete'));
  for (const name of ['keep', 'drop']) {
    await eventually(async () => (await podsOf(name)).length === 2, `pods of ${name}`);
    assert.deepEqual(await claims(name), [`data-${name}-0`, `data-${name}-1`]);
    assert.equal((await kubectl('scale', `statefulset/${name}`, '--replicas=1')).code, 0);
    await eventually(async () => (await podsOf(name)).length === 1, `one pod of ${name}`);
  }
  await eventually(async () => (await claims('drop')).join() === 'data-drop-0', 'the claim of the pod to end');
  assert.equal((await kubectl('delete', 'statefulset/keep', 'statefulset/drop')).code, 0);
  await eventually(async () => (await claims('drop')).length === 0, 'the claims of the set to end');
  await eventually(async () => (await podsOf('keep')).length === 0, 'the pods to end');
  assert.deepEqual(await claims('keep'), ['data-keep-0', 'data-keep-1']);
});

test('adopts pods and revisions that a deleted set left behind', async () => {
  await sets().create(statefulSet('heir', 2));
  await rolledOut('heir');
  const before = (await podsOf('heir')).map((pod) => pod.metadata?.uid).sort();
  assert.equal((await kubectl('delete', 'statefulset/heir', '--cascade=orphan')).code, 0);
  await eventually(
    async () => (await podsOf('heir')).every((pod) => (pod.metadata?.ownerReferences ?? []).length === 0),
    'the pods to be orphans',
  );
  await sets().create(statefulSet('heir', 2));
  const { metadata } = await sets().get('heir', namespace);
  await eventually(
    async () => (await podsOf('heir')).every((pod) => pod.metadata?.ownerReferences?.[0]?.uid === metadata?.uid),
    'the adoption',
  );
  await rolledOut('heir');
  assert.deepEqual((await podsOf('heir')).map((pod) => pod.metadata?.uid).sort(), before);
  const revisions = (await plane.of(resources.controllerRevisions).list({ namespace, labelSelector: 'app=heir' }))
    .items;
  assert.deepEqual(
    revisions.map((revision) => revision.metadata?.ownerReferences?.[0]?.uid),
    [metadata?.uid],
  );
});

test('replaces a failed pod under its name', async () => {
  await sets().create(statefulSet('phoenix', 1));
  await rolledOut('phoenix');
  const [first] = await podsOf('phoenix');
  await plane
    .of(resources.pods)
    .patch('phoenix-0', namespace, 'merge', { status: { phase: 'Failed' } }, { subresource: 'status' });
  await eventually(async () => {
    const [pod] = await podsOf('phoenix');
    return pod !== undefined && pod.metadata?.uid !== first?.metadata?.uid && pod.status?.phase === 'Running';
  }, 'a new phoenix-0');
});

test('does not change a foreign pod with a name of the set, and reports the conflict', async () => {
  await plane.of(resources.pods).create({
    metadata: { name: 'taken-0', namespace },
    spec: { containers: [{ name: 'c', image: 'v1' }] },
  });
  await sets().create(statefulSet('taken', 1));
  await eventually(async () => {
    const events = (await plane.of(resources.events).list({ namespace })).items;
    return events.some((event) => event.reason === 'FailedCreate' && event.involvedObject.name === 'taken');
  }, 'the event');
  await plane.of(resources.pods).delete('taken-0', namespace);
  await rolledOut('taken');
});

test('recreates a pod after scaling down and up only when the old claim is deleted', async () => {
  const claim = {
    metadata: { name: 'data' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  };
  await sets().create(
    statefulSet('back', 2, {
      podManagementPolicy: 'Parallel',
      volumeClaimTemplates: [claim],
      persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete', whenDeleted: 'Retain' },
    }),
  );
  const present = (name: string, uid: string | undefined) =>
    eventually(
      async () => (await podsOf('back')).find(({ metadata }) => metadata?.name === name && metadata.uid !== uid),
      `another ${name}`,
    );
  const old = await present('back-1', undefined);
  const scaleTo = (replicas: number) => sets().patch('back', namespace, 'merge', { spec: { replicas } });
  const claims = plane.of(resources.persistentVolumeClaims);
  // Keeps the claim until the set has observed it without its pod.
  await claims.patch('data-back-1', namespace, 'merge', { metadata: { finalizers: ['example.com/keep'] } });
  await scaleTo(1);
  await eventually(async () => (await podsOf('back')).length === 1, 'the pod gone');
  await scaleTo(2);
  await eventually(
    async () => (await claims.get('data-back-1', namespace)).metadata?.deletionTimestamp !== undefined,
    'the claim being deleted',
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  await claims.patch('data-back-1', namespace, 'merge', { metadata: { finalizers: null } });
  await present('back-1', old.metadata?.uid);
});
