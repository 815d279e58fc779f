/** Metrics are served by custom resources in the API groups of metrics servers. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject, ResourceType } from '../../../../src/api/meta/object.ts';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
let api: TestServer;
before(async () => {
  // Configuration of clusters with metrics-server instead of the embedded one.
  const runtimeConfig = new Map([['metrics.k8s.io/v1beta1', false]]);
  api = await startServer({ config: { runtimeConfig } });
  plane = await startControlPlane({ api });
  await plane.addNode('n1');
  await serve('metrics.k8s.io', 'pods', 'PodMetrics');
  await serve('external.metrics.k8s.io', 'queuedepth', 'Depth');
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const namespace = 'default';
const typeOf = (group: string, plural: string, kind: string): ResourceType<KubeObject> => ({
  group,
  version: 'v1beta1',
  kind,
  plural,
  namespaced: true,
});
const podMetrics = typeOf('metrics.k8s.io', 'pods', 'PodMetrics');
const depths = typeOf('external.metrics.k8s.io', 'queuedepth', 'Depth');

async function serve(group: string, plural: string, kind: string): Promise<void> {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  await plane.admin.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, kind, listKind: `${kind}List` },
      versions: [{ name: 'v1beta1', served: true, storage: true, schema }],
    },
  });
  await eventually(
    async () => (await plane.of(typeOf(group, plural, kind)).list({ namespace })) !== undefined,
    'the kind',
  );
}

async function deploy(name: string, replicas: number): Promise<void> {
  await plane.of(resources.deployments).create({
    metadata: { name, namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'c', image: 'v1', resources: { requests: { memory: '100Mi' } } }] },
      },
    },
  });
  await eventually(
    async () => (await plane.of(resources.deployments).get(name, namespace)).status?.readyReplicas === replicas,
    'ready pods',
  );
}
const autoscalers = () => plane.of(resources.horizontalPodAutoscalers);
const shown = async (name: string) => {
  const { status } = await autoscalers().get(name, namespace);
  return (status?.conditions ?? []).map((each) => `${each.type}=${each.status} ${each.reason}`);
};
const replicasOf = async (name: string) => (await plane.of(resources.deployments).get(name, namespace)).spec?.replicas;
const ref = (name: string) => ({ apiVersion: 'apps/v1', kind: 'Deployment', name });

test('scales a deployment by its pods’ memory', async () => {
  await deploy('busy', 2);
  const pods = (await plane.of(resources.pods).list({ namespace, labelSelector: 'app=busy' })).items;
  for (const pod of pods) {
    await plane.of(podMetrics).create({
      apiVersion: 'metrics.k8s.io/v1beta1',
      kind: 'PodMetrics',
      metadata: { name: pod.metadata?.name ?? '', namespace, labels: { app: 'busy' } },
      timestamp: new Date().toISOString(),
      window: '30s',
      containers: [{ name: 'c', usage: { memory: '150Mi' } }],
    } as KubeObject);
  }
  await autoscalers().create({
    metadata: { name: 'busy', namespace },
    spec: {
      scaleTargetRef: ref('busy'),
      minReplicas: 1,
      maxReplicas: 5,
      metrics: [
        { type: 'Resource', resource: { name: 'memory', target: { type: 'Utilization', averageUtilization: 100 } } },
      ],
    },
  });
  await eventually(async () => (await replicasOf('busy')) === 3, 'three replicas');
  await eventually(async () => (await shown('busy')).includes('AbleToScale=True SucceededRescale'), 'the condition');
  const { status } = await autoscalers().get('busy', namespace);
  assert.deepEqual([status?.currentReplicas, status?.desiredReplicas], [2, 3]);
  assert.equal(status?.currentMetrics?.[0]?.resource?.current.averageUtilization, 150);
  const events = (await plane.of(resources.events).list({ namespace })).items;
  const event = events.find((each) => each.reason === 'SuccessfulRescale');
  assert.equal(event?.message, 'New size: 3; reason: memory resource utilization (percentage of request) above target');
  assert.equal(event?.source?.component, 'horizontal-pod-autoscaler');
});

test('scales a stateful set by an external metric, and reports missing metrics or a missing target in conditions', async () => {
  await plane.of(depths).create({
    apiVersion: 'external.metrics.k8s.io/v1beta1',
    kind: 'Depth',
    metadata: { name: 'jobs', namespace },
    value: '30',
  } as KubeObject);
  await plane.of(resources.statefulSets).create({
    metadata: { name: 'worker', namespace },
    spec: {
      replicas: 1,
      serviceName: 'worker',
      podManagementPolicy: 'Parallel',
      selector: { matchLabels: { app: 'worker' } },
      template: { metadata: { labels: { app: 'worker' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
    },
  });
  await eventually(
    async () => (await plane.of(resources.statefulSets).get('worker', namespace)).status?.readyReplicas === 1,
    'the worker',
  );
  const external = (metric: string) => ({
    type: 'External',
    external: { metric: { name: metric }, target: { type: 'AverageValue', averageValue: '10' } },
  });
  const spec = { scaleTargetRef: { ...ref('worker'), kind: 'StatefulSet' }, maxReplicas: 5 };
  await autoscalers().create({
    metadata: { name: 'worker', namespace },
    spec: { ...spec, metrics: [external('queuedepth')] },
  });
  await eventually(
    async () => (await plane.of(resources.statefulSets).get('worker', namespace)).spec?.replicas === 3,
    'three workers',
  );
  await deploy('blind', 1);
  await autoscalers().create({
    metadata: { name: 'blind', namespace },
    spec: { scaleTargetRef: ref('blind'), maxReplicas: 5, metrics: [external('nowhere')] },
  });
  await autoscalers().create({
    metadata: { name: 'lost', namespace },
    spec: { scaleTargetRef: ref('lost'), maxReplicas: 5 },
  });
  await eventually(async () => (await shown('blind')).includes('ScalingActive=False FailedGetExternalMetric'), 'blind');
  await eventually(async () => (await shown('lost')).includes('AbleToScale=False FailedGetScale'), 'lost');
  assert.equal(await replicasOf('blind'), 1);
});
