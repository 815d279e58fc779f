import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HorizontalPodAutoscaler, MetricSpec } from '../../../../src/api/generated/autoscaling/v2.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import {
  planAutoscaler,
  type Reading,
  unableToScale,
} from '../../../../src/controllers/workloads/horizontal-pod-autoscaler/plan.ts';
import {
  behaviorOf,
  limit,
  NO_MEMORY,
  recordRecommendation,
  recordRescale,
  type ScaleMemory,
  stabilize,
} from '../../../../src/controllers/workloads/horizontal-pod-autoscaler/scaling-behavior.ts';
import { NOW, pod, seeded } from '../../objects.ts';

test('keeps a limited number of recommendations and scale events of a target that changes often', () => {
  let memory: ScaleMemory = NO_MEMORY;
  for (let change = 0; change < 3_000; change++)
    memory = recordRescale(
      recordRecommendation(memory, change % 7, NOW + change),
      change,
      change + (change % 2 === 0 ? 1 : -1),
      NOW,
    );
  const { recommendations, ups, downs } = memory;
  for (const { length } of [recommendations, ups, downs]) assert.ok(length > 900 && length <= 1_000, `${length}`);
  assert.equal(recommendations.at(-1)?.replicas, 2_999 % 7, 'the newest record is kept');
});

test('ignores and forgets recommendations that are later than the clock after it was set back', () => {
  const year = 365 * 24 * 3_600_000;
  const ahead = recordRescale(recordRecommendation(NO_MEMORY, 9, NOW + year), 1, 9, NOW + year);
  assert.equal(stabilize(ahead, behaviorOf(undefined), { current: 9, desired: 2 }, NOW).replicas, 2);
  const behavior = behaviorOf({ scaleUp: { policies: [{ type: 'Pods', value: 4, periodSeconds: 60 }] } });
  assert.equal(limit(ahead, behavior, { current: 9, desired: 12, min: 1, max: 20 }, NOW).replicas, 12);
  const { recommendations, ups } = recordRecommendation(ahead, 2, NOW);
  assert.deepEqual([recommendations, ups], [[{ atMs: NOW, replicas: 2 }], []]);
});

const cpu = (averageUtilization: number): MetricSpec => ({
  type: 'Resource',
  resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } },
});
function autoscaler(metrics: MetricSpec[], more: Partial<NonNullable<HorizontalPodAutoscaler['spec']>> = {}) {
  return {
    metadata: { name: 'web', namespace: 'ns', generation: 1 },
    spec: { scaleTargetRef: { kind: 'Deployment', name: 'web' }, minReplicas: 1, maxReplicas: 10, metrics, ...more },
  } satisfies HorizontalPodAutoscaler;
}
function members(count: number, facts: Parameters<typeof pod>[0] = {}): Pod[] {
  return Array.from({ length: count }, (_, index) => {
    const made = pod({ name: `p${index}`, ready: true, ...facts });
    return {
      ...made,
      spec: { containers: [{ name: 'c', resources: { requests: { cpu: '100m' } } }] },
      status: { ...made.status, startTime: '2025-12-31T00:00:00Z' },
    };
  });
}
const usage = (...milli: number[]): Reading => ({
  type: 'pods',
  metrics: new Map(milli.map((each, index) => [`p${index}`, { milli: each, atMs: NOW, windowMs: 30_000 }])),
});
const value = (milli: number): Reading => ({ type: 'value', milli });
const failed: Reading = { type: 'failed', message: 'no metrics returned from resource metrics API' };

interface Facts {
  replicas?: number;
  pods?: readonly Pod[];
  readings?: readonly Reading[];
  memory?: ScaleMemory;
  nowMs?: number;
}
function plan(of: HorizontalPodAutoscaler, facts: Facts) {
  const replicas = facts.replicas ?? 2;
  return planAutoscaler(
    {
      autoscaler: of,
      scale: { replicas, statusReplicas: replicas, selector: 'app=a' },
      pods: facts.pods ?? members(replicas),
      readings: facts.readings ?? [],
    },
    facts.memory ?? NO_MEMORY,
    { nowMs: facts.nowMs ?? NOW, random: () => 0 },
  );
}
const conditions = (made: ReturnType<typeof plan>): string[] =>
  (made.status.conditions ?? []).map((each) => `${each.type}=${each.status} ${each.reason}`);

