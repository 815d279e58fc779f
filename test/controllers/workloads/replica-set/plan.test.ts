import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { labelSelectorOf } from '../../../../src/base/selector.ts';
import { podsToDelete } from '../../../../src/controllers/framework/core/pods.ts';
import {
  planReplicaStatus,
  planReplicas,
  podFromTemplate,
  type ReplicaSnapshot,
} from '../../../../src/controllers/workloads/replica-set/plan.ts';
import { NOW, pod, replicaSet, seeded } from '../../objects.ts';

const context = { nowMs: NOW, random: () => 0 };

function snapshot(replicas: number, candidates: readonly Pod[], more: Partial<ReplicaSnapshot> = {}): ReplicaSnapshot {
  const owner = replicaSet(replicas, { uid: 'owner' });
  return {
    owner,
    selector: labelSelectorOf(owner.spec?.selector),
    replicas,
    minReadySeconds: 0,
    template: owner.spec?.template,
    candidates,
    related: [],
    settled: true,
    ...more,
  };
}

test('creates missing pods and deletes surplus pods, except while writes are unconfirmed or the set is being deleted', () => {
  const mine = [pod({ owner: 'owner' }), pod({ owner: 'owner' })];
  assert.equal(planReplicas(snapshot(5, mine), context).create, 3);
  assert.equal(planReplicas(snapshot(1, mine), context).delete.length, 1);
  assert.equal(planReplicas(snapshot(5, mine, { settled: false }), context).create, 0);
  const deleting = snapshot(5, mine);
  const plan = planReplicas({ ...deleting, owner: replicaSet(5, { uid: 'owner', deletionTimestamp: 'x' }) }, context);
  assert.equal(plan.create, 0);
});

test('ignores finished and deleted pods, and creates 501 missing pods in two bursts', () => {
  const gone = [pod({ owner: 'owner', phase: 'Failed' }), pod({ owner: 'owner', deleting: true })];
  assert.equal(planReplicas(snapshot(1, gone), context).create, 1);
  assert.equal(planReplicas(snapshot(501, []), context).create, 500);
});

test('adopts matching orphans, releases pods with other labels, and ignores pods of other controllers', () => {
  const orphan = pod();
  const unmatched = pod({ labels: { app: 'b' } });
  const relabelled = pod({ owner: 'owner', labels: { app: 'b' } });
  const others = pod({ owner: 'someone' });
  const plan = planReplicas(snapshot(2, [orphan, unmatched, relabelled, others]), context);
  assert.deepEqual(plan.claim.adopt, [orphan]);
  assert.deepEqual(plan.claim.release, [relabelled]);
  assert.deepEqual(plan.claim.claimed, [orphan]);
  assert.equal(plan.create, 1);
});

