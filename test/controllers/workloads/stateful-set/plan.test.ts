import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ControllerRevision, StatefulSet } from '../../../../src/api/generated/apps/v1.ts';
import type { PersistentVolumeClaim, Pod } from '../../../../src/api/generated/core/v1.ts';
import { planStatefulHistory } from '../../../../src/controllers/workloads/stateful-set/history.ts';
import { planStatefulSet, type StatefulAction } from '../../../../src/controllers/workloads/stateful-set/plan.ts';
import { statefulPod } from '../../../../src/controllers/workloads/stateful-set/pod.ts';
import { NOW, nextUid, seeded } from '../../objects.ts';

const context = { nowMs: NOW, random: () => 0 };

type Spec = NonNullable<StatefulSet['spec']>;

function statefulSet(spec: Partial<Spec> = {}, status?: StatefulSet['status']): StatefulSet {
  return {
    metadata: { name: 'web', namespace: 'ns', uid: 'sts', generation: 1 },
    spec: {
      replicas: 3,
      serviceName: 'web',
      podManagementPolicy: 'OrderedReady',
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      selector: { matchLabels: { app: 'web' } },
      template: template('v2'),
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}
const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});
function revision(name: string, number: number, image: string): ControllerRevision {
  return {
    metadata: { name, namespace: 'ns', uid: name },
    data: { spec: { template: { ...template(image), $patch: 'replace' } } } as never,
    revision: number,
  };
}
const OLD = revision('web-old', 1, 'v1');
const NEW = revision('web-new', 2, 'v2');