test('adds pods above the target utilization and keeps the size within the tolerance', () => {
  const grown = plan(autoscaler([cpu(50)]), { readings: [usage(100, 100)] });
  assert.deepEqual(grown.rescale, {
    replicas: 4,
    reason: 'cpu resource utilization (percentage of request) above target',
  });
  assert.deepEqual(grown.status.currentMetrics, [
    { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: 100, averageValue: '100m' } } },
  ]);
  assert.deepEqual(conditions(grown), [
    'AbleToScale=True ReadyForNewScale',
    'ScalingActive=True ValidMetricFound',
    'ScalingLimited=False DesiredWithinRange',
  ]);
  assert.equal(plan(autoscaler([cpu(50)]), { readings: [usage(54, 54)] }).rescale, undefined);
  const strict = { scaleUp: { tolerance: '10m' } as object };
  assert.equal(plan(autoscaler([cpu(50)], { behavior: strict }), { readings: [usage(54, 54)] }).rescale?.replicas, 3);
});

test('delays scaling down by the stabilization window', () => {
  const target = autoscaler([cpu(50)]);
  const first = plan(target, { replicas: 4, readings: [usage(10, 10, 10, 10)] });
  assert.equal(first.rescale, undefined);
  assert.equal(conditions(first)[0], 'AbleToScale=True ScaleDownStabilized');
  const later = plan(target, {
    replicas: 4,
    readings: [usage(10, 10, 10, 10)],
    memory: first.memory,
    nowMs: NOW + 301_000,
  });
  assert.equal(later.rescale?.replicas, 1);
});

test("reports missing metrics with upstream's reasons and does not shrink the target", () => {
  const none = plan(autoscaler([cpu(50)]), { readings: [failed] });
  assert.equal(none.rescale, undefined);
  assert.deepEqual(conditions(none), [
    'AbleToScale=True SucceededGetScale',
    'ScalingActive=False FailedGetResourceMetric',
  ]);
  assert.equal(
    none.status.conditions?.[1]?.message,
    'the HPA was unable to compute the replica count: failed to get cpu utilization: no metrics returned from resource metrics API',
  );
  assert.deepEqual(
    none.events.map((event) => event.reason),
    ['FailedGetResourceMetric', 'FailedComputeMetricsReplicas'],
  );
  const external: MetricSpec = {
    type: 'External',
    external: { metric: { name: 'q' }, target: { type: 'Value', value: '10' } },
  };
  assert.equal(plan(autoscaler([cpu(50), external]), { readings: [failed, value(5_000)] }).rescale, undefined);
  assert.equal(plan(autoscaler([cpu(50), external]), { readings: [failed, value(30_000)] }).rescale?.replicas, 4);
});

test('assumes zero usage of pods without metrics when scaling up, and full usage when scaling down', () => {
  const up = plan(autoscaler([cpu(50)]), { replicas: 2, readings: [usage(100)] });
  assert.equal(up.rescale, undefined, 'twice the target by one of two pods is the target');
  const starting = members(1, { phase: 'Pending', ready: false });
  const [running] = members(1);
  const [fresh] = starting.map((each) => ({ ...each, metadata: { ...each.metadata, name: 'p9' } }));
  assert.ok(running && fresh);
  assert.equal(plan(autoscaler([cpu(50)]), { pods: [running, fresh], readings: [usage(100)] }).rescale, undefined);
  const missing = plan(autoscaler([cpu(50)], { behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } }), {
    replicas: 4,
    readings: [usage(10, 10)],
  });
  assert.equal(missing.rescale, undefined, 'two at a tenth and two at their request are above half');
  const bare = members(2).map((each) => ({ ...each, spec: { containers: [{ name: 'c' }] } }));
  const message = plan(autoscaler([cpu(50)]), { pods: bare, readings: [usage(1, 1)] }).events[0]?.message;
  assert.equal(message, 'failed to get cpu utilization: missing request for cpu in container c of Pod p0');
});

