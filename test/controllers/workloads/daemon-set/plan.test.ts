import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ControllerRevision, DaemonSet } from '../../../../src/api/generated/apps/v1.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { planHistory } from '../../../../src/controllers/workloads/daemon-set/history.ts';
import {
  type DaemonSnapshot,
  planDaemonPods,
  planDaemonStatus,
} from '../../../../src/controllers/workloads/daemon-set/plan.ts';
import { daemonPod, nodeOfDaemonPod } from '../../../../src/controllers/workloads/daemon-set/pod.ts';
import { NOW, nextUid, pod, seeded } from '../../objects.ts';

const context = { nowMs: NOW, random: () => 0 };

function daemonSet(spec: Partial<NonNullable<DaemonSet['spec']>> = {}): DaemonSet {
  return {
    metadata: { name: 'ds', namespace: 'ns', uid: 'ds', generation: 1 },
    spec: {
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
      ...spec,
    },
  };
}

const on = (node: string, hash = 'new', more: Parameters<typeof pod>[0] = {}): Pod =>
  pod({ node, ready: true, owner: 'ds', labels: { app: 'a', 'controller-revision-hash': hash }, ...more });
const runs = (name: string) => ({ name, shouldRun: true, shouldContinue: true });

function snapshot(
  pods: readonly Pod[],
  nodes = [runs('a'), runs('b')],
  more: Partial<DaemonSnapshot> = {},
): DaemonSnapshot {
  return { set: daemonSet(), pods, nodes, hash: 'new', settled: true, mayReplaceFailed: () => true, ...more };
}
const plan = (...args: Parameters<typeof snapshot>) => planDaemonPods(snapshot(...args), context);

test('creates a pod on every eligible node and deletes pods from nodes that became ineligible', () => {
  assert.deepEqual(plan([on('a')]).create, ['b']);
  const expelled = { name: 'b', shouldRun: false, shouldContinue: false };
  const tolerated = { name: 'b', shouldRun: false, shouldContinue: true };
  const pods = [on('a'), on('b')];
  assert.deepEqual(plan(pods, [runs('a'), expelled]).delete, [pods[1]]);
  assert.deepEqual(plan(pods, [runs('a'), tolerated]).delete, []);
  assert.deepEqual(plan([on('a')], [runs('a'), tolerated]).create, []);
  assert.deepEqual(plan([on('a')], undefined, { settled: false }).create, []);
});

test('waits for a terminating pod before creating the next pod on the node', () => {
  assert.deepEqual(plan([on('a'), on('b', 'new', { deleting: true })]).create, []);
});

test('deletes the newer of two pods on a node', () => {
  const old = on('a', 'new', { createdMs: NOW - 9_000 });
  const young = on('a', 'new', { createdMs: NOW - 1_000 });
  assert.deepEqual(plan([young, old, on('b')]).delete, [young]);
});

test('replaces a failed pod after its back-off', () => {
  const failed = on('a', 'new', { phase: 'Failed' });
  const result = plan([failed, on('b')]);
  assert.deepEqual(result.delete, [failed]);
  assert.equal(result.events[0]?.reason, 'FailedDaemonPod');
  assert.deepEqual(plan([failed, on('b')], undefined, { mayReplaceFailed: () => false }).delete, []);
});

test('deletes a pending pod whose node was deleted', () => {
  const waiting = { ...daemonPod(daemonSet(), 'gone', 'new') };
  waiting.metadata = { ...waiting.metadata, uid: nextUid(), name: 'w' };
  assert.equal(nodeOfDaemonPod(waiting), 'gone');
  assert.deepEqual(plan([on('a'), on('b'), waiting]).delete, [waiting]);
});

test('replaces unavailable pods first, then as many as maxUnavailable allows', () => {
  const nodes = ['a', 'b', 'c', 'd'].map(runs);
  const old = ['a', 'b', 'c', 'd'].map((name) => on(name, 'old'));
  assert.equal(plan(old, nodes).delete.length, 1);
  const broken = on('a', 'old', { ready: false });
  assert.deepEqual(plan([broken, ...old.slice(1)], nodes).delete, [broken]);
  const replacing = on('a', 'new', { ready: false });
  assert.deepEqual(plan([replacing, ...old.slice(1)], nodes).delete, []);
  const onDelete = daemonSet({ updateStrategy: { type: 'OnDelete' } });
  assert.deepEqual(plan(old, nodes, { set: onDelete }).delete, []);
});

test('with surge creates the new pod first, and deletes the old pod once the new pod is available', () => {
  const set = daemonSet({
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  });
  const old = [on('a', 'old'), on('b', 'old')];
  assert.deepEqual(plan(old, undefined, { set }).create, ['a']);
  const starting = [...old, on('a', 'new', { ready: false })];
  assert.deepEqual(plan(starting, undefined, { set }).create, []);
  assert.deepEqual(plan(starting, undefined, { set }).delete, []);
  const started = [...old, on('a', 'new')];
  assert.deepEqual(plan(started, undefined, { set }).delete, [old[0]]);
});

