/** Nodes of hosts that the gossip ring has declared dead. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Node } from '../../../../src/api/generated/core/v1.ts';
import { resources } from '../../../../src/api/resources.ts';
import { createInformerFactory } from '../../../../src/client/index.ts';
import type { ApiClient } from '../../../../src/client/types.ts';
import { followFailedHosts } from '../../../../src/controllers/nodes/node-lifecycle/failed-hosts-controller.ts';
import {
  failedBefore,
  newlyFailed,
  type RingMemberState,
} from '../../../../src/controllers/nodes/node-lifecycle/gossip.ts';
import { FAILED_IN_RING } from '../../../../src/controllers/nodes/node-lifecycle/health.ts';
import { systemClock as clock, systemRandom as random } from '../../../../src/host/process/process.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

/** Longer than the preceding steps take on a busy machine. */
const GRACE_MS = 15_000;
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ controllers: { nodeMonitorGracePeriodMs: GRACE_MS } });
});
after(() => plane.stop());

const ring = (...states: RingMemberState['state'][]): RingMemberState[] =>
  states.map((state, index) => ({ name: `h${index}`, state }));

test('accepts the report of a failed host only while another host is reachable, or in a cluster of two hosts', () => {
  const all = ring('alive', 'alive', 'suspect');
  assert.deepEqual(newlyFailed(all, ring('alive', 'alive', 'dead')), ['h2']);
  assert.deepEqual(newlyFailed(all, ring('alive', 'dead', 'dead')), []);
  assert.deepEqual(newlyFailed(all, ring('alive', 'alive', 'left')), []);
  assert.deepEqual(newlyFailed([], ring('alive', 'alive', 'dead')), []);
  assert.deepEqual(newlyFailed(ring('alive', 'alive'), ring('alive', 'dead')), ['h1']);
  assert.deepEqual(newlyFailed(ring('alive', 'alive', 'alive', 'alive'), ring('alive', 'alive', 'dead', 'dead')), [
    'h2',
    'h3',
  ]);
  assert.deepEqual(failedBefore([], ring('alive', 'alive', 'dead')), ['h2']);
  assert.deepEqual(failedBefore(ring('alive', 'alive', 'dead'), ring('alive', 'alive', 'dead')), []);
  assert.deepEqual(failedBefore([], ring('alive', 'dead', 'dead')), []);
  assert.deepEqual(newlyFailed(ring('alive', 'alive', 'dead'), ring('alive', 'alive', 'dead')), []);
});

const node = (name: string): Promise<Node> => plane.of(resources.nodes).get(name);
const ready = async (name: string) => (await node(name)).status?.conditions?.find(({ type }) => type === 'Ready');
const taints = async (name: string): Promise<string> =>
  ((await node(name)).spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).join();

async function renew(name: string, create = false): Promise<void> {
  const spec = { holderIdentity: name, renewTime: new Date().toISOString().replace('Z', '000Z') };
  const leases = plane.of(resources.leases);
  if (create) await leases.create({ metadata: { name, namespace: 'kube-node-lease' }, spec });
  else await leases.patch(name, 'kube-node-lease', 'merge', { spec });
}

