/** The rig controller on a real API server with a simulated kubelet. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import type { RigClaim } from '../../../src/rigs/kinds/rig-types.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../controllers/harness.ts';

const namespace = 'default';
const FIXTURE = 'rig.hyperedge.dev/board-1';
let plane: ControlPlane;

before(async () => {
  plane = await startControlPlane();
  await plane.addNode('n1', ({ status }) => {
    for (const amounts of [status?.capacity, status?.allocatable]) Object.assign(amounts ?? {}, { [FIXTURE]: '1' });
  });
  await plane.of(resources.rigs).create({
    metadata: { name: 'rig-1' },
    spec: { fixtures: [{ name: 'board', fixture: 'board-1' }], maxLease: '1h' },
  });
});
after(() => plane.stop());

const claims = () => plane.of(resources.rigClaims);
const createClaim = (name: string): Promise<RigClaim> =>
  claims().create({ metadata: { name, namespace }, spec: { rigName: 'rig-1' } });
const reachesPhase = (name: string, phase: string): Promise<boolean> =>
  eventually(async () => (await claims().get(name, namespace)).status?.phase === phase, `${name} ${phase}`);
const holder = async (): Promise<string | undefined> =>
  (await plane.of(resources.rigs).get('rig-1')).status?.holder?.name;
const pods = () => plane.of(resources.pods);
const runs = (name: string): Promise<boolean> =>
  eventually(async () => (await pods().get(name, namespace)).status?.phase === 'Running', `${name} Running`);
const createPod = (name: string, claim: string): Promise<Pod> =>
  pods().create({
    metadata: { name, namespace, annotations: { 'rig.hyperedge.dev/claim': claim } },
    spec: { containers: [{ name: 'c', image: 'i', resources: { limits: { [FIXTURE]: '1' } } }] },
  });

test('grants a rig to one claim, starts its pod, and passes the rig on after the release', async () => {
  await createClaim('first');
  await reachesPhase('first', 'Granted');
  await createClaim('second');
  await reachesPhase('second', 'Queued');
  await eventually(async () => (await holder()) === 'first', 'the rig has the first holder');

  await createPod('of-first', 'first');
  await createPod('of-second', 'second');
  await runs('of-first');
  const waiting = await pods().get('of-second', namespace);
  assert.equal(waiting.spec?.schedulingGates?.length, 1);

  await claims().delete('first', namespace);
  await reachesPhase('second', 'Granted');
  await eventually(async () => (await holder()) === 'second', 'the rig has the second holder');
  await runs('of-second');
  await assert.rejects(pods().get('of-first', namespace), { reason: 'NotFound' });
  const { items } = await plane.of(resources.events).list({ namespace });
  const reasons = items.map(({ reason, involvedObject }) => `${involvedObject?.name} ${reason}`);
  assert.ok(reasons.includes('first RigGranted'), reasons.join());
});

test('limits the grace period of pods after the end of the lease', async () => {
  // No kubelet ends the pod, so its grace period stays visible.
  const other = await startControlPlane({ kubelets: false });
  try {
    await other.addNode('n1', ({ status }) => {
      for (const amounts of [status?.capacity, status?.allocatable]) Object.assign(amounts ?? {}, { [FIXTURE]: '1' });
    });
    await other.of(resources.rigs).create({
      metadata: { name: 'rig-1' },
      spec: { fixtures: [{ name: 'board', fixture: 'board-1' }] },
    });
    await other.of(resources.pods).create({
      metadata: { name: 'slow', namespace, annotations: { 'rig.hyperedge.dev/claim': 'short' } },
      spec: {
        terminationGracePeriodSeconds: 86_400,
        containers: [{ name: 'c', image: 'i', resources: { limits: { [FIXTURE]: '1' } } }],
      },
    });
    const spec = { rigName: 'rig-1', duration: '3s' };
    await other.of(resources.rigClaims).create({ metadata: { name: 'short', namespace }, spec });
    const deleted = await eventually(async () => {
      const { metadata } = await other.of(resources.pods).get('slow', namespace);
      return metadata?.deletionTimestamp === undefined ? undefined : metadata;
    }, 'the pod is deleted');
    assert.equal(deleted.deletionGracePeriodSeconds, 30);
  } finally {
    await other.stop();
  }
});
