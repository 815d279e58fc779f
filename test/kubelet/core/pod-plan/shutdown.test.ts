/** Groups of pods that terminate together when a node shuts down, and their grace periods. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { periodsOf, shutdownGraceSeconds, shutdownGroups } from '../../../../src/kubelet/core/pod-plan/shutdown.ts';

const pod = (name: string, priority?: number, grace?: number): Pod => ({
  metadata: { name },
  spec: {
    containers: [],
    ...(priority === undefined ? {} : { priority }),
    ...(grace === undefined ? {} : { terminationGracePeriodSeconds: grace }),
  },
});

const named = (groups: ReturnType<typeof shutdownGroups>): unknown[] =>
  groups.map(({ priority, seconds, pods }) => [priority, seconds, pods.map(({ metadata }) => metadata?.name).join()]);

describe('the order of a node shutdown', () => {
  it('stops critical pods last, within their reserved period', () => {
    const pods = [pod('critical', 2_000_001_000), pod('none'), pod('below', 1_999_999_999), pod('edge', 2_000_000_000)];
    assert.deepEqual(named(shutdownGroups(periodsOf(30, 10), pods)), [
      [0, 20, 'none,below'],
      [2_000_000_000, 10, 'critical,edge'],
    ]);
    assert.deepEqual(periodsOf(0, 0), []);
  });

  // The cases are those of the table in KEP-2712.
  it("stops a pod in the period with the highest priority up to the pod's priority, or else in the first period", () => {
    const periods = [
      { priority: 100_000, seconds: 10 },
      { priority: 0, seconds: 60 },
      { priority: 10_000, seconds: 180 },
      { priority: 1_000, seconds: 120 },
    ];
    const pods = [99_999, -5, 0, 999, 1_000, 100_000, 2_000_000_000].map((priority) => pod(String(priority), priority));
    assert.deepEqual(named(shutdownGroups(periods, pods)), [
      [0, 60, '-5,0,999'],
      [1_000, 120, '1000'],
      [10_000, 180, '99999'],
      [100_000, 10, '100000,2000000000'],
    ]);
  });

  it('limits the grace period of a pod to that of its group', () => {
    const group = { priority: 0, seconds: 20 };
    assert.equal(shutdownGraceSeconds(pod('a'), group), 20);
    assert.equal(shutdownGraceSeconds(pod('b', 0, 5), group), 5);
    assert.equal(shutdownGraceSeconds(pod('c', 0, 0), group), 0);
  });
});
