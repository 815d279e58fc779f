import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Deployment, ReplicaSet } from '../../../../src/api/generated/apps/v1.ts';
import { timestamp } from '../../../../src/base/time/timestamps.ts';
import { maxRevision, REVISION, revisionOf } from '../../../../src/controllers/workloads/deployment/annotations.ts';
import { type DeploymentPlan, planDeployment } from '../../../../src/controllers/workloads/deployment/plan.ts';
import { sizesOf } from '../../../../src/controllers/workloads/deployment/sizes.ts';
import { deployment, NOW, nextUid, pod, seeded } from '../../objects.ts';

/** A deployment, its sets and the number of pods of each: a minimal cluster for simulated roll-outs. */
class World {
  deployment: Deployment;
  sets: ReplicaSet[] = [];
  nowMs = NOW;
  lastPlan: DeploymentPlan | undefined;
  readonly #random: () => number;
  readonly #pods = new Map<string, { total: number; available: number }>();

  constructor(initial: Deployment, seed: number) {
    this.deployment = initial;
    this.#random = seeded(seed);
  }

  plan(): DeploymentPlan {
    const plan = planDeployment(
      { deployment: this.deployment, replicaSets: this.sets, podsBySet: new Map() },
      { nowMs: this.nowMs, random: this.#random },
    );
    this.lastPlan = plan;
    return plan;
  }

  reconcile(): DeploymentPlan {
    const plan = this.plan();
    for (const set of plan.update) {
      this.sets = this.sets.map((each) =>
        each.metadata?.uid === set.metadata?.uid
          ? { ...set, metadata: { ...set.metadata, generation: (set.metadata?.generation ?? 0) + 1 } }
          : each,
      );
    }
    // Surplus pods are marked for deletion at once, as upstream assumes; unavailable pods come first.
    for (const set of this.sets) {
      const pods = this.#pods.get(set.metadata?.uid ?? '');
      if (pods === undefined) continue;
      pods.total = Math.min(pods.total, set.spec?.replicas ?? 0);
      pods.available = Math.min(pods.available, pods.total);
    }
    if (plan.create !== undefined) {
      const uid = nextUid();
      this.#pods.set(uid, { total: 0, available: 0 });
      this.sets.push({
        ...plan.create,
        metadata: { ...plan.create.metadata, uid, generation: 1, creationTimestamp: timestamp(this.nowMs) },
      });
    }
    this.sets = this.sets.filter((set) => !plan.delete.some((each) => each.metadata?.uid === set.metadata?.uid));
    const annotations = { ...this.deployment.metadata?.annotations };
    if (plan.revision !== undefined) annotations[REVISION] = plan.revision;
    this.deployment = {
      ...this.deployment,
      metadata: { ...this.deployment.metadata, annotations },
      ...(plan.status === undefined ? {} : { status: plan.status }),
    };
    return plan;
  }

  /** Simulates progress of the replica set controller and the kubelets. No pod fails. */
  progress(): void {
    this.nowMs += 1_000;
    this.sets = this.sets.map((set) => {
      const pods = this.#pods.get(set.metadata?.uid ?? '') ?? { total: 0, available: 0 };
      const wanted = set.spec?.replicas ?? 0;
      if (this.#random() < 0.7) pods.total = Math.max(pods.total, wanted);
      if (this.#random() < 0.6 && pods.available < pods.total)
        pods.available += 1 + Math.floor(this.#random() * (pods.total - pods.available));
      this.#pods.set(set.metadata?.uid ?? '', pods);
      return {
        ...set,
        status: {
          replicas: pods.total,
          readyReplicas: pods.available,
          availableReplicas: pods.available,
          observedGeneration: set.metadata?.generation ?? 0,
        },
      };
    });
  }

  change(spec: Partial<NonNullable<Deployment['spec']>>): void {
    const before = this.deployment.spec;
    if (before === undefined) return;
    this.deployment = {
      ...this.deployment,
      metadata: { ...this.deployment.metadata, generation: (this.deployment.metadata?.generation ?? 0) + 1 },
      spec: { ...before, ...spec },
    };
  }

  setImage(image: string): void {
    this.change({ template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image }] } } });
  }

