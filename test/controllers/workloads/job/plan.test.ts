import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Indexes } from '../../../../src/controllers/workloads/job/indexes.ts';
import { expiresInMs } from '../../../../src/controllers/workloads/ttl-after-finished/plan.ts';
import { NOW, seeded } from '../../objects.ts';
import { job, World } from './objects.ts';

test('a compact list of job indexes behaves like a set of numbers', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const draw = (): number[] => Array.from({ length: 12 }, () => Math.floor(random() * 20));
    const [some, others] = [draw(), draw()];
    const [a, b] = [new Set(some), new Set(others)];
    const both = Indexes.of(some).union(Indexes.of(others));
    const oracle = a.union(b);
    assert.equal(both.total, oracle.size);
    assert.equal(Indexes.of(some).overlap(Indexes.of(others)), a.intersection(b).size);
    for (let index = 0; index < 22; index++) assert.equal(both.has(index), oracle.has(index));
    assert.equal(String(Indexes.parse(String(both), 20)), String(both));
    const gaps = Array.from({ length: 15 }, (_, index) => index).filter((index) => !oracle.has(index));
    assert.deepEqual([...both.missing(15)], gaps);
  }
  assert.equal(String(Indexes.of([1, 2, 4, 5, 6, 9])), '1,2,4-6,9');
  assert.equal(String(Indexes.parse('1,3-9', 5)), '1,3,4');
});

test('limits running pods to parallelism, and counts each finished pod after its finalizer is removed', () => {
  const world = new World({ completions: 3, parallelism: 2 }).settle();
  assert.equal(world.running().length, 2);
  assert.equal(world.status.startTime, '2026-01-01T00:00:00Z');
  assert.deepEqual(world.pods[0]?.metadata?.finalizers, ['batch.kubernetes.io/job-tracking']);
  const [first] = world.running();
  world.end(first, 0);
  const plan = world.step();
  assert.deepEqual(plan.status?.uncountedTerminatedPods, { succeeded: [first?.metadata?.uid] });
  assert.equal(plan.status?.succeeded, undefined);
  world.settle();
  assert.deepEqual([world.status.succeeded, world.running().length], [1, 2]);
  for (const pod of world.running()) world.end(pod, 0);
  world.settle();
  assert.deepEqual(world.conditions, [
    'SuccessCriteriaMet=True CompletionsReached',
    'Complete=True CompletionsReached',
  ]);
  assert.deepEqual(
    [world.status.succeeded, world.status.active, world.status.uncountedTerminatedPods],
    [3, undefined, {}],
  );
  assert.ok(world.status.completionTime);
  assert.deepEqual(world.events, ['Completed']);
});

test('a work-queue job succeeds when one pod has succeeded and all pods have terminated', () => {
  const world = new World({ parallelism: 3 });
  delete world.job.spec?.completions;
  world.settle();
  assert.equal(world.running().length, 3);
  world.end(world.running()[0], 0);
  world.settle();
  assert.equal(world.running().length, 2);
  assert.equal(world.conditions.length, 0);
  for (const pod of world.running()) world.end(pod, 0);
  world.settle();
  assert.ok(world.conditions.includes('Complete=True CompletionsReached'));
});

test('delays failed pods with exponential back-off and fails the job at the back-off limit', () => {
  const world = new World({ backoffLimit: 2 }).settle();
  for (const expected of [10_000, 20_000]) {
    world.end(world.running()[0], 1);
    world.settle();
    assert.equal(world.running().length, 0);
    assert.equal(world.last?.recheckAfterMs, expected);
    world.nowMs += expected;
    world.settle();
    assert.equal(world.running().length, 1);
  }
  world.end(world.running()[0], 1);
  world.settle();
  assert.deepEqual(world.conditions, ['FailureTarget=True BackoffLimitExceeded', 'Failed=True BackoffLimitExceeded']);
  assert.equal(world.status.failed, 3);
  assert.deepEqual(world.events, ['BackoffLimitExceeded']);
});