interface Facts {
  old?: boolean;
  ready?: boolean;
  readySinceMs?: number;
  phase?: string;
  deleting?: boolean;
}
function member(set: StatefulSet, ordinal: number, facts: Facts = {}): Pod {
  const made = statefulPod(set, set.spec?.template, ordinal, facts.old === true ? 'web-old' : 'web-new');
  return {
    ...made,
    metadata: {
      ...made.metadata,
      uid: nextUid(),
      ...(facts.deleting === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    status: {
      phase: facts.phase ?? 'Running',
      conditions: [
        {
          type: 'Ready',
          status: facts.ready === false ? 'False' : 'True',
          lastTransitionTime: new Date(facts.readySinceMs ?? NOW - 60_000).toISOString(),
        },
      ],
    },
  };
}

function plan(set: StatefulSet, pods: readonly Pod[], claims: readonly PersistentVolumeClaim[] = []) {
  const history = planStatefulHistory(set, [OLD, NEW], pods);
  const claim = (name: string) => claims.find((each) => each.metadata?.name === name);
  return planStatefulSet({ set, pods, history, claim }, context);
}
const shown = (actions: readonly StatefulAction[]): string[] =>
  actions.map((action) => {
    if (action.type === 'create') return `create ${action.name}`;
    if (action.type === 'own') return `own ${action.claim.metadata?.name}`;
    return `${action.type} ${action.pod.metadata?.name}`;
  });

test('creates the pods of an ordered set one by one, each after its predecessor is available', () => {
  const set = statefulSet();
  assert.deepEqual(shown(plan(set, []).actions), ['create web-0']);
  assert.deepEqual(shown(plan(set, [member(set, 0, { ready: false })]).actions), []);
  assert.deepEqual(shown(plan(set, [member(set, 0)]).actions), ['create web-1']);
  assert.deepEqual(shown(plan(set, [member(set, 0), member(set, 2)]).actions), ['create web-1']);
});

test('creates all pods of a parallel set at once', () => {
  const set = statefulSet({ podManagementPolicy: 'Parallel' });
  assert.deepEqual(shown(plan(set, [member(set, 1, { ready: false })]).actions), ['create web-0', 'create web-2']);
});

test('the ordinals of a stateful set may start at another number', () => {
  const set = statefulSet({ replicas: 1, ordinals: { start: 5 } });
  const [action] = plan(set, []).actions;
  assert.ok(action?.type === 'create');
  assert.equal(action.pod?.metadata?.labels?.['apps.kubernetes.io/pod-index'], '5');
  assert.equal(action.pod?.metadata?.labels?.['statefulset.kubernetes.io/pod-name'], 'web-5');
  assert.deepEqual([action.pod?.spec?.hostname, action.pod?.spec?.subdomain], ['web-5', 'web']);
  assert.deepEqual(shown(plan(set, [member(set, 5), member(set, 0)]).actions), ['delete web-0']);
});

test('deletes a finished pod and waits for its termination before recreating the pod', () => {
  const set = statefulSet();
  assert.deepEqual(shown(plan(set, [member(set, 0, { phase: 'Failed' }), member(set, 1)]).actions), ['delete web-0']);
  assert.deepEqual(shown(plan(set, [member(set, 0, { phase: 'Failed', deleting: true })]).actions), []);
});

test('scales down from the highest ordinal, one at a time, and stops at an unhealthy pod', () => {
  const set = statefulSet({ replicas: 1 });
  const pods = [0, 1, 2, 3].map((ordinal) => member(set, ordinal));
  assert.deepEqual(shown(plan(set, pods).actions), ['delete web-3']);
  const [a, b, c, d] = pods;
  assert.ok(a && b && c && d);
  assert.deepEqual(shown(plan(set, [a, b, c, member(set, 3, { deleting: true })]).actions), []);
  assert.deepEqual(
    shown(plan(set, [a, member(set, 1, { ready: false }), c, member(set, 3, { ready: false })]).actions),
    [],
  );
  assert.deepEqual(shown(plan(set, [a, b, c, member(set, 3, { ready: false })]).actions), ['delete web-3']);
  const parallel = statefulSet({ replicas: 1, podManagementPolicy: 'Parallel' });
  assert.deepEqual(shown(plan(parallel, pods).actions), ['delete web-3', 'delete web-2', 'delete web-1']);
});

test('replaces pods from the highest ordinal down to the partition during a rolling update', () => {
  const at = (partition: number, maxUnavailable?: number | string) =>
    statefulSet(
      {
        replicas: 4,
        podManagementPolicy: 'Parallel',
        updateStrategy: {
          type: 'RollingUpdate',
          rollingUpdate: { partition, ...(maxUnavailable === undefined ? {} : { maxUnavailable }) },
        },
      },
      { replicas: 4, currentRevision: 'web-old' },
    );
  const set = at(0);
  const old = [0, 1, 2, 3].map((ordinal) => member(set, ordinal, { old: true }));
  const [p0, p1, p2] = old;
  assert.ok(p0 && p1 && p2);
  assert.deepEqual(shown(plan(set, old).actions), ['delete web-3']);
  assert.deepEqual(shown(plan(set, [p0, p1, p2, member(set, 3, { ready: false })]).actions), []);
  assert.deepEqual(shown(plan(set, [p0, p1, p2, member(set, 3)]).actions), ['delete web-2']);
  assert.deepEqual(shown(plan(at(3), [p0, p1, p2, member(set, 3)]).actions), []);
  assert.deepEqual(shown(plan(at(0, 2), old).actions), ['delete web-3', 'delete web-2']);
  assert.deepEqual(shown(plan(at(0, '75%'), old).actions), ['delete web-3', 'delete web-2', 'delete web-1']);
  assert.deepEqual(shown(plan(statefulSet({ updateStrategy: { type: 'OnDelete' } }), [p0, p1, p2]).actions), []);
});

test('recreates a pod below the partition with its old revision', () => {
  const set = statefulSet(
    { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 1 } } },
    { replicas: 3, currentRevision: 'web-old' },
  );
  const created = (pods: readonly Pod[]): string | undefined => {
    const action = plan(set, pods).actions.find((each) => each.type === 'create');
    return action?.type === 'create' ? action.pod?.spec?.containers[0]?.image : undefined;
  };
  assert.equal(created([]), 'v1');
  assert.equal(created([member(set, 0, { old: true })]), 'v2');
});

test('counts pods in the status, and updates currentRevision once all pods are updated and ready', () => {
  const set = statefulSet({}, { replicas: 3, currentRevision: 'web-old' });
  const half = plan(set, [member(set, 0, { old: true }), member(set, 1, { old: true }), member(set, 2)]).status;
  assert.deepEqual(
    [half?.replicas, half?.readyReplicas, half?.availableReplicas, half?.currentReplicas, half?.updatedReplicas],
    [3, 3, 3, 2, 1],
  );
  assert.deepEqual([half?.currentRevision, half?.updateRevision], ['web-old', 'web-new']);
  const all = plan(
    set,
    [0, 1, 2].map((ordinal) => member(set, ordinal)),
  ).status;
  assert.deepEqual([all?.currentRevision, all?.currentReplicas, all?.updatedReplicas], ['web-new', 3, 3]);
});

test('an ordered set waits minReadySeconds before the next pod', () => {
  const set = statefulSet({ minReadySeconds: 10 });
  const { actions, status, recheckAfterMs } = plan(set, [member(set, 0, { readySinceMs: NOW - 4_000 })]);
  assert.deepEqual(
    [shown(actions), status?.readyReplicas, status?.availableReplicas, recheckAfterMs],
    [[], 1, 0, 6_000],
  );
});