const order: readonly (readonly [string, Pod, Pod])[] = [
  ['unassigned pods before assigned pods', pod({ ready: true }), pod({ node: 'n', phase: 'Pending' })],
  ['pending pods before running pods', pod({ node: 'n', phase: 'Pending' }), pod({ node: 'n' })],
  ['pods that are not ready before ready pods', pod({ node: 'n', ready: false }), pod({ node: 'n', ready: true })],
  [
    'pods with a lower deletion cost first',
    pod({ node: 'n', ready: true, annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-5' } }),
    pod({ node: 'n', ready: true }),
  ],
  [
    'recently ready pods before pods that have been ready for long',
    pod({ node: 'n', ready: true, readySinceMs: NOW - 1_000 }),
    pod({ node: 'n', ready: true, readySinceMs: NOW - 3_600_000 }),
  ],
  [
    'pods with more restarts first',
    pod({ node: 'n', ready: true, restarts: 7 }),
    pod({ node: 'n', ready: true, restarts: 0 }),
  ],
  [
    'newer pods before older pods',
    pod({ node: 'n', ready: true, createdMs: NOW - 10_000 }),
    pod({ node: 'n', ready: true, createdMs: NOW - 80_000_000 }),
  ],
];

for (const [title, first, second] of order) {
  test(`deletion order: ${title}`, () => {
    assert.deepEqual(podsToDelete([second, first], [], 1, NOW), [first]);
    assert.deepEqual(podsToDelete([first, second], [], 1, NOW), [first]);
  });
}

test('deletion order: prefers the node with more related pods', () => {
  const crowded = pod({ node: 'full', ready: true });
  const alone = pod({ node: 'empty', ready: true });
  const kin = [crowded, alone, pod({ node: 'full', ready: true }), pod({ node: 'full', ready: true })];
  assert.deepEqual(podsToDelete([alone, crowded], kin, 1, NOW), [crowded]);
});

test('converges to the number of replicas after random changes', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seeded(seed);
    const wanted = Math.floor(random() * 10);
    let pods: Pod[] = Array.from({ length: Math.floor(random() * 15) }, () =>
      pod({
        ...(random() < 0.7 ? { owner: 'owner' } : {}),
        phase: random() < 0.2 ? 'Failed' : 'Running',
        ready: random() < 0.5,
        deleting: random() < 0.2,
        labels: { app: random() < 0.9 ? 'a' : 'b' },
      }),
    );
    const plan = planReplicas(snapshot(wanted, pods), context);
    assert.ok(plan.create === 0 || plan.delete.length === 0, `seed ${seed}: never both`);
    pods = plan.claim.claimed.filter((each) => !plan.delete.includes(each));
    for (let index = 0; index < plan.create; index++) pods.push(pod({ owner: 'owner' }));
    const again = planReplicas(snapshot(wanted, pods), context);
    assert.equal(again.create + again.delete.length, 0, `seed ${seed}`);
    assert.equal(pods.length, wanted, `seed ${seed}`);
  }
});

test('counts labelled, ready and available pods, and schedules a check for the next available pod', () => {
  const pods = [
    pod({ owner: 'owner', ready: true, readySinceMs: NOW - 4_000 }),
    pod({ owner: 'owner', ready: true, readySinceMs: NOW - 60_000 }),
    pod({ owner: 'owner', ready: false }),
  ];
  const { status, recheckAfterMs } = planReplicaStatus(
    snapshot(3, pods, { minReadySeconds: 10 }),
    pods,
    undefined,
    context,
  );
  assert.deepEqual(status, {
    replicas: 3,
    fullyLabeledReplicas: 3,
    readyReplicas: 2,
    availableReplicas: 1,
    observedGeneration: 1,
  });
  assert.equal(recheckAfterMs, 6_000);
});

test('adds and removes the failure condition, and does not write an unchanged status', () => {
  const first = planReplicaStatus(snapshot(1, []), [], { reason: 'FailedCreate', message: 'quota' }, context);
  assert.equal(first.status?.conditions?.[0]?.reason, 'FailedCreate');
  const withFailure = {
    ...replicaSet(1, { uid: 'owner' }),
    ...(first.status === undefined ? {} : { status: first.status }),
  };
  const again = planReplicaStatus(
    snapshot(1, [], { owner: withFailure }),
    [],
    { reason: 'FailedCreate', message: 'quota' },
    { ...context, nowMs: NOW + 5_000 },
  );
  assert.equal(again.status, undefined);
  const mended = planReplicaStatus(snapshot(1, [], { owner: withFailure }), [], undefined, context);
  assert.equal(mended.status?.conditions, undefined);
});

test('copies labels and annotations from the template and sets the controller', () => {
  const owner = replicaSet(1, { uid: 'owner' });
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'rs', uid: 'owner', controller: true };
  const made = podFromTemplate(owner, owner.spec?.template, reference);
  assert.equal(made.metadata?.generateName, 'rs-');
  assert.deepEqual(made.metadata?.labels, { app: 'a' });
  assert.deepEqual(made.metadata?.ownerReferences, [reference]);
  assert.equal(made.spec?.containers[0]?.image, 'i');
});
