import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Deployment } from '../../src/api/generated/apps/v1.ts';
import { resources } from '../../src/api/resources.ts';
import type { ControllersDeps } from '../../src/controllers/framework/deps.ts';
import { DEFAULT_OPTIONS } from '../../src/controllers/framework/deps.ts';
import { createHandle } from '../../src/controllers/framework/framework.ts';
import { controllers } from '../../src/host/controllers/registry.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

let first: ControlPlane;
before(async () => {
  first = await startControlPlane({ identity: 'first' });
  await first.addNode('n1');
});
after(() => first.api.stop());

const deployment = (name: string): Deployment => ({
  metadata: { name, namespace: 'default' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
});
const available = (plane: ControlPlane, name: string) =>
  eventually(
    async () => (await plane.of(resources.deployments).get(name, 'default')).status?.availableReplicas === 2,
    `${name} available`,
  );

test('keeps a standby idle until the leader releases the lease, and then starts the standby immediately', async () => {
  await eventually(async () => first.controllers.leading && first.scheduler.leading, 'the first to lead');
  const { api } = first;
  const second = await startControlPlane({ identity: 'second', api, kubelets: false });
  try {
    await first.of(resources.deployments).create(deployment('before'));
    await available(first, 'before');
    assert.equal(second.controllers.leading, false);
    assert.equal(second.scheduler.leading, false);
    await first.controllers.stop();
    await first.scheduler.stop();
    assert.equal(first.controllers.leading, false);
    const stoppedAt = performance.now();
    await eventually(async () => second.controllers.leading && second.scheduler.leading, 'the second to lead');
    assert.ok(performance.now() - stoppedAt < 10_000, 'a released lease is taken without waiting for it to expire');
    await second.of(resources.deployments).create(deployment('after'));
    await available(second, 'after');
    const sets = await second.of(resources.replicaSets).list({ namespace: 'default', labelSelector: 'app=before' });
    assert.equal(sets.items.length, 1, 'the new leader makes nothing twice');
    const lease = await second.of(resources.leases).get('kube-controller-manager', 'kube-system');
    assert.equal(lease.spec?.holderIdentity, 'second');
  } finally {
    await second.stop();
    // Stops everything except the API server, which the last hook stops.
    await first.stop().catch(() => {});
  }
});

test('a controller has no access to kinds that it does not declare', () => {
  const deps = {
    log: { named: () => undefined },
    client: { resource: () => ({}) },
    informers: { informer: () => ({}) },
  } as unknown as ControllersDeps;
  const spec = { name: 'x', reads: [resources.pods], writes: [resources.nodes], prepare: () => () => {} };
  const handle = createHandle(spec, deps, DEFAULT_OPTIONS);
  assert.doesNotThrow(() => handle.informer(resources.pods));
  assert.doesNotThrow(() => handle.writer(resources.nodes));
  assert.throws(() => handle.informer(resources.nodes), /does not declare that it reads nodes/);
  assert.throws(() => handle.writer(resources.pods), /does not declare that it writes pods/);
});

test('every controller has a unique name and declares its kinds', () => {
  const names = controllers.map((controller) => controller.name);
  assert.equal(new Set(names).size, names.length);
  for (const controller of controllers) {
    // Kinds to collect are known only at run time.
    if (controller.name !== 'garbage-collector') assert.ok(controller.writes.length > 0, controller.name);
    // Fixture classes are the same in every cluster.
    if (controller.name !== 'fixture-classes') assert.ok(controller.reads.length > 0, controller.name);
  }
});
