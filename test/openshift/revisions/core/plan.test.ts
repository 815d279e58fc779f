/** The leader's plan of revisions: single cases, and random clusters with a check of the outcomes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planRevisions, retryDelayMs, SET_ASIDE_MS } from '../../../../src/openshift/revisions/core/plan.ts';
import type {
  MasterFacts,
  NodeReport,
  RevisionPlan,
  RevisionState,
} from '../../../../src/openshift/revisions/core/types.ts';

const T0 = 1_800_000_000_000;

const report = (current: number, more: Partial<NodeReport> = {}): NodeReport => ({
  current,
  digest: 'a',
  changed: [],
  attempt: { revision: current, digest: 'a', overlay: '', reason: 'initial revision' },
  isHealthy: true,
  ...more,
});

const master = (name: string, current: number, more: Partial<NodeReport> = {}): MasterFacts => ({
  name,
  report: report(current, more),
});

const state = (more: Partial<RevisionState> = {}): RevisionState => ({
  isManaged: true,
  overlay: '',
  latest: 1,
  revisions: [{ revision: 1, phase: 'Succeeded', reason: 'initial revision', overlay: '' }],
  progress: [],
  masters: [master('m1', 1), master('m2', 1), master('m3', 1)],
  keepFailed: 5,
  keepSucceeded: 5,
  ...more,
});

/** The state after a plan has been applied. */
const after = (before: RevisionState, plan: RevisionPlan, more: Partial<RevisionState> = {}): RevisionState => ({
  ...before,
  latest: plan.latest,
  revisions: plan.revisions,
  progress: plan.progress,
  ...more,
});

const targets = (plan: RevisionPlan): string =>
  plan.progress
    .filter((each) => each.targetRevision !== 0)
    .map((each) => `${each.nodeName}:${each.targetRevision}`)
    .join();

const FORCED = '{"forceRedeploymentReason":"x"}';

/** Facts of m1 after revision 2 failed there. */
const failedOnFirst = (count = 1, fallbacks = 1, atMs = T0): MasterFacts =>
  master('m1', 1, {
    attempt: { revision: 2, digest: 'a', overlay: FORCED, reason: '' },
    failure: { revision: 2, atMs, reason: 'OperandFailedFallback', count, fallbacks, errors: ['down'] },
  });

test('creates no new revision without a changed file or setting', () => {
  const plan = planRevisions(state(), T0);
  assert.equal(plan.latest, 1);
  assert.equal(targets(plan), '');
  assert.deepEqual(plan.pruned, []);
  assert.equal(plan.wakeAtMs, undefined);
  const again = planRevisions(after(state(), plan), T0 + 1000);
  assert.deepEqual(again, plan);
});

test('creates no revision before a host has reported the digest of its files', () => {
  const plan = planRevisions(state({ latest: 0, revisions: [], masters: [{ name: 'm1' }] }), T0);
  assert.equal(plan.latest, 0);
});

test('records the initial revision of the hosts as revision 1', () => {
  const plan = planRevisions(state({ latest: 0, revisions: [] }), T0);
  assert.deepEqual(plan.revisions, [{ revision: 1, phase: 'Succeeded', reason: 'm1: initial revision', overlay: '' }]);
});

test('creates a revision for a changed setting, and the reason names the field', () => {
  const plan = planRevisions(state({ overlay: FORCED }), T0);
  assert.equal(plan.latest, 2);
  assert.equal(plan.revisions.at(-1)?.reason, 'spec changed: spec.forceRedeploymentReason');
  assert.equal(targets(plan), 'm1:2');
});

test('creates a revision for a changed file, and the reason names the host and the file', () => {
  const changed = master('m2', 1, { digest: 'b', changed: ['master/master-config.yaml'] });
  const plan = planRevisions(state({ masters: [master('m1', 1), changed, master('m3', 1)] }), T0);
  assert.equal(plan.latest, 2);
  assert.equal(plan.revisions.at(-1)?.reason, 'm2: master/master-config.yaml changed');
});