test('respects maxUnavailable during a rolling update and completes the update', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seeded(seed);
    const names = Array.from({ length: 2 + Math.floor(random() * 8) }, (_, index) => `n${index}`);
    const maxUnavailable = 1 + Math.floor(random() * 3);
    const set = daemonSet({
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable, maxSurge: 0 } },
    });
    let pods = names.map((name) => on(name, 'old'));
    let round = 0;
    for (; round < 200; round++) {
      const upCount = (): number => pods.filter((each) => each.status?.conditions?.[0]?.status === 'True').length;
      const wereAllUp = upCount() === names.length;
      const next = planDaemonPods(snapshot(pods, names.map(runs), { set }), context);
      if (wereAllUp && next.create.length + next.delete.length === 0) break;
      pods = pods.filter((each) => !next.delete.includes(each));
      pods.push(...next.create.map((name) => on(name, 'new', { ready: false })));
      pods = pods.map((each) =>
        random() < 0.5 ? on(each.spec?.nodeName ?? '', each.metadata?.labels?.['controller-revision-hash']) : each,
      );
      assert.ok(upCount() >= names.length - maxUnavailable, `seed ${seed}: ${upCount()} of ${names.length}`);
    }
    assert.ok(round < 200, `seed ${seed} ends`);
    assert.ok(pods.every((each) => each.metadata?.labels?.['controller-revision-hash'] === 'new'));
  }
});

test('the status of a daemon set counts nodes by the state of their pods', () => {
  const { status } = planDaemonStatus(
    snapshot(
      [on('a'), on('b', 'old', { ready: false }), on('c')],
      [runs('a'), runs('b'), { name: 'c', shouldRun: false, shouldContinue: true }, runs('d')],
    ),
    context,
  );
  assert.deepEqual(status, {
    desiredNumberScheduled: 3,
    currentNumberScheduled: 2,
    numberMisscheduled: 1,
    numberReady: 1,
    updatedNumberScheduled: 1,
    numberAvailable: 1,
    numberUnavailable: 2,
    observedGeneration: 1,
  });
});

test('pins the pod to its node, adds daemon tolerations and keeps its own requirements', () => {
  const set = daemonSet();
  const expression = { key: 'disk', operator: 'In', values: ['ssd'] };
  if (set.spec?.template.spec !== undefined) {
    set.spec.template.spec.affinity = {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
      },
    };
    set.spec.template.spec.hostNetwork = true;
  }
  const made = daemonPod(set, 'n', 'hash');
  const [term] =
    made.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  assert.deepEqual(term?.matchExpressions, [expression]);
  assert.deepEqual(term?.matchFields, [{ key: 'metadata.name', operator: 'In', values: ['n'] }]);
  const keys = made.spec?.tolerations?.map((toleration) => toleration.key?.replace('node.kubernetes.io/', ''));
  assert.deepEqual(keys, [
    'not-ready',
    'unreachable',
    'disk-pressure',
    'memory-pressure',
    'pid-pressure',
    'unschedulable',
    'network-unavailable',
  ]);
  assert.equal(made.metadata?.labels?.['controller-revision-hash'], 'hash');
});

test('stores revision data with the same bytes as kube-controller-manager', () => {
  const template = {
    spec: { nodeName: '', containers: [{ name: 'c', image: 'i', resources: {}, ports: [] }] },
    metadata: { labels: { b: '1', a: '2' } },
  };
  const set: DaemonSet = { metadata: { name: 'ds', namespace: 'ns', uid: 'u' }, spec: { selector: {}, template } };
  const { create } = planHistory(set, [], []);
  assert.equal(
    JSON.stringify(create?.data),
    '{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"2","b":"1"}},"spec":{"containers":[{"image":"i","name":"c","resources":{}}],"nodeName":""}}}}',
  );
});

test('creates a revision for a new template, renumbers a reused revision, and deletes surplus revisions', () => {
  const asStored = (revision: ControllerRevision | undefined): ControllerRevision => {
    assert.ok(revision);
    return { ...revision, metadata: { ...revision.metadata, uid: nextUid() } };
  };
  const image = (name: string, limit = 10): DaemonSet =>
    daemonSet({
      revisionHistoryLimit: limit,
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: name }] } },
    });
  const first = asStored(planHistory(image('v1'), [], []).create);
  assert.equal(first.revision, 1);
  assert.equal(planHistory(image('v1'), [first], []).create, undefined);
  const second = asStored(planHistory(image('v2'), [first], []).create);
  assert.equal(second.revision, 2);
  const back = planHistory(image('v1'), [first, second], []);
  assert.equal(back.update?.revision, 3);
  assert.equal(back.hash, first.metadata?.labels?.['controller-revision-hash']);
  assert.deepEqual(planHistory(image('v2', 0), [first, second], []).delete, [first]);
  const running = on('a', first.metadata?.labels?.['controller-revision-hash'] ?? '');
  assert.deepEqual(planHistory(image('v2', 0), [first, second], [running]).delete, []);
});

test('creates a pod beside a finished pod that a finalizer retains', () => {
  for (const phase of ['Succeeded', 'Failed'])
    assert.deepEqual(plan([on('a'), on('b', 'new', { phase, deleting: true })]).create, ['b']);
});
