/**
 * Disruption controller and evictions on a real API server: together they allow exactly the evictions of the budget.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../../src/api/generated/policy/v1.ts';
import { type ApiError, isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const namespace = 'default';

describe('disruption controller', () => {
  let plane: ControlPlane;
  before(async () => {
    plane = await startControlPlane({ kubelets: false, controllers: { disabled: ['statefulset', 'job'] } });
    await eventually(() => plane.of(resources.serviceAccounts).get('default', namespace), 'a service account');
  });
  after(() => plane.stop());

  const budgetFor = (name: string, spec: PodDisruptionBudget['spec']) =>
    plane
      .of(resources.podDisruptionBudgets)
      .create({ metadata: { name, namespace }, spec: { selector: { matchLabels: { app: name } }, ...spec } });
  const readyPod = async (app: string, name: string, more: Pod['metadata'] = {}) => {
    const pods = plane.of(resources.pods);
    await pods.create({
      metadata: { name, namespace, labels: { app }, ...more },
      spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] },
    });
    await becomeReady(name);
  };
  const becomeReady = (name: string) =>
    plane
      .of(resources.pods)
      .patch(
        name,
        namespace,
        'strategic',
        { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
        { subresource: 'status' },
      );
  /** Waits for these counts in the status and this condition, given as status and reason. */
  const says = (name: string, counts: Partial<PodDisruptionBudgetStatus>, condition: readonly string[]) =>
    eventually(
      async () => {
        const { metadata, status } = await plane.of(resources.podDisruptionBudgets).get(name, namespace);
        const { conditions, ...now } = status ?? ({} as Partial<PodDisruptionBudgetStatus>);
        assert.deepEqual({ ...now }, { ...counts, observedGeneration: metadata?.generation });
        assert.deepEqual(
          conditions?.map((each) => [each.type, each.status, each.reason]),
          [['DisruptionAllowed', ...condition]],
        );
        return status;
      },
      `${name} to say ${JSON.stringify(counts)}`,
    );
  const evict = (name: string) =>
    plane.of(resources.pods).createSubresource(name, namespace, 'eviction', {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      deleteOptions: { gracePeriodSeconds: 0 },
    });
  const SUFFICIENT = ['True', 'SufficientPods'];
  const INSUFFICIENT = ['False', 'InsufficientPods'];
  const hasEvent = (name: string, reason: string) =>
    eventually(async () => {
      const { items } = await plane.of(resources.events).list({ namespace });
      return items.find((each) => each.involvedObject.name === name && each.reason === reason)?.message;
    }, `an event ${reason}`);

  it('allows one eviction, and a second eviction after the pod is replaced', async () => {
    await budgetFor('pair', { minAvailable: 1 });
    await says('pair', { currentHealthy: 0, desiredHealthy: 1, expectedPods: 0, disruptionsAllowed: 0 }, INSUFFICIENT);
    assert.equal(await hasEvent('pair', 'NoPods'), 'No matching pods found');
    await readyPod('pair', 'a');
    await readyPod('pair', 'b');
    const both = { currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, disruptionsAllowed: 1 };
    await says('pair', both, SUFFICIENT);
    await evict('a');
    // The name of the evicted pod is removed from the status too.
    await says('pair', { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0 }, INSUFFICIENT);
    await assert.rejects(evict('b'), (error: ApiError) => {
      assert.ok(isApiError(error, 'TooManyRequests'), error.message);
      const why = 'The disruption budget pair needs 1 healthy pods and has 1 currently';
      return error.details?.causes?.[0]?.message === why;
    });
    await readyPod('pair', 'a');
    await says('pair', both, SUFFICIENT);
    await evict('b');
  });

  it('a disruption budget uses the replica count of a deployment', async () => {
    const deployments = plane.of(resources.deployments);
    await budgetFor('web', { maxUnavailable: '50%' });
    await deployments.create({
      metadata: { name: 'web', namespace },
      spec: {
        replicas: 3,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { schedulerName: 'nobody', containers: [{ name: 'c', image: 'i' }] },
        },
      },
    });
    await says('web', { currentHealthy: 0, desiredHealthy: 1, expectedPods: 3, disruptionsAllowed: 0 }, INSUFFICIENT);
    const { items } = await plane.of(resources.pods).list({ namespace, labelSelector: 'app=web' });
    for (const pod of items) await becomeReady(pod.metadata?.name ?? '');
    await says('web', { currentHealthy: 3, desiredHealthy: 1, expectedPods: 3, disruptionsAllowed: 2 }, SUFFICIENT);
  });

  it('a disruption budget follows changes of the scale and of pod labels', async () => {
    const sets = plane.of(resources.statefulSets);
    // No controller creates the pods of the set in this test. Only the set itself changes.
    const set = await sets.create({
      metadata: { name: 'db', namespace },
      spec: {
        replicas: 2,
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    const owner = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: set.metadata?.uid ?? '' };
    await budgetFor('db', { maxUnavailable: 1 });
    for (const name of ['db-0', 'db-1'])
      await readyPod('db', name, { ownerReferences: [{ ...owner, controller: true }] });
    await says('db', { currentHealthy: 2, desiredHealthy: 1, expectedPods: 2, disruptionsAllowed: 1 }, SUFFICIENT);
    await sets.patch('db', namespace, 'merge', { spec: { replicas: 3 } });
    const three = { desiredHealthy: 2, expectedPods: 3, disruptionsAllowed: 0 };
    await says('db', { ...three, currentHealthy: 2 }, INSUFFICIENT);
    await plane.of(resources.pods).patch('db-1', namespace, 'merge', { metadata: { labels: { app: 'none' } } });
    await says('db', { ...three, currentHealthy: 1 }, INSUFFICIENT);
  });

  it('reads the scale subresource of custom workloads, and allows no eviction without a scale', async () => {
    await plane.admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'herds.example.com' },
      spec: {
        group: 'example.com',
        names: { plural: 'herds', kind: 'Herd' },
        scope: 'Namespaced',
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            subresources: { scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' } },
          },
        ],
      },
    });
    const path = `/apis/example.com/v1/namespaces/${namespace}/herds`;
    const body = { apiVersion: 'example.com/v1', kind: 'Herd', metadata: { name: 'h' }, spec: { size: 4 } };
    const herd = await eventually(
      () => plane.admin.request<{ metadata: { uid: string } }>('POST', path, body),
      'the kind to be served',
    );
    const owner = { apiVersion: 'example.com/v1', kind: 'Herd', name: 'h', uid: herd.metadata.uid, controller: true };
    await readyPod('herd', 'one', { ownerReferences: [owner] });
    await readyPod('herd', 'two', { ownerReferences: [owner] });
    await budgetFor('herd', { minAvailable: '25%' });
    await says('herd', { currentHealthy: 2, desiredHealthy: 1, expectedPods: 4, disruptionsAllowed: 1 }, SUFFICIENT);

    const job = await plane.admin.request<{ metadata: { uid: string } }>(
      'POST',
      `/apis/batch/v1/namespaces/${namespace}/jobs`,
      {
        metadata: { name: 'j' },
        spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } },
      },
    );
    const ofJob = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: job.metadata.uid, controller: true };
    await readyPod('batch', 'three', { ownerReferences: [ofJob] });
    await budgetFor('batch', { maxUnavailable: 1 });
    const why = 'jobs.batch does not implement the scale subresource';
    await eventually(async () => {
      const { status } = await plane.of(resources.podDisruptionBudgets).get('batch', namespace);
      const [condition] = status?.conditions ?? [];
      assert.deepEqual([condition?.reason, condition?.message], ['SyncFailed', why]);
      return status?.disruptionsAllowed === 0;
    }, 'the failure');
    assert.equal(
      await hasEvent('batch', 'CalculateExpectedPodCountFailed'),
      `Failed to calculate the number of expected pods: ${why}`,
    );
  });

  it('sets DisruptionTarget with the current generation on a pod that a taint evicts', async () => {
    const pods = plane.of(resources.pods);
    await plane.addNode('tainted', (node) => {
      node.spec = { taints: [{ key: 'example.com/out', effect: 'NoExecute' }] };
    });
    await pods.create({
      metadata: { name: 'evicted', namespace, finalizers: ['example.com/keep'] },
      spec: { nodeName: 'tainted', containers: [{ name: 'c', image: 'i' }] },
    });
    const target = await eventually(async () => {
      const { status } = await pods.get('evicted', namespace);
      return status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
    }, 'the condition');
    assert.equal(target.reason, 'DeletionByTaintManager');
    assert.equal((target as { observedGeneration?: number }).observedGeneration, 1);
    await pods.patch('evicted', namespace, 'merge', { metadata: { finalizers: null } });
  });

  it('clears DisruptionTarget two minutes after an eviction without a deletion', async () => {
    await readyPod('left', 'stays');
    const mark = (lastTransitionTime: string) =>
      plane.of(resources.pods).patch(
        'stays',
        namespace,
        'strategic',
        {
          status: {
            conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'R', message: 'm', lastTransitionTime }],
          },
        },
        { subresource: 'status' },
      );
    await mark(`${new Date(Date.now() - 121_000).toISOString().slice(0, 19)}Z`);
    const used = await eventually(async () => {
      const { status } = await plane.of(resources.pods).get('stays', namespace);
      return status?.conditions?.find((each) => each.type === 'DisruptionTarget' && each.status === 'False');
    }, 'the condition to be taken back');
    assert.deepEqual([used.reason, used.message], [undefined, undefined]);
    assert.equal((used as { observedGeneration?: number }).observedGeneration, 1);
    assert.equal((await plane.of(resources.pods).get('stays', namespace)).status?.phase, 'Running');
  });
});