test('adopts a revision that a host created itself, and installs it on other masters', () => {
  const own = master('m2', 2, { attempt: { revision: 2, digest: 'a', overlay: '', reason: 'x changed' } });
  const plan = planRevisions(state({ masters: [master('m1', 1), own] }), T0);
  assert.equal(plan.latest, 2);
  assert.equal(plan.revisions.at(-1)?.reason, 'm2: x changed');
  assert.equal(targets(plan), 'm1:2');
});

test('installs a revision on one master at a time', () => {
  let now = state({ overlay: FORCED });
  const order: string[] = [];
  for (let round = 0; round < 10; round++) {
    const plan = planRevisions(now, T0);
    const [node] = targets(plan).split(':');
    if (node === '' || node === undefined) break;
    order.push(node);
    now = after(now, plan, {
      masters: now.masters.map((each) => (each.name === node ? master(node, 2, attempted(2)) : each)),
    });
  }
  assert.deepEqual(order, ['m1', 'm2', 'm3']);
  assert.equal(planRevisions(now, T0).revisions.at(-1)?.phase, 'Succeeded');
});

const attempted = (revision: number): Partial<NodeReport> => ({
  attempt: { revision, digest: 'a', overlay: FORCED, reason: '' },
});

test('updates masters that are not Ready first, then unhealthy ones, then those with the oldest revision', () => {
  const forced = {
    overlay: FORCED,
    latest: 3,
    revisions: [{ revision: 3, phase: 'InProgress', reason: '', overlay: FORCED }],
  } as const;
  const old = master('m3', 1, attempted(1));
  const sick = { ...master('m2', 2, attempted(2)), report: report(2, { ...attempted(2), isHealthy: false }) };
  const fine = master('m1', 2, attempted(2));
  assert.equal(targets(planRevisions(state({ ...forced, masters: [fine, sick, old] }), T0)), 'm2:3');
  assert.equal(targets(planRevisions(state({ ...forced, masters: [fine, old] }), T0)), 'm3:3');
  const away = { ...fine, notReadySinceMs: T0 - 1000 };
  assert.equal(targets(planRevisions(state({ ...forced, masters: [away, sick, old] }), T0)), 'm1:3');
});

test('installs a newer revision in place of the revision that is being installed', () => {
  const first = planRevisions(state({ overlay: FORCED }), T0);
  const newer = planRevisions(after(state({ overlay: '{"logLevel":"Debug"}' }), first), T0);
  assert.equal(newer.latest, 3);
  assert.equal(targets(newer), 'm1:3');
  assert.equal(newer.revisions.find(({ revision }) => revision === 2)?.phase, 'Abandoned');
});

test('skips a master that has not been Ready for two minutes, and updates it when it is Ready again', () => {
  const first = planRevisions(state({ overlay: FORCED }), T0);
  const gone: MasterFacts = { ...master('m1', 1), notReadySinceMs: T0 };
  const masters = [gone, master('m2', 1), master('m3', 1)];
  const waiting = planRevisions(after(state({ overlay: FORCED, masters }), first), T0 + SET_ASIDE_MS - 1);
  assert.equal(targets(waiting), 'm1:2');
  assert.equal(waiting.wakeAtMs, T0 + SET_ASIDE_MS);
  const aside = planRevisions(after(state({ overlay: FORCED, masters }), waiting), T0 + SET_ASIDE_MS);
  assert.equal(targets(aside), 'm2:2');
  const done = [gone, master('m2', 2, attempted(2)), master('m3', 2, attempted(2))];
  const reached = planRevisions(after(state({ overlay: FORCED, masters: done }), aside), T0 + 2 * SET_ASIDE_MS);
  assert.equal(targets(reached), '');
  assert.equal(reached.revisions.at(-1)?.phase, 'Succeeded');
  const back = [master('m1', 1), ...done.slice(1)];
  assert.equal(
    targets(planRevisions(after(state({ overlay: FORCED, masters: back }), reached), T0 + 3 * SET_ASIDE_MS)),
    'm1:2',
  );
});