test('marks the node of a dead host as not ready immediately, and evicts its pods only after its lease expired', {
  timeout: 90_000,
}, async () => {
  for (const name of ['h0', 'h1', 'h2']) {
    await plane.addNode(name);
    await renew(name, true);
  }
  const beating = setInterval(() => void Promise.all([renew('h0'), renew('h1')]).catch(() => {}), 500);
  await plane.of(resources.pods).create({
    metadata: { name: 'p', namespace: 'default' },
    spec: { nodeName: 'h2', containers: [{ name: 'c', image: 'i' }] },
  });
  await eventually(
    async () => (await plane.of(resources.pods).get('p', 'default')).status?.phase === 'Running',
    'the pod runs',
  );
  const informers = createInformerFactory({ client: plane.admin, log: plane.log, clock, random });
  let report = (_members: readonly RingMemberState[]): void => {};
  const followed = followFailedHosts({
    ring: { follow: (changed) => (report = changed), stop: () => {} },
    client: plane.admin,
    informers,
    recorder: { event: () => {}, stop: async () => {} },
    clock,
    log: plane.log,
  });
  try {
    await informers.startAndSync();
    report(ring('alive', 'alive', 'alive'));
    await renew('h2');
    // A renewal that arrives after the report shows that the host runs.
    const renewTime = (await plane.of(resources.leases).get('h2', 'kube-node-lease')).spec?.renewTime;
    const leases = informers.informer(resources.leases, { namespace: 'kube-node-lease' });
    await eventually(async () => leases.get('kube-node-lease/h2')?.spec?.renewTime === renewTime, 'the renewal');
    const began = performance.now();
    report(ring('alive', 'alive', 'dead'));
    await eventually(async () => (await ready('h2'))?.status === 'Unknown', 'not ready');
    assert.equal((await ready('h2'))?.reason, 'NodeStatusUnknown');
    await eventually(
      async () => (await taints('h2')) === 'node.kubernetes.io/unreachable:NoSchedule',
      'NoSchedule only',
    );
    await eventually(async () => {
      const pod = await plane.of(resources.pods).get('p', 'default');
      return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'False');
    }, 'the pod takes no traffic');
    assert.ok(performance.now() - began < GRACE_MS - 500, 'all before the lease expires');
    await eventually(async () => (await taints('h2')).includes(':NoExecute'), 'eviction by the lease', 30_000);
    assert.ok(performance.now() - began >= GRACE_MS - 500);
    assert.equal((await ready('h2'))?.message, 'Kubelet stopped posting node status.');
  } finally {
    clearInterval(beating);
    followed.stop();
    await informers.stop();
  }
});

/** Follows a ring whose reports the test makes. Waits last a tenth of the usual time. */
async function followed(client: ApiClient, use: (report: (members: RingMemberState[]) => void) => Promise<void>) {
  const informers = createInformerFactory({ client: plane.admin, log: plane.log, clock, random });
  let report = (_members: readonly RingMemberState[]): void => {};
  const following = followFailedHosts({
    ring: { follow: (changed) => (report = changed), stop: () => {} },
    client,
    informers,
    recorder: { event: () => {}, stop: async () => {} },
    clock: { ...clock, setTimer: (delayMs, callback) => clock.setTimer(delayMs / 10, callback) },
    log: plane.log,
  });
  try {
    await informers.startAndSync();
    await use((members) => report(members));
  } finally {
    following.stop();
    await informers.stop();
  }
}

const named = (name: string, state: RingMemberState['state']): RingMemberState[] => [
  ...ring('alive', 'alive'),
  { name, state },
];

test('marks the node of a dead host whose last renewal of the lease arrives after a conflict', async () => {
  await plane.addNode('h3');
  await renew('h3', true);
  let conflicts = 0;
  const nodes = plane.admin.resource(resources.nodes);
  const client: ApiClient = {
    ...plane.admin,
    resource: (resource) => {
      const real = plane.admin.resource(resource);
      const patch: typeof real.patch = async (...args) => {
        if (conflicts > 0) return real.patch(...args);
        conflicts += 1;
        await renew('h3');
        await nodes.patch('h3', undefined, 'merge', { metadata: { labels: { changed: 'meanwhile' } } });
        return real.patch(...args);
      };
      return Object.assign(Object.create(real), { patch });
    },
  };
  await followed(client, async (report) => {
    report(named('h3', 'alive'));
    report(named('h3', 'dead'));
    await eventually(async () => (await ready('h3'))?.status === 'Unknown', 'not ready', 5_000);
    assert.equal((await ready('h3'))?.message, FAILED_IN_RING.message);
  });
  assert.equal(conflicts, 1);
});

test('leaves the node of a host ready that refutes each report of its death', async () => {
  await plane.addNode('h4');
  await renew('h4', true);
  await followed(plane.admin, async (report) => {
    for (let i = 0; i < 10; i += 1) {
      report(named('h4', 'alive'));
      report(named('h4', 'dead'));
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    report(named('h4', 'alive'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal((await ready('h4'))?.status, 'True');
  });
});