  get total(): number {
    return [...this.#pods.values()].reduce((sum, pods) => sum + pods.total, 0);
  }
  get available(): number {
    return [...this.#pods.values()].reduce((sum, pods) => sum + pods.available, 0);
  }
  /** Whether kubectl rollout status would print "successfully rolled out". */
  get isRolledOut(): boolean {
    const { status, spec, metadata } = this.deployment;
    const wanted = spec?.replicas ?? 1;
    return (
      (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0) &&
      (status?.updatedReplicas ?? 0) === wanted &&
      (status?.replicas ?? 0) === wanted &&
      (status?.availableReplicas ?? 0) === wanted
    );
  }
  get progressing() {
    return this.deployment.status?.conditions?.find((condition) => condition.type === 'Progressing');
  }
  setOf(image: string): ReplicaSet | undefined {
    return this.sets.find((set) => set.spec?.template?.spec?.containers[0]?.image === image);
  }
  settle(check: () => void = () => {}, rounds = 300): void {
    for (let round = 0; round < rounds; round++) {
      this.reconcile();
      check();
      this.progress();
      check();
      if (this.isRolledOut && this.plan().update.length === 0 && this.plan().status === undefined) return;
    }
    assert.fail(
      `not rolled out: ${JSON.stringify(this.deployment.status)} ${JSON.stringify(this.sets.map((set) => [set.spec?.replicas, set.status]))}`,
    );
  }
}

test('creates one replica set with all replicas and becomes available and complete', () => {
  const world = new World(deployment(3), 1);
  const plan = world.reconcile();
  assert.equal(plan.create?.spec?.replicas, 3);
  const hash = plan.create?.metadata?.labels?.['pod-template-hash'];
  assert.equal(plan.create?.metadata?.name, `d-${hash}`);
  assert.equal(plan.create?.spec?.selector.matchLabels?.['pod-template-hash'], hash);
  assert.equal(plan.create?.spec?.template?.metadata?.labels?.['pod-template-hash'], hash);
  assert.equal(plan.revision, '1');
  assert.deepEqual(
    plan.events.map((event) => event.message),
    [`Scaled up replica set d-${hash} from 0 to 3`],
  );
  assert.equal(world.progressing?.reason, 'NewReplicaSetCreated');
  world.settle();
  assert.equal(world.progressing?.reason, 'NewReplicaSetAvailable');
  assert.equal(world.deployment.status?.conditions?.find((each) => each.type === 'Available')?.status, 'True');
});

test('respects maxSurge and maxUnavailable during a rolling update and completes the update', () => {
  const bounds = [1, 2, 3, '10%', '25%', '50%', '100%'];
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const pick = (): number | string => bounds[Math.floor(random() * bounds.length)] ?? 1;
    const maxSurge = random() < 0.2 ? 0 : pick();
    const maxUnavailable = maxSurge !== 0 && random() < 0.2 ? 0 : pick();
    const replicas = 1 + Math.floor(random() * 12);
    const world = new World(
      deployment(replicas, { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } } }),
      seed,
    );
    world.settle();
    const sizes = sizesOf(world.deployment);
    const check = (): void => {
      const spec = world.sets.reduce((sum, set) => sum + (set.spec?.replicas ?? 0), 0);
      assert.ok(spec <= replicas + sizes.maxSurge, `seed ${seed}: ${spec} pods wanted`);
      assert.ok(world.total <= replicas + sizes.maxSurge, `seed ${seed}: ${world.total} pods`);
      assert.ok(world.available >= replicas - sizes.maxUnavailable, `seed ${seed}: ${world.available} available`);
    };
    world.setImage('v2');
    // A third roll-out starts in the middle of the second one.
    for (let round = 0; round < random() * 6; round++) {
      world.reconcile();
      check();
      world.progress();
      check();
    }
    world.setImage('v3');
    world.settle(check);
    assert.equal(world.setOf('v3')?.spec?.replicas, replicas, `seed ${seed}`);
    assert.equal(world.progressing?.reason, 'NewReplicaSetAvailable', `seed ${seed}`);
  }
});

test('keeps the proportions of replica sets when scaled during a roll-out, and converges', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seeded(seed);
    const world = new World(deployment(2 + Math.floor(random() * 10)), seed);
    world.settle();
    world.setImage('v2');
    for (let round = 0; round < 3; round++) {
      world.reconcile();
      world.progress();
    }
    const replicas = Math.floor(random() * 20);
    world.change({ replicas });
    const sizes = sizesOf(world.deployment);
    world.reconcile();
    const wanted = world.sets.reduce((sum, set) => sum + (set.spec?.replicas ?? 0), 0);
    assert.ok(wanted <= replicas + sizes.maxSurge, `seed ${seed}: ${wanted} for ${replicas}`);
    world.settle();
    assert.equal(world.setOf('v2')?.spec?.replicas, replicas);
  }
});

test('Recreate creates no new pod before the last old pod is deleted', () => {
  const world = new World(deployment(4, { strategy: { type: 'Recreate' } }), 7);
  world.settle();
  world.setImage('v2');
  world.settle(() => {
    const old = world.setOf('v1')?.status?.replicas ?? 0;
    if (old > 0) assert.equal(world.setOf('v2')?.spec?.replicas ?? 0, 0);
  });
  assert.equal(world.setOf('v2')?.spec?.replicas, 4);
});