test('evaluates object and external metrics by value and by average', () => {
  const object = (target: { type: string; value?: string; averageValue?: string }): MetricSpec => ({
    type: 'Object',
    object: { metric: { name: 'rps' }, describedObject: { kind: 'Service', name: 's' }, target },
  });
  const byValue = plan(autoscaler([object({ type: 'Value', value: '10' })]), { readings: [value(25_000)] });
  assert.equal(byValue.rescale?.replicas, 4);
  const byAverage = plan(autoscaler([object({ type: 'AverageValue', averageValue: '10' })]), {
    readings: [value(55_000)],
  });
  assert.equal(byAverage.rescale?.replicas, 4);
  assert.equal(byAverage.status.currentMetrics?.[0]?.object?.current.averageValue, '27500m');
});

test('applies minReplicas and maxReplicas first, and does not change a target scaled to zero', () => {
  assert.equal(plan(autoscaler([cpu(50)]), { replicas: 12 }).rescale?.replicas, 10);
  assert.equal(plan(autoscaler([cpu(50)], { minReplicas: 3 }), { replicas: 2 }).rescale?.replicas, 3);
  const off = plan(autoscaler([cpu(50)]), { replicas: 0 });
  assert.deepEqual([off.rescale, conditions(off)[1]], [undefined, 'ScalingActive=False ScalingDisabled']);
  const capped = plan(autoscaler([cpu(10)], { maxReplicas: 3 }), { readings: [usage(100, 100)] });
  assert.deepEqual([capped.rescale?.replicas, conditions(capped)[2]], [3, 'ScalingLimited=True TooManyReplicas']);
});

test('counts earlier changes in the period of a scaling policy against its limit', () => {
  const behavior = behaviorOf({ scaleUp: { policies: [{ type: 'Pods', value: 2, periodSeconds: 60 }] } });
  const bounds = { min: 1, max: 100 };
  const memory = recordRescale(NO_MEMORY, 5, 6, NOW - 30_000);
  assert.deepEqual(
    [
      limit(memory, behavior, { current: 6, desired: 50, ...bounds }, NOW).replicas,
      limit(memory, behavior, { current: 6, desired: 50, ...bounds }, NOW).reason,
    ],
    [7, 'ScaleUpLimit'],
  );
  assert.equal(limit(memory, behavior, { current: 6, desired: 50, ...bounds }, NOW + 31_000).replicas, 8);
  const disabled = behaviorOf({ scaleDown: { selectPolicy: 'Disabled' } });
  assert.equal(limit(NO_MEMORY, disabled, { current: 6, desired: 1, ...bounds }, NOW).replicas, 6);
});

test('without behavior at most doubles the replicas, or raises the replicas to four', () => {
  const most = (current: number): number =>
    limit(NO_MEMORY, behaviorOf(undefined), { current, desired: 90, min: 1, max: 100 }, NOW).replicas;
  assert.deepEqual([1, 2, 3, 10, 60].map(most), [4, 4, 6, 20, 90]);
});

test('reports a scale that cannot be read', () => {
  const status = unableToScale(autoscaler([]), undefined, { reason: 'FailedGetScale', message: 'gone' }, NOW);
  assert.deepEqual(
    [status.conditions?.[0]?.reason, status.conditions?.[0]?.message],
    ['FailedGetScale', "the HPA controller was unable to get the target's current scale: gone"],
  );
});

/** Oracle: the documented formula, with all metrics present and without windows and rates. */
test('computes ceil(sum of usage / target) for random usage, within bounds', () => {
  for (let seed = 1; seed <= 500; seed++) {
    const random = seeded(seed);
    const replicas = 1 + Math.floor(random() * 8);
    const used = Array.from({ length: replicas }, () => 1 + Math.floor(random() * 300));
    const target = 20 + Math.floor(random() * 80);
    const free = { stabilizationWindowSeconds: 0, policies: [{ type: 'Percent', value: 100_000, periodSeconds: 15 }] };
    const made = plan(autoscaler([cpu(target)], { maxReplicas: 20, behavior: { scaleUp: free, scaleDown: free } }), {
      replicas,
      readings: [usage(...used)],
      memory: recordRecommendation(NO_MEMORY, replicas, NOW - 1_000_000),
    });
    const utilization = Math.trunc((used.reduce((sum, each) => sum + each, 0) * 100) / (replicas * 100));
    const ratio = utilization / target;
    const wanted = Math.abs(ratio - 1) <= 0.1 ? replicas : Math.ceil(ratio * replicas);
    const expected = Math.min(20, Math.max(1, wanted));
    assert.equal(made.rescale?.replicas ?? replicas, expected, `seed ${seed}: ${used.join()} towards ${target} %`);
  }
});