test('counts container restarts against the back-off limit if the restart policy is OnFailure', () => {
  const world = new World({
    backoffLimit: 2,
    template: { spec: { restartPolicy: 'OnFailure', containers: [{ name: 'c', image: 'i' }] } },
  }).settle();
  const restarted = (restartCount: number): void => {
    world.pods = world.pods.map((pod) => ({
      ...pod,
      status: {
        phase: 'Running',
        containerStatuses: [{ name: 'c', image: '', imageID: '', ready: true, restartCount }],
      },
    }));
    world.settle();
  };
  restarted(1);
  assert.equal(world.conditions.length, 0);
  restarted(2);
  assert.ok(world.conditions.includes('Failed=True BackoffLimitExceeded'));
  assert.equal(world.pods.length, 0);
});

test('fails the job at its deadline and deletes its pods', () => {
  const world = new World({ activeDeadlineSeconds: 30, completions: 2, parallelism: 2 }).settle();
  assert.equal(world.last?.recheckAfterMs, 30_000);
  world.nowMs += 30_000;
  world.settle();
  assert.deepEqual(world.conditions, ['FailureTarget=True DeadlineExceeded', 'Failed=True DeadlineExceeded']);
  assert.deepEqual([world.pods.length, world.status.failed], [0, 2]);
});

test('runs each index once, with host name, annotation and environment variable of the index', () => {
  const world = new World({ completionMode: 'Indexed', completions: 4, parallelism: 2 }).settle();
  assert.deepEqual(world.indexes, ['0', '1']);
  const pod = world.pods[1];
  assert.deepEqual([pod?.spec?.hostname, pod?.metadata?.generateName], ['j-1', 'j-1-']);
  assert.equal(pod?.metadata?.labels?.['batch.kubernetes.io/job-completion-index'], '1');
  assert.deepEqual(pod?.spec?.containers[0]?.env, [
    {
      name: 'JOB_COMPLETION_INDEX',
      valueFrom: { fieldRef: { fieldPath: "metadata.labels['batch.kubernetes.io/job-completion-index']" } },
    },
  ]);
  world.end(pod, 0);
  world.settle();
  assert.deepEqual([world.status.completedIndexes, world.indexes], ['1', ['0', '2']]);
  world.end(
    world.running().find((each) => each.spec?.hostname === 'j-0'),
    1,
  );
  world.settle();
  world.nowMs += 10_000;
  world.settle();
  assert.deepEqual(world.indexes, ['0', '2']);
});

test('deletes duplicate pods of an index and pods without a valid index', () => {
  const world = new World({ completionMode: 'Indexed', completions: 2, parallelism: 2 }).settle();
  const [first] = world.pods;
  assert.ok(first);
  const copy = (uid: string, index: string) => ({
    ...first,
    metadata: {
      ...first.metadata,
      uid,
      annotations: { 'batch.kubernetes.io/job-completion-index': index },
    },
  });
  world.pods.push(copy('twin', '0'), copy('beyond', '7'));
  world.step();
  const left = world.running().map((pod) => pod.metadata?.annotations?.['batch.kubernetes.io/job-completion-index']);
  assert.deepEqual(left.sort(), ['0', '1']);
});

test('grows and shrinks an elastic job with its completions', () => {
  const world = new World({ completionMode: 'Indexed', completions: 3, parallelism: 3 }).settle();
  world.end(world.pods[2], 0);
  world.settle();
  assert.equal(world.status.completedIndexes, '2');
  const resize = (count: number): void => {
    world.job = job({ completionMode: 'Indexed', completions: count, parallelism: count }, world.status);
    world.settle();
  };
  resize(2);
  assert.deepEqual([world.status.succeeded, world.indexes], [undefined, ['0', '1']]);
  resize(4);
  assert.deepEqual(world.indexes, ['0', '1', '2', '3']);
});

test('an indexed job applies backoffLimitPerIndex and a back-off per index', () => {
  const world = new World({
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 1,
    backoffLimit: 2 ** 31 - 1,
  }).settle();
  const of = (index: number) => world.running().find((pod) => pod.spec?.hostname === `j-${index}`);
  world.end(of(0), 1);
  world.settle();
  assert.deepEqual([world.indexes, world.last?.recheckAfterMs], [['1'], 10_000]);
  world.nowMs += 10_000;
  world.settle();
  assert.equal(of(0)?.metadata?.annotations?.['batch.kubernetes.io/job-index-failure-count'], '1');
  world.end(of(0), 1);
  world.settle();
  assert.deepEqual([world.status.failedIndexes, world.indexes], ['0', ['1']]);
  world.end(of(1), 0);
  world.settle();
  assert.deepEqual(world.conditions, ['FailureTarget=True FailedIndexes', 'Failed=True FailedIndexes']);
  assert.deepEqual([world.status.failed, world.status.completedIndexes], [2, '1']);
});