test('Recreate waits for terminating pods after their replica set reports zero', () => {
  const world = new World(deployment(1, { strategy: { type: 'Recreate' } }), 7);
  world.settle();
  world.setImage('v2');
  world.reconcile();
  for (let round = 0; round < 10; round++) world.progress();
  const uid = world.sets[0]?.metadata?.uid ?? '';
  const ending = new Map([[uid, [pod({ deleting: true })]]]);
  const context = { nowMs: world.nowMs, random: () => 0 };
  const snapshot = { deployment: world.deployment, replicaSets: world.sets };
  assert.equal(planDeployment({ ...snapshot, podsBySet: ending }, context).create, undefined);
  assert.notEqual(planDeployment({ ...snapshot, podsBySet: new Map() }, context).create, undefined);
});

test('gives the replica set of a reused template the newest revision and keeps the history', () => {
  const world = new World(deployment(2), 3);
  world.settle();
  world.setImage('v2');
  world.settle();
  assert.equal(world.deployment.metadata?.annotations?.[REVISION], '2');
  world.setImage('v1');
  world.settle();
  assert.equal(world.sets.length, 2);
  const first = world.setOf('v1');
  assert.equal(first?.metadata?.annotations?.[REVISION], '3');
  assert.equal(first?.metadata?.annotations?.['deployment.kubernetes.io/revision-history'], '1');
  assert.equal(world.deployment.metadata?.annotations?.[REVISION], '3');
});

test('deletes the oldest revisions beyond revisionHistoryLimit', () => {
  const world = new World(deployment(1, { revisionHistoryLimit: 2 }), 3);
  for (const image of ['v1', 'v2', 'v3', 'v4', 'v5']) {
    world.setImage(image);
    world.settle();
  }
  world.reconcile();
  assert.deepEqual(world.sets.map(revisionOf).sort(), [3n, 4n, 5n]);
  assert.equal(maxRevision(world.sets), 5n);
});

test('revision numbers of a deployment have 64 bits', () => {
  const world = new World(deployment(1), 3);
  world.settle();
  const old = world.setOf('v1');
  assert.ok(old?.metadata?.annotations !== undefined);
  old.metadata.annotations[REVISION] = '3546343826724305832';
  world.setImage('v2');
  world.settle();
  assert.equal(world.deployment.metadata?.annotations?.[REVISION], '3546343826724305833');
  assert.equal(world.setOf('v2')?.metadata?.annotations?.[REVISION], '3546343826724305833');
});

test('scales a paused deployment without a roll-out and reports the pause', () => {
  const world = new World(deployment(2), 3);
  world.settle();
  world.change({ paused: true });
  world.setImage('v2');
  world.change({ replicas: 5 });
  for (let round = 0; round < 20; round++) {
    world.reconcile();
    world.progress();
  }
  assert.equal(world.setOf('v2'), undefined);
  assert.equal(world.setOf('v1')?.spec?.replicas, 5);
  assert.equal(world.progressing?.reason, 'DeploymentPaused');
  world.change({ paused: false });
  world.reconcile();
  assert.notEqual(world.setOf('v2'), undefined);
});

test('reports a roll-out that exceeds its progress deadline, and clears the report after progress', () => {
  const world = new World(deployment(2, { progressDeadlineSeconds: 60 }), 3);
  world.settle();
  world.setImage('broken');
  // Reconciles without any pod becoming ready.
  for (let round = 0; round < 5; round++) world.reconcile();
  assert.equal(world.progressing?.reason, 'NewReplicaSetCreated');
  assert.ok((world.lastPlan?.recheckAfterMs ?? 0) > 59_000);
  world.nowMs += 61_500;
  world.reconcile();
  assert.equal(world.progressing?.reason, 'ProgressDeadlineExceeded');
  assert.equal(world.progressing?.status, 'False');
  world.setImage('v3');
  world.settle();
  assert.equal(world.progressing?.reason, 'NewReplicaSetAvailable');
});

test('copies annotations to the current replica set, except internal annotations', () => {
  const world = new World(deployment(1), 3);
  world.deployment.metadata = {
    ...world.deployment.metadata,
    annotations: { note: 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
  };
  world.settle();
  const annotations = world.sets[0]?.metadata?.annotations;
  assert.equal(annotations?.['note'], 'x');
  assert.equal(annotations?.['kubectl.kubernetes.io/last-applied-configuration'], undefined);
  assert.equal(annotations?.['deployment.kubernetes.io/desired-replicas'], '1');
});

test('reports the failure of a replica set on the deployment', () => {
  const world = new World(deployment(1), 3);
  world.reconcile();
  world.progress();
  world.sets = world.sets.map((set) => ({
    ...set,
    status: {
      replicas: 0,
      conditions: [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'quota' }],
    },
  }));
  world.reconcile();
  const failure = world.deployment.status?.conditions?.find((each) => each.type === 'ReplicaFailure');
  assert.equal(failure?.message, 'quota');
});

test('plans no change for a converged deployment', () => {
  const world = new World(deployment(3), 5);
  world.settle();
  const plan = world.plan();
  assert.deepEqual(
    [plan.create, plan.update.length, plan.delete.length, plan.revision, plan.status],
    [undefined, 0, 0, undefined, undefined],
  );
});
