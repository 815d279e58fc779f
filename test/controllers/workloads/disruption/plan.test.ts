/**
 * Compares budgets with a direct computation of the definition, and tests scales, failures and evictions without
 * effect.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Deployment, ReplicaSet, StatefulSet } from '../../../../src/api/generated/apps/v1.ts';
import type { Pod, ReplicationController } from '../../../../src/api/generated/core/v1.ts';
import type { OwnerReference } from '../../../../src/api/generated/meta/v1.ts';
import type { PodDisruptionBudget } from '../../../../src/api/generated/policy/v1.ts';
import { timestamp } from '../../../../src/base/time/timestamps.ts';
import {
  controllersToRead,
  isCountedByScale,
  planBudget,
  planFailure,
} from '../../../../src/controllers/workloads/disruption/plan.ts';
import { type ControllerScale, knownScale } from '../../../../src/controllers/workloads/disruption/scale.ts';
import { targetStaleInMs } from '../../../../src/controllers/workloads/disruption/stale-target.ts';
import { NOW, pod, seeded } from '../../objects.ts';

const context = { nowMs: NOW, random: () => 0.5 };
const ago = (seconds: number): string => timestamp(NOW - seconds * 1000);
const budgetOf = (
  spec: PodDisruptionBudget['spec'],
  status?: Partial<PodDisruptionBudget['status']>,
): PodDisruptionBudget => ({
  metadata: { name: 'web', namespace: 'ns', generation: 3 },
  spec: { selector: {}, ...spec },
  ...(status === undefined ? {} : { status: status as NonNullable<PodDisruptionBudget['status']> }),
});
const scale = (uid: string, replicas: number): [string, ControllerScale] => [uid, { uid, replicas }];

describe('disruption budgets', () => {
  it('disruption budgets allow as many evictions as a reference implementation, for random pods', () => {
    const random = seeded(7);
    const below = (limit: number): number => Math.floor(random() * limit);
    const seen = new Set<number | undefined>();
    for (let round = 0; round < 5_000; round++) {
      const replicas = [below(5), below(5)];
      const wanted = [`${below(101)}%`, below(6)][below(2)] as string | number;
      const field = below(2) === 0 ? 'minAvailable' : 'maxUnavailable';
      const facts = Array.from({ length: below(7) }, (_, index) => ({
        name: `p${index}`,
        ready: below(3) > 0,
        deleting: below(5) === 0,
        owner: `o${below(2)}`,
        evictedAgo: [undefined, below(240)][below(2)],
      }));
      const evicted = facts.flatMap(({ name, evictedAgo }) =>
        evictedAgo === undefined ? [] : [[name, ago(evictedAgo)]],
      );
      const budget = budgetOf({ [field]: wanted }, { disruptedPods: { ...Object.fromEntries(evicted), gone: ago(1) } });
      const plan = planBudget(
        {
          budget,
          pods: facts.map(pod),
          scales: new Map([scale('o0', replicas[0] ?? 0), scale('o1', replicas[1] ?? 0)]),
        },
        context,
      );

      const waited = facts.filter(
        ({ deleting, evictedAgo }) => !deleting && evictedAgo !== undefined && evictedAgo < 120,
      );
      const healthy = facts.filter((each) => each.ready && !each.deleting && !waited.includes(each)).length;
      let expected = 0;
      if (field === 'minAvailable' && typeof wanted === 'number') expected = facts.length;
      else
        for (const [index, each] of replicas.entries())
          if (facts.some(({ owner }) => owner === `o${index}`)) expected += each;
      // Percentages are rounded up.
      let share = 0;
      if (typeof wanted === 'number') share = wanted;
      else while (share * 100 < Number.parseInt(wanted, 10) * expected) share++;
      const desired = field === 'minAvailable' ? share : Math.max(expected - share, 0);
      let allowed = 0;
      while (expected > 0 && healthy - allowed > desired) allowed++;

      const what = JSON.stringify({ round, field, wanted, facts, replicas });
      const { conditions, disruptedPods, ...status } = plan.status ?? {};
      assert.deepEqual(
        status,
        {
          currentHealthy: healthy,
          desiredHealthy: desired,
          expectedPods: expected,
          disruptionsAllowed: allowed,
          observedGeneration: 3,
        },
        what,
      );
      assert.deepEqual(
        Object.keys(disruptedPods ?? {}),
        waited.map(({ name }) => name),
        what,
      );
      assert.deepEqual(
        conditions?.map(({ type, status, reason }) => [type, status, reason]),
        [['DisruptionAllowed', ...(allowed > 0 ? ['True', 'SufficientPods'] : ['False', 'InsufficientPods'])]],
        what,
      );
      const settled = planBudget(
        {
          budget: { ...budget, status: plan.status as NonNullable<PodDisruptionBudget['status']> },
          pods: facts.map(pod),
          scales: new Map([scale('o0', replicas[0] ?? 0), scale('o1', replicas[1] ?? 0)]),
        },
        { ...context, nowMs: NOW },
      );
      assert.equal(settled.status, undefined, what);
      seen.add(plan.status?.disruptionsAllowed);
    }
    assert.ok(seen.size > 4, String([...seen]));
  });

  it('disruption budgets wait two minutes for pods whose eviction they allowed', () => {
    const pods = ['a', 'b', 'c'].map((name) => pod({ name, ready: true }));
    const disruptedPods = { a: ago(119), b: ago(30), c: ago(120) };
    const { status, notDeleted, recheckAfterMs } = planBudget(
      { budget: budgetOf({ minAvailable: 0 }, { disruptedPods }), pods, scales: new Map() },
      context,
    );
    assert.deepEqual(status?.disruptedPods, { a: ago(119), b: ago(30) });
    assert.deepEqual([status?.currentHealthy, recheckAfterMs], [1, 1_000]);
    assert.deepEqual(notDeleted, [pods[2]]);
  });

  it('disruption budgets report missing pods, and pods without a controller', () => {
    const reasons = (budget: PodDisruptionBudget, pods: Pod[]): string[] =>
      planBudget({ budget, pods, scales: new Map() }, context).events.map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(reasons(budgetOf({ minAvailable: 1 }), []), ['Normal NoPods']);
    assert.deepEqual(reasons(budgetOf({ minAvailable: 1 }), [pod()]), []);
    assert.deepEqual(reasons(budgetOf({ maxUnavailable: 1 }), [pod()]), ['Warning UnmanagedPods']);
  });

  it('disruption budgets query each controller once, and only if the budget depends on its scale', () => {
    const pods = [pod({ owner: 'x' }), pod({ owner: 'y' }), pod({ owner: 'x' }), pod()];
    const queriedFor = (spec: PodDisruptionBudget['spec']) =>
      controllersToRead(budgetOf(spec), pods).map(({ uid }) => uid);
    assert.deepEqual(queriedFor({ minAvailable: 1 }), []);
    assert.deepEqual(queriedFor({ minAvailable: '1%' }), ['x', 'y']);
    assert.deepEqual(queriedFor({ maxUnavailable: 1 }), ['x', 'y']);
    assert.deepEqual([isCountedByScale(budgetOf({})), queriedFor({})], [false, []]);
    const one = { uid: 'd', replicas: 4 };
    const scales = new Map([
      ['x', one],
      ['y', one],
    ]);
    const plan = planBudget({ budget: budgetOf({ maxUnavailable: 1 }), pods, scales }, context);
    assert.deepEqual([plan.status?.expectedPods, plan.status?.desiredHealthy], [4, 3]);
  });

  it('disruption budgets allow no eviction if they cannot be computed, keep their other fields, and report the failure once', () => {
    const before = {
      type: 'DisruptionAllowed',
      status: 'True',
      reason: 'SufficientPods',
      message: '',
      lastTransitionTime: ago(9),
    };
    const others = { type: 'Other', status: 'True', reason: 'R', message: '', lastTransitionTime: ago(9) };
    const known = {
      currentHealthy: 3,
      desiredHealthy: 1,
      expectedPods: 3,
      disruptionsAllowed: 2,
      observedGeneration: 2,
    };
    const budget = budgetOf({ minAvailable: 1 }, { ...known, conditions: [others, before] });
    const status = planFailure(budget, 'why', context);
    assert.deepEqual(status, {
      ...known,
      disruptionsAllowed: 0,
      conditions: [
        others,
        {
          ...before,
          status: 'False',
          reason: 'SyncFailed',
          message: 'why',
          observedGeneration: 2,
          lastTransitionTime: ago(0),
        },
      ],
    });
    const again = { ...budget, status: status as NonNullable<PodDisruptionBudget['status']> };
    assert.equal(planFailure(again, 'why', { ...context, nowMs: NOW + 60_000 }), undefined);
    assert.equal(planFailure(budgetOf({}), 'why', context)?.expectedPods, 0);
    // The transition time only changes when the status changes.
    const other = planFailure(again, 'another', { ...context, nowMs: NOW + 60_000 });
    assert.deepEqual(other?.conditions?.[1]?.lastTransitionTime, ago(0));
  });
});

describe('scales of controllers', () => {
  const reference = (kind: string, uid: string, apiVersion = 'apps/v1'): OwnerReference => ({
    apiVersion,
    kind,
    name: uid,
    uid,
    controller: true,
  });
  const metadata = (uid: string, owner?: OwnerReference) => ({
    name: uid,
    uid,
    ...(owner === undefined ? {} : { ownerReferences: [owner] }),
  });
  const workload = (uid: string, replicas: number, owner?: OwnerReference) =>
    ({ metadata: metadata(uid, owner), spec: { replicas } }) as Deployment &
      ReplicaSet &
      StatefulSet &
      ReplicationController;
  const named =
    (...all: ReturnType<typeof workload>[]) =>
    (name: string) =>
      all.find((each) => each.metadata?.name === name);
  const workloads = {
    replicationController: named(workload('rc', 2)),
    replicaSet: named(
      workload('bare', 3),
      workload('deployed', 4, reference('Deployment', 'd')),
      workload('left', 5, reference('Deployment', 'gone')),
      workload('rolled', 6, reference('Rollout', 'r', 'argoproj.io/v1alpha1')),
    ),
    deployment: named(workload('d', 7)),
    statefulSet: named(workload('ss', 8)),
  };

  it('scales of controllers are read from cached workloads by name and UID', () => {
    const of = (...args: Parameters<typeof reference>) => knownScale(reference(...args), workloads);
    assert.deepEqual(of('ReplicationController', 'rc', 'v1'), { uid: 'rc', replicas: 2 });
    assert.deepEqual(of('ReplicaSet', 'bare'), { uid: 'bare', replicas: 3 });
    assert.deepEqual(of('ReplicaSet', 'deployed'), { uid: 'd', replicas: 7 });
    assert.equal(of('ReplicaSet', 'left'), undefined);
    assert.deepEqual(of('ReplicaSet', 'rolled'), { uid: 'rolled', replicas: 6 });
    assert.deepEqual(of('StatefulSet', 'ss'), { uid: 'ss', replicas: 8 });
    assert.equal(of('StatefulSet', 'ss', 'example.com/v1'), undefined);
    assert.equal(of('ReplicationController', 'rc', 'example.com/v1'), undefined);
    assert.equal(knownScale({ ...reference('StatefulSet', 'ss'), uid: 'older' }, workloads), undefined);
  });
});

describe('targets of disruptions', () => {
  it('targets of disruptions are cleared if the pod is not deleted within two minutes', () => {
    const target = (facts: Parameters<typeof pod>[0], condition: object = {}): number | undefined => {
      const made = pod(facts);
      const conditions = [
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'EvictionByEvictionAPI',
          lastTransitionTime: ago(20),
          ...condition,
        },
      ];
      return targetStaleInMs({ ...made, status: { ...made.status, conditions } }, NOW);
    };
    assert.equal(target({}), 100_000);
    assert.equal(target({}, { lastTransitionTime: ago(120) }), 0);
    assert.equal(target({}, { lastTransitionTime: ago(500) }), 0);
    assert.equal(target({}, { status: 'False' }), undefined);
    assert.equal(target({}, { reason: 'TerminationByKubelet' }), undefined);
    assert.equal(target({ deleting: true }), undefined);
    assert.equal(target({ phase: 'Failed' }), undefined);
    assert.equal(targetStaleInMs(pod(), NOW), undefined);
  });
});