test('fails the job after too many failed indexes', () => {
  const world = new World({
    completionMode: 'Indexed',
    completions: 5,
    parallelism: 5,
    backoffLimitPerIndex: 0,
    maxFailedIndexes: 1,
    backoffLimit: 2 ** 31 - 1,
  }).settle();
  world.end(world.running()[0], 1);
  world.end(world.running()[0], 1);
  world.settle();
  assert.ok(world.conditions.includes('Failed=True MaxFailedIndexesExceeded'));
  assert.equal(world.pods.filter((pod) => pod.status?.phase === 'Running').length, 0);
});

test('applies the actions of the pod failure policy', () => {
  const podFailurePolicy = {
    rules: [
      { action: 'FailJob', onExitCodes: { containerName: 'c', operator: 'In', values: [42] }, onPodConditions: [] },
      { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
      { action: 'FailIndex', onExitCodes: { operator: 'In', values: [7] }, onPodConditions: [] },
      { action: 'Count', onExitCodes: { operator: 'NotIn', values: [1] }, onPodConditions: [] },
    ],
  };
  const world = new World({ backoffLimit: 0, podFailurePolicy }).settle();
  world.end(world.running()[0], 137, 'DisruptionTarget');
  world.settle();
  world.nowMs += 10_000;
  world.settle();
  assert.deepEqual([world.status.failed, world.running().length], [undefined, 1]);
  const [pod] = world.running();
  world.end(pod, 42);
  world.settle();
  assert.deepEqual(world.conditions, ['FailureTarget=True PodFailurePolicy', 'Failed=True PodFailurePolicy']);
  assert.equal(
    world.status.conditions?.[0]?.message,
    `Container c for pod ns/${pod?.metadata?.name} failed with exit code 42 matching FailJob rule at index 0`,
  );
  const indexed = new World({
    completionMode: 'Indexed',
    completions: 2,
    parallelism: 2,
    backoffLimitPerIndex: 5,
    backoffLimit: 2 ** 31 - 1,
    podFailurePolicy,
  }).settle();
  indexed.end(indexed.running()[1], 7);
  indexed.settle();
  assert.equal(indexed.status.failedIndexes, '1');
});

test('completes by the success policy without counting the remaining pods as failures', () => {
  const world = new World({
    completionMode: 'Indexed',
    completions: 4,
    parallelism: 4,
    successPolicy: { rules: [{ succeededIndexes: '1-3', succeededCount: 2 }] },
  }).settle();
  const of = (index: number) => world.running().find((pod) => pod.spec?.hostname === `j-${index}`);
  world.end(of(0), 0);
  world.end(of(3), 0);
  world.settle();
  assert.equal(world.conditions.length, 0);
  world.end(of(1), 0);
  world.settle();
  assert.deepEqual(world.conditions, ['SuccessCriteriaMet=True SuccessPolicy', 'Complete=True SuccessPolicy']);
  assert.equal(world.status.conditions?.[0]?.message, 'Matched rules at index 0');
  assert.deepEqual(
    [world.status.failed, world.status.completedIndexes, world.running().length],
    [undefined, '0,1,3', 0],
  );
});

test('deletes pods of a suspended job without counting failures, and restarts its deadline on resume', () => {
  const world = new World({ completions: 2, parallelism: 2, activeDeadlineSeconds: 60 }).settle();
  const suspend = (suspended: boolean): void => {
    if (world.job.spec === undefined) return;
    world.job = { ...world.job, spec: { ...world.job.spec, suspend: suspended } };
    world.settle();
  };
  suspend(true);
  assert.deepEqual([world.pods.length, world.status.failed], [0, undefined]);
  assert.deepEqual(world.conditions, ['Suspended=True JobSuspended']);
  world.nowMs += 120_000;
  suspend(false);
  assert.deepEqual([world.running().length, world.status.startTime], [2, '2026-01-01T00:02:00Z']);
  assert.deepEqual(world.conditions, ['Suspended=False JobResumed']);
  assert.deepEqual(world.events, ['Suspended', 'Resumed']);
});

test('with podReplacementPolicy Failed replaces a terminating pod only after its termination', () => {
  for (const [policy, replaced] of [
    ['Failed', 0],
    ['TerminatingOrFailed', 1],
  ] as const) {
    const world = new World({ podReplacementPolicy: policy }).settle();
    const [pod] = world.running();
    world.terminate(pod?.metadata?.uid ?? '');
    world.step();
    world.nowMs += 10_000;
    world.step();
    assert.equal(world.running().length, replaced, policy);
    if (policy === 'TerminatingOrFailed') continue;
    assert.equal(world.status.terminating, 1);
    world.end(pod, 137);
    world.settle();
    world.nowMs += 10_000;
    world.settle();
    assert.deepEqual([world.running().length, world.status.failed], [1, 1]);
  }
});

test('deletes pods without failures when parallelism is reduced', () => {
  const world = new World({ completions: 5, parallelism: 4 }).settle();
  world.job = job({ completions: 5, parallelism: 1 }, world.status);
  world.settle();
  assert.deepEqual([world.running().length, world.status.failed], [1, undefined]);
});

test('expires a finished job after its TTL', () => {
  const done = { conditions: [{ type: 'Complete', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }] };
  assert.equal(expiresInMs(job({ ttlSecondsAfterFinished: 5 }, done), NOW + 2_000), 3_000);
  assert.equal(expiresInMs(job({ ttlSecondsAfterFinished: 5 }, done), NOW + 9_000), 0);
  assert.equal(expiresInMs(job({ ttlSecondsAfterFinished: 5 }, {}), NOW), undefined);
  assert.equal(expiresInMs(job({}, done), NOW), undefined);
});

test('counts each finished pod once in random simulations with lost writes, and respects the limits', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const pick = (count: number): number => Math.floor(random() * count);
    const indexed = random() < 0.5;
    const completions = 1 + pick(6);
    const parallelism = 1 + pick(4);
    const world = new World({
      completions,
      parallelism,
      completionMode: indexed ? 'Indexed' : 'NonIndexed',
      backoffLimit: 1000,
    });
    for (let step = 0; step < 400 && !world.conditions.some((each) => each.startsWith('Complete')); step++) {
      world.step(random() < 0.2);
      assert.ok(world.running().length <= parallelism, `seed ${seed}`);
      for (const pod of world.running()) {
        if (random() < 0.3) world.end(pod, random() < 0.6 ? 0 : 1);
      }
      world.nowMs += 5_000 + pick(1_000_000);
    }
    const ends = [...world.fates.values()];
    assert.deepEqual(
      [world.status.succeeded ?? 0, world.status.failed ?? 0, world.running().length],
      [completions, ends.filter((fate) => fate === 'Failed').length, 0],
      `seed ${seed}: ${world.conditions.join()}`,
    );
    assert.equal(ends.filter((fate) => fate === 'Succeeded').length, completions, `seed ${seed}`);
    if (indexed) assert.equal(world.status.completedIndexes, String(Indexes.of(Array(completions).keys())));
  }
});

test('plans a job with two billion indexes without iterating over the indexes', () => {
  for (const completions of [100_000_000, 2_147_483_647]) {
    const world = new World({
      completionMode: 'Indexed',
      completions,
      parallelism: 3,
      backoffLimitPerIndex: 1,
      maxFailedIndexes: 10,
    });
    const begun = performance.now();
    world.settle();
    for (const pod of world.running().slice(0, 2)) world.end(pod, 1);
    world.settle();
    assert.ok(performance.now() - begun < 1_000, `planning took ${Math.round(performance.now() - begun)} ms`);
    const indexes = world
      .running()
      .map((pod) => pod.metadata?.annotations?.['batch.kubernetes.io/job-completion-index']);
    assert.deepEqual(indexes.sort(), ['2', '3', '4']);
  }
});