test('creates claims before their pod, keeps the claims, and sets owners by the retention policy', () => {
  const volumeClaimTemplates = [{ metadata: { name: 'data' }, spec: {} }];
  const claim = (
    name: string,
    ownerReferences: { uid: string; kind: string; name: string; apiVersion: string }[] = [],
  ) => ({ metadata: { name, uid: name, ownerReferences } }) as PersistentVolumeClaim;
  const set = statefulSet({ replicas: 1, volumeClaimTemplates });
  const [create] = plan(set, []).actions;
  assert.ok(create?.type === 'create');
  assert.equal(create.claims[0]?.metadata?.name, 'data-web-0');
  assert.deepEqual(create.claims[0]?.metadata?.labels, { app: 'web' });
  assert.equal(create.pod?.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName, 'data-web-0');
  const [again] = plan(set, [], [claim('data-web-0')]).actions;
  assert.deepEqual(again?.type === 'create' && again.claims, []);
  const stale = claim('data-web-0', [{ apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'earlier' }]);
  assert.deepEqual(plan(set, [], [stale]).actions, []);
  const deleting = statefulSet({
    replicas: 1,
    volumeClaimTemplates,
    persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
  });
  const pods = [member(deleting, 0), member(deleting, 1)];
  const actions = plan(deleting, pods, [claim('data-web-0'), claim('data-web-1')]).actions;
  assert.deepEqual(shown(actions), ['own data-web-0', 'own data-web-1', 'delete web-1']);
  assert.deepEqual(
    actions.map((action) => (action.type === 'own' ? action.ownerReferences.map((each) => each.kind) : [])),
    [['StatefulSet'], ['Pod'], []],
  );
  const setRef = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 'sts' };
  const kept = plan(set, [member(set, 0)], [claim('data-web-0', [setRef])]).actions;
  assert.deepEqual(kept[0]?.type === 'own' && kept[0].ownerReferences, []);
  // A wrong owner reference of the set is corrected. A claim with another controller gets and keeps none of the set's.
  const controller = { ...setRef, controller: true, blockOwnerDeletion: true };
  const other = { apiVersion: 'example.com/v1', kind: 'Keeper', name: 'k', uid: 'k' };
  const keeper = { ...other, controller: true };
  const owned = (...references: object[]): unknown => {
    const [action] = plan(
      { ...deleting, spec: { ...deleting.spec, replicas: 1 } } as typeof deleting,
      pods.slice(0, 1),
      [claim('data-web-0', references as never)],
    ).actions;
    return action?.type === 'own' ? action.ownerReferences : undefined;
  };
  assert.equal(owned(controller), undefined);
  assert.deepEqual(owned({ ...controller, controller: false }), [controller]);
  assert.deepEqual(owned(other), [other, controller]);
  assert.equal(owned(keeper), undefined);
  assert.deepEqual(owned(keeper, controller), [keeper]);
  assert.equal(owned({ ...controller, uid: 'earlier' }), undefined);
});

test('creates revisions, reuses a revision after an undo, and limits the number of revisions', () => {
  const set = statefulSet({ revisionHistoryLimit: 0 }, { replicas: 0, currentRevision: 'web-old' });
  const first = planStatefulHistory(set, [], []);
  assert.equal(first.change, 'create');
  assert.equal(first.update.revision, 1);
  assert.equal(first.current, first.update);
  const undone = planStatefulHistory(statefulSet({ template: template('v1') }), [OLD, NEW], []);
  assert.deepEqual([undone.change, undone.update.metadata?.name, undone.update.revision], ['update', 'web-old', 3]);
  const ancient = revision('web-ancient', 0, 'v0');
  assert.deepEqual(planStatefulHistory(set, [ancient, OLD, NEW], []).delete, [ancient]);
  const runs = { metadata: { name: 'web-1', labels: { 'controller-revision-hash': 'web-ancient' } } };
  assert.deepEqual(planStatefulHistory(set, [ancient, OLD, NEW], [runs]).delete, []);
});