test('clears the target of a failed revision, and does not install the revision on other masters', () => {
  const first = planRevisions(state({ overlay: FORCED }), T0);
  const masters = [failedOnFirst(), master('m2', 1), master('m3', 1)];
  const failed = planRevisions(after(state({ overlay: FORCED, masters }), first), T0 + 1000);
  assert.equal(targets(failed), '');
  assert.equal(failed.revisions.at(-1)?.phase, 'Failed');
  assert.deepEqual(
    { ...failed.progress[0] },
    {
      nodeName: 'm1',
      currentRevision: 1,
      targetRevision: 0,
      lastFailedRevision: 2,
      lastFailedTimeMs: T0,
      lastFailedReason: 'OperandFailedFallback',
      lastFailedCount: 1,
      lastFallbackCount: 1,
      errors: ['down'],
    },
  );
  assert.equal(failed.wakeAtMs, T0 + 600_000);
  const retried = planRevisions(after(state({ overlay: FORCED, masters }), failed), T0 + 600_000);
  assert.equal(targets(retried), 'm1:2');
  // A failure that the leader already knows does not end the retry.
  assert.equal(targets(planRevisions(after(state({ overlay: FORCED, masters }), retried), T0 + 600_001)), 'm1:2');
  const twice = [failedOnFirst(2, 2, T0 + 700_000), master('m2', 1), master('m3', 1)];
  const ended = planRevisions(after(state({ overlay: FORCED, masters: twice }), retried), T0 + 700_001);
  assert.equal(targets(ended), '');
  assert.equal(ended.wakeAtMs, T0 + 700_000 + 900_000);
});

test('creates a revision for a corrected file without waiting for the back-off', () => {
  const repaired = failedOnFirst();
  const masters = [
    { ...repaired, report: { ...(repaired.report as NodeReport), digest: 'c', changed: ['f'] } },
    master('m2', 1),
  ];
  const before = state({
    overlay: FORCED,
    latest: 2,
    masters,
    revisions: [{ revision: 2, phase: 'Failed', reason: '', overlay: FORCED }],
  });
  const plan = planRevisions(before, T0 + 1000);
  assert.equal(plan.latest, 3);
  assert.equal(targets(plan), 'm1:3');
});

test('retries a failed revision with a back-off from 10 s to 10 min, and from 10 min to 2 h after a fallback', () => {
  assert.deepEqual(
    [1, 2, 3, 20].map((count) => retryDelayMs({ count, fallbacks: 0 })),
    [10_000, 15_000, 22_500, 600_000],
  );
  assert.deepEqual(
    [1, 2, 20].map((count) => retryDelayMs({ count, fallbacks: count })),
    [600_000, 900_000, 7_200_000],
  );
});

test('installs no revision in the management state Unmanaged', () => {
  const plan = planRevisions(state({ isManaged: false, overlay: FORCED }), T0);
  assert.equal(plan.latest, 2);
  assert.equal(targets(plan), '');
});

test('keeps the newest five failed and five successful revisions, and revisions in use', () => {
  const revisions = Array.from({ length: 20 }, (_, index) => ({
    revision: index + 1,
    phase: index % 2 === 0 ? ('Succeeded' as const) : ('Failed' as const),
    reason: '',
    overlay: '',
  }));
  const masters = [master('m1', 20), master('m2', 3)];
  const { pruned } = planRevisions(state({ latest: 20, revisions, masters }), T0);
  // Revision 20 has not succeeded anywhere yet; m2 runs revision 3.
  assert.deepEqual(pruned, [1, 2, 4, 5, 6, 7, 8, 9, 10]);
});

