import assert from 'node:assert/strict';
import { test } from 'node:test';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toUid } from '../../../src/base/brand.ts';
import type { FilterName } from '../../../src/scheduler/core/filters/filter.ts';
import type { ClusterEvent } from '../../../src/scheduler/core/hints.ts';
import { MAX_WAIT_MS, SchedulingQueue } from '../../../src/scheduler/core/queue.ts';
import { nodeEvents } from '../../../src/scheduler/relevant-changes.ts';
import { node, pod } from './cluster-objects.ts';

const entry = (uid: string, priority = 0) => {
  const made = pod({ name: uid, priority, cpu: '1' });
  return podInfoOf({ ...made, metadata: { ...made.metadata, uid } });
};
const left: ClusterEvent = { kind: 'PodLeft', pod: podInfoOf(pod({ node: 'n', cpu: '1' })) };
const labels: ClusterEvent = { kind: 'NodeLabelsChanged', node: node('n'), old: node('n') };
const filters = (...names: FilterName[]): ReadonlySet<FilterName> => new Set(names);

test('the scheduling queue returns pods by priority, then in order of arrival', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.add(entry('b', 5), 0);
  queue.add(entry('c'), 0);
  assert.deepEqual(
    [queue.pop(0)?.uid, queue.pop(0)?.uid, queue.pop(0)?.uid, queue.pop(0)?.uid],
    ['b', 'a', 'c', undefined],
  );
});

test('retries a rejected pod only after a relevant event and the end of its back-off', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.rejected(toUid('a'), filters('NodeResourcesFit'), 0);
  assert.equal(queue.onEvent(labels), 0);
  assert.equal(queue.pop(50), undefined);
  assert.equal(queue.onEvent(left), 1);
  assert.equal(queue.pop(60), undefined, 'its back-off is not over');
  assert.equal(queue.nextDueInMs(60), 40);
  assert.equal(queue.pop(100)?.uid, 'a');
});

test('the scheduling queue doubles the back-off of a pod up to ten seconds', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  const waits: number[] = [];
  let now = 0;
  for (let attempt = 0; attempt < 9; attempt++) {
    queue.pop(now);
    queue.failed(toUid('a'), now);
    const due = queue.nextDueInMs(now) ?? 0;
    waits.push(due);
    now += due;
  }
  assert.deepEqual(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
});

test('an event that occurs during a scheduling attempt makes the rejected pod ready to retry', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.onEvent(left);
  queue.rejected(toUid('a'), filters('NodeResourcesFit'), 0);
  assert.equal(queue.pop(1_000)?.uid, 'a');
});

test('retries a changed pod at once, even if the change occurs during its scheduling attempt', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.rejected(toUid('a'), filters('NodeAffinity'), 0);
  queue.add(entry('a'), 10);
  assert.equal(queue.pop(10)?.uid, 'a');
  queue.add(entry('a'), 20);
  queue.rejected(toUid('a'), filters('NodeAffinity'), 20);
  assert.equal(queue.pop(20 + 2_000)?.uid, 'a');
});

test('requeues a pod on every event if it was rejected because no node existed', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.rejected(toUid('a'), filters(), 0);
  assert.equal(queue.onEvent({ kind: 'NodeAdded', node: node('n') }), 1);
});

test('retries a rejected pod after five minutes without a relevant event', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.rejected(toUid('a'), filters('NodeAffinity'), 0);
  assert.equal(queue.nextDueInMs(0), MAX_WAIT_MS);
  queue.flush(MAX_WAIT_MS);
  assert.equal(queue.pop(MAX_WAIT_MS)?.uid, 'a');
});

test('a pod removed from the scheduling queue during its attempt is not queued again', () => {
  const queue = new SchedulingQueue();
  queue.add(entry('a'), 0);
  queue.pop(0);
  queue.remove(toUid('a'));
  queue.rejected(toUid('a'), filters(), 0);
  assert.equal(queue.size, 0);
});

test('requeues a pod with spread constraints when a node joins or leaves one of its topology domains', () => {
  const constraint = (topologyKey: string, whenUnsatisfiable: string) => ({
    topologyKey,
    whenUnsatisfiable,
    maxSkew: 1,
    labelSelector: {},
  });
  const topologySpreadConstraints = [constraint('zone', 'DoNotSchedule'), constraint('rack', 'ScheduleAnyway')];
  const zoned = node('n', { labels: { zone: '1' } });
  const outside = node('n');
  const other = node('n', { labels: { other: '1' } });
  const requeued = (events: readonly ClusterEvent[]): number => {
    const queue = new SchedulingQueue();
    queue.add(podInfoOf(pod({ name: 'a', spec: { topologySpreadConstraints } })), 0);
    const uid = queue.pop(0)?.uid ?? toUid('');
    queue.rejected(uid, filters('PodTopologySpread'), 0);
    return events.reduce((sum, event) => sum + queue.onEvent(event), 0);
  };
  assert.equal(requeued(nodeEvents(zoned, outside)), 1);
  assert.equal(requeued(nodeEvents(outside, zoned)), 1, 'the domain with the fewest pods may be gone');
  assert.equal(requeued(nodeEvents(other, outside)), 0);
  assert.equal(requeued([{ kind: 'NodeAdded', node: zoned }]), 1);
  assert.equal(requeued([{ kind: 'NodeAdded', node: outside }]), 0);
});