/** Simulation that executes plans; pods randomly become ready or fail. */
test('respects all limits in random simulations, and converges once no pod fails any more', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = seeded(seed);
    const pick = (count: number): number => Math.floor(random() * count);
    const ordered = random() < 0.5;
    const maxUnavailable = 1 + pick(3);
    let set = statefulSet(
      {
        replicas: pick(6),
        podManagementPolicy: ordered ? 'OrderedReady' : 'Parallel',
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0, maxUnavailable } },
      },
      { replicas: 0, currentRevision: 'web-old' },
    );
    let pods = Array.from({ length: pick(7) }, (_, ordinal) => member(set, ordinal, { old: true }));
    const isHealthy = (pod: Pod): boolean =>
      pod.status?.conditions?.[0]?.status === 'True' && pod.metadata?.deletionTimestamp === undefined;
    for (let step = 0; step < 120; step++) {
      const chaos = step < 40;
      if (chaos && random() < 0.05) set = { ...set, spec: { ...(set.spec as Spec), replicas: pick(6) } };
      const { actions, status } = plan(set, pods);
      if (ordered) {
        const budget = Math.max(1, maxUnavailable);
        assert.ok(actions.length <= budget, `seed ${seed}: ${shown(actions).join()}`);
      }
      const wanted = pods.filter((pod) => Number(pod.metadata?.name?.slice(4)) < (set.spec?.replicas ?? 0));
      const lost = actions.filter(
        (action) => action.type === 'delete' && wanted.includes(action.pod) && isHealthy(action.pod),
      ).length;
      const missing = (set.spec?.replicas ?? 0) - wanted.filter(isHealthy).length;
      assert.ok(lost === 0 || lost + missing <= maxUnavailable, `seed ${seed}: ${lost} more beside ${missing}`);
      for (const action of actions) {
        if (action.type === 'create' && action.pod !== undefined) {
          assert.ok(!pods.some((pod) => pod.metadata?.name === action.name), `seed ${seed}: ${action.name} twice`);
          const made = member(set, Number(action.name.slice(4)), { ready: false });
          const labels = action.pod.metadata?.labels ?? {};
          pods.push({ ...made, metadata: { ...made.metadata, labels } });
        } else if (action.type === 'delete') {
          pods = pods.map((pod) =>
            pod === action.pod ? { ...pod, metadata: { ...pod.metadata, deletionTimestamp: 'now' } } : pod,
          );
        }
      }
      pods = pods
        .filter((pod) => pod.metadata?.deletionTimestamp === undefined || random() < 0.4)
        .map((pod) => {
          const broken = chaos && random() < 0.02;
          const ready = isHealthy(pod) ? !broken : random() < 0.5;
          const isOld = pod.metadata?.labels?.['controller-revision-hash'] === 'web-old';
          if (ready === isHealthy(pod) || (isOld && !ready && ordered)) return pod;
          const fresh = member(set, Number(pod.metadata?.name?.slice(4)), { ready }).status;
          return { ...pod, ...(fresh === undefined ? {} : { status: fresh }) };
        });
      if (status !== undefined) set = { ...set, status };
    }
    const names = pods.map((pod) => pod.metadata?.name).sort();
    const want = Array.from({ length: set.spec?.replicas ?? 0 }, (_, ordinal) => `web-${ordinal}`);
    assert.deepEqual(names, want, `seed ${seed}`);
    assert.ok(
      pods.every((pod) => pod.metadata?.labels?.['controller-revision-hash'] === 'web-new'),
      `seed ${seed}`,
    );
    assert.equal(set.status?.currentRevision, 'web-new', `seed ${seed}`);
  }
});

test('plans a set of two billion replicas in bounded time and limits the pods that are created at once', () => {
  const replicas = 2_147_483_647;
  const begun = performance.now();
  const ordered = statefulSet({ replicas });
  const history = { current: NEW, update: NEW, change: undefined, delete: [] } as never;
  const plan = (set: StatefulSet, pods: readonly Pod[]) =>
    planStatefulSet({ set, pods, history, claim: () => undefined }, context);
  const names = (actions: readonly StatefulAction[]) =>
    actions.map((action) => (action.type === 'create' ? `+${action.name}` : `-${action.type}`));
  const first = [member(ordered, 0), member(ordered, 1)];
  assert.deepEqual(names(plan(ordered, first).actions), ['+web-2']);
  const parallel = statefulSet({ replicas, podManagementPolicy: 'Parallel' });
  const made = names(plan(parallel, [member(parallel, 1), member(parallel, 2_000_000_000)]).actions);
  assert.equal(made.length, 500);
  assert.deepEqual(made.slice(0, 3), ['+web-0', '+web-2', '+web-3']);
  const partitioned = statefulSet({
    replicas,
    podManagementPolicy: 'Parallel',
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2_000_000_000 } },
  });
  plan(partitioned, [member(partitioned, 0, { old: true })]);
  assert.ok(performance.now() - begun < 1_000, `planning took ${Math.round(performance.now() - begun)} ms`);
});