/** Small seeded generator. */
function generator(seed: number): () => number {
  let value = seed;
  return () => {
    value = (value * 1_103_515_245 + 12_345) & 0x7fffffff;
    return value / 0x7fffffff;
  };
}

test('in random clusters, has at most one target, retries no failed revision on other masters, and converges', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = generator(seed);
    const names = ['m1', 'm2', 'm3', 'm4', 'm5'].slice(0, 1 + Math.floor(random() * 5));
    let now = state({ masters: names.map((name) => master(name, 1)) });
    let clock = T0;
    let bad = new Set<number>();
    let calm = false;
    const step = (): void => {
      clock += 1000;
      const plan = planRevisions(now, clock);
      const wanted = plan.progress.filter(({ targetRevision }) => targetRevision !== 0);
      assert.ok(wanted.length <= 1, `seed ${seed}: two masters at once`);
      assert.deepEqual(planRevisions(after(now, plan), clock).progress, plan.progress, `seed ${seed}: not stable`);
      const failedAt = new Set(
        plan.progress.filter((each) => each.lastFailedRevision === plan.latest).map((each) => each.nodeName),
      );
      const [target] = wanted;
      const isLive = (name: string): boolean =>
        now.masters.find((each) => each.name === name)?.notReadySinceMs === undefined;
      if (target !== undefined && failedAt.size > 0 && [...failedAt].some(isLive))
        assert.ok(failedAt.has(target.nodeName), `seed ${seed}: a bad revision spreads`);
      assert.ok(
        plan.progress.every(
          (each) => each.currentRevision <= plan.latest && !plan.pruned.includes(each.currentRevision),
        ),
        `seed ${seed}: a revision in use is pruned`,
      );
      now = after(now, plan);
      // Simulates the hosts: the target installs, if it is available.
      now = {
        ...now,
        masters: now.masters.map((each) => {
          if (each.name !== target?.nodeName || each.notReadySinceMs !== undefined || random() < 0.3) return each;
          const { overlay } = now;
          const attempt = { revision: target.targetRevision, digest: each.report?.digest ?? '', overlay, reason: '' };
          const count = (each.report?.failure?.revision === attempt.revision ? each.report.failure.count : 0) + 1;
          return bad.has(attempt.revision)
            ? {
                name: each.name,
                report: report(each.report?.current ?? 0, {
                  digest: attempt.digest,
                  attempt,
                  failure: {
                    revision: attempt.revision,
                    atMs: clock,
                    reason: 'r',
                    count,
                    fallbacks: count,
                    errors: [],
                  },
                }),
              }
            : { name: each.name, report: report(attempt.revision, { digest: attempt.digest, attempt }) };
        }),
      };
      if (calm) return;
      if (random() < 0.1)
        now = { ...now, overlay: JSON.stringify({ forceRedeploymentReason: String(Math.floor(random() * 1e6)) }) };
      if (random() < 0.1) bad.add(now.latest + 1);
      const victim = names[Math.floor(random() * names.length)];
      if (random() < 0.1)
        now = {
          ...now,
          masters: now.masters.map((each) => (each.name === victim ? { ...each, notReadySinceMs: clock } : each)),
        };
      if (random() < 0.1) now = { ...now, masters: now.masters.map(({ notReadySinceMs: _, ...each }) => each) };
    };
    for (let round = 0; round < 60; round++) step();
    calm = true;
    bad = new Set();
    now = {
      ...now,
      overlay: '{"forceRedeploymentReason":"last"}',
      masters: now.masters.map(({ notReadySinceMs: _, ...each }) => each),
    };
    for (let round = 0; round < 60; round++) step();
    assert.ok(
      now.progress.every(({ currentRevision }) => currentRevision === now.latest),
      `seed ${seed}: not all arrived`,
    );
    assert.ok(now.revisions.length <= 12, `seed ${seed}: ${now.revisions.length} revisions are kept`);
  }
});
