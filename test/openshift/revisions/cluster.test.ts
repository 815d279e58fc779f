/** Three in-memory masters with this project's revisions, and a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Event } from '../../../src/api/generated/core/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { silentLog } from '../../../src/base/log.ts';
import { createEventRecorder, createInformerFactory, createLeaderElector } from '../../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../../src/host/process/process.ts';
import type { StaticPodOperator } from '../../../src/openshift/operators/kinds/operator/index.ts';
import { HostRevisions } from '../../../src/openshift/revisions/index.ts';
import { operatorType } from '../../../src/openshift/revisions/revision-objects.ts';
import { type ControlPlane, startControlPlane } from '../../controllers/harness.ts';
import { MemoryHost } from './memory-host.ts';

const NAMES = ['m1', 'm2', 'm3'];
const TYPE = operatorType('kube-apiserver');
const NAMESPACE = 'openshift-kube-apiserver';

let plane: ControlPlane;
const hosts = new Map<string, MemoryHost>();
const stops: (() => Promise<void>)[] = [];
let restarting = 0;
let mostAtOnce = 0;
const order: string[] = [];

before(async () => {
  plane = await startControlPlane();
  for (const name of NAMES) {
    await plane.addNode(name);
    const host = new MemoryHost('one');
    hosts.set(name, host);
    const revisions = new HostRevisions({
      node: name,
      files: new Map([['kube-apiserver', host]]),
      process: () => host,
      clock,
      log: silentLog,
    });
    await revisions.prepare(new Set());
    host.boot();
    host.onRestart = async () => {
      order.push(name);
      restarting += 1;
      mostAtOnce = Math.max(mostAtOnce, restarting);
      await new Promise((resolve) => setTimeout(resolve, 100));
      restarting -= 1;
    };
    const client = await plane.clientAs('system:admin', 'system:masters');
    const informers = createInformerFactory({ client, clock, random, log: silentLog });
    const recorder = createEventRecorder({ client, component: 'revisions', clock, random, log: silentLog });
    revisions.start({
      client,
      recorder,
      informers,
      image: 'hyperedge.local/installer',
      exclusively: async (work) => {
        const lease = { namespace: 'kube-system', name: 'hyperedge-revisions', retryPeriodMs: 200 };
        const elector = createLeaderElector({ client, ...lease, identity: name, clock, random, log: silentLog });
        await elector.run(() => work(client));
      },
    });
    void informers.startAndSync();
    stops.push(async () => {
      await revisions.stop();
      await recorder.stop();
      await informers.stop();
    });
  }
});

after(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await plane?.stop();
});

const operator = (): Promise<StaticPodOperator> => plane.of(TYPE).get('cluster');

async function until(what: string, isSo: (object: StaticPodOperator) => boolean): Promise<StaticPodOperator> {
  const deadline = performance.now() + 90_000;
  for (;;) {
    // A busy machine may not respond in time.
    const object = await operator().catch(() => undefined);
    if (object !== undefined && isSo(object)) return object;
    if (performance.now() > deadline) assert.fail(`${what}: ${JSON.stringify(object?.status)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const allAt = (revision: number): Promise<StaticPodOperator> =>
  until(`all at ${revision}`, ({ status }) => {
    const nodes = status?.nodeStatuses ?? [];
    return (
      nodes.length === NAMES.length &&
      status?.latestAvailableRevision === revision &&
      nodes.every((each) => each.currentRevision === revision && each.targetRevision === undefined)
    );
  });

/** Events of the operator, as soon as there are `count`. */
async function events(namespace: string, count: number): Promise<string[]> {
  for (const deadline = performance.now() + 10_000; ; ) {
    const { items } = await plane.of(resources.events).list({ namespace });
    const own = items.filter(({ involvedObject: { kind, name } }) => kind === TYPE.kind && name === 'cluster');
    if (own.length >= count || performance.now() > deadline)
      return own.map((each) => `${each.reason} ${each.message}`).sort();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** First event with this reason. Recorders write events later than the status that they describe. */
async function firstEvent(reason: string): Promise<Event> {
  for (const deadline = performance.now() + 30_000; ; ) {
    const { items } = await plane.of(resources.events).list({ namespace: NAMESPACE });
    const found = items.find((each) => each.reason === reason);
    if (found !== undefined) return found;
    if (performance.now() > deadline)
      assert.fail(`no event ${reason} among ${items.map((each) => each.reason).join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const patch = (spec: object): Promise<StaticPodOperator> =>
  plane.of(TYPE).patch('cluster', undefined, 'merge', { spec });

test('reports the revision with which each master started', { timeout: 120_000 }, async () => {
  const { status } = await allAt(1);
  assert.equal(status?.readyReplicas, 3);
  const map = await plane.of(resources.configMaps).get('revision-status-1', NAMESPACE);
  assert.equal(map.data?.['status'], 'Succeeded');
});

test('installs a forced revision on one master after the other', { timeout: 120_000 }, async () => {
  await patch({ forceRedeploymentReason: 'x' });
  await allAt(2);
  // A master that has not reported that it is healthy yet comes first.
  assert.deepEqual(order.toSorted(), NAMES);
  assert.equal(mostAtOnce, 1);
  const because = 'spec changed: spec.forceRedeploymentReason';
  const wanted = [
    ...NAMES.flatMap((name) => [
      `NodeCurrentRevisionChanged Updated node "${name}" from revision 1 to 2 because static pod is ready`,
      `NodeTargetRevisionChanged Updating node "${name}" from revision 1 to 2 because ${because}`,
    ]),
    `RevisionCreate Revision 2 created because ${because}`,
    `RevisionTriggered new revision 2 triggered by "${because}"`,
  ];
  for (const namespace of ['default', NAMESPACE])
    assert.deepEqual(await events(namespace, wanted.length), wanted.sort());
  const pods = await plane.of(resources.pods).list({ namespace: NAMESPACE });
  const shown = pods.items.map(({ metadata, status }) => `${metadata?.name} ${status?.phase}`).sort();
  for (const name of NAMES) assert.ok(shown.includes(`installer-2-${name} Succeeded`), shown.join());
});

test('a revision that fails on the first master is rolled back there and not installed on other masters', {
  timeout: 120_000,
}, async () => {
  order.length = 0;
  await patch({ unsupportedConfigOverrides: { apiServerArguments: { bad: ['x'] } } });
  const { status } = await until('failed', (each) =>
    (each.status?.nodeStatuses ?? []).some(
      ({ lastFailedRevision, targetRevision }) => lastFailedRevision === 3 && targetRevision === undefined,
    ),
  );
  const [first, ...others] = status?.nodeStatuses ?? [];
  assert.equal(first?.currentRevision, 2);
  assert.equal(first?.lastFailedReason, 'OperandFailedFallback');
  assert.equal(first?.lastFallbackCount, 1);
  for (const each of others) assert.equal(each.lastFailedRevision, undefined);
  assert.deepEqual(order, ['m1', 'm1']);
  const failure = await firstEvent('InstallerPodFailed');
  assert.equal(failure.type, 'Warning');
  assert.match(
    failure.message ?? '',
    /^Failed to install revision 3 \(attempt 1\) on node "m1", which runs revision 2: ./,
  );
  const degraded = status?.conditions?.find(({ type }) => type === 'NodeInstallerDegraded');
  assert.equal(degraded?.status, 'True');
  const map = await plane.of(resources.configMaps).get('revision-status-3', NAMESPACE);
  assert.equal(map.data?.['status'], 'Failed');
});

test('replaces a failed revision when the invalid setting is corrected', { timeout: 120_000 }, async () => {
  await patch({ unsupportedConfigOverrides: null });
  const { status } = await allAt(4);
  assert.equal(status?.nodeStatuses?.[0]?.lastFailedRevision, undefined);
});

test('restarts only the master on which a configuration file changed', { timeout: 120_000 }, async () => {
  order.length = 0;
  const host = hosts.get('m2') as MemoryHost;
  host.edit('two');
  const { status } = await allAt(5);
  assert.equal(status?.latestAvailableRevisionReason, 'm2: master/master-config.yaml changed');
  assert.deepEqual(order, ['m2']);
});
