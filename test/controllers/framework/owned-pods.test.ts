import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import { controllerOf } from '../../../src/controllers/framework/core/ownership.ts';
import { Expectations } from '../../../src/controllers/framework/expectations.ts';
import { deletePods, observePods } from '../../../src/controllers/framework/owned-pods.ts';

const clock = { monotonicMs: () => 0 };
let expectations = new Expectations(clock);
let calls: string[] = [];
let changes = observePods(expectations, { keyOf: () => undefined, wake: () => {}, wakeAdopters: () => {} });

beforeEach(() => {
  expectations = new Expectations(clock);
  calls = [];
  changes = observePods(expectations, {
    keyOf: (pod) => {
      const owner = controllerOf(pod);
      return owner?.kind === 'Own' ? owner.name : undefined;
    },
    wake: (key) => void calls.push(`wake ${key}`),
    wakeAdopters: (pod) => void calls.push(`adopt ${pod.metadata?.name}`),
  });
});

function pod(owner?: { readonly kind: string; readonly name: string }, more: Pod['metadata'] = {}): Pod {
  const references = owner === undefined ? [] : [{ ...owner, apiVersion: 'v1', uid: owner.name, controller: true }];
  return { metadata: { name: 'p', uid: 'u', ownerReferences: references, ...more } };
}
const of = (name: string, more?: Pod['metadata']): Pod => pod({ kind: 'Own', name }, more);
const terminating = { deletionTimestamp: '2026-01-01T00:00:00Z' };

test('an added pod fulfils an expected creation, and a terminating one an expected deletion', () => {
  expectations.expect('a', 1, ['u']);
  changes.added(of('a'));
  assert.equal(expectations.settled('a'), false);
  changes.added(of('a', terminating));
  assert.equal(expectations.settled('a'), true);
  assert.deepEqual(calls, ['wake a', 'wake a']);
});

test('a deletion is observed when termination begins, and when the pod is removed', () => {
  for (const observe of [() => changes.updated(of('a', terminating), of('a')), () => changes.deleted(of('a'))]) {
    expectations.expectDeletions('a', ['u']);
    observe();
    assert.equal(expectations.settled('a'), true);
  }
  assert.deepEqual(calls, ['wake a', 'wake a']);
});

test('a pod that changes its owner wakes both owners', () => {
  changes.updated(of('b'), of('a'));
  assert.deepEqual(calls, ['wake a', 'wake b']);
});

test('a pod without a controller wakes the objects that may adopt it', () => {
  changes.added(pod());
  changes.updated(pod(), of('a'));
  changes.updated(pod(undefined, { labels: { x: 'y' } }), pod());
  assert.deepEqual(calls, ['adopt p', 'wake a', 'adopt p', 'adopt p']);
});

test('ignores pods of other controllers, unchanged orphans, and removed orphans', () => {
  const foreign = pod({ kind: 'Other', name: 'x' });
  changes.added(foreign);
  changes.updated(foreign, pod());
  changes.deleted(foreign);
  changes.updated(pod(), pod());
  changes.deleted(pod());
  assert.deepEqual(calls, []);
});

test('a deletion without a following event is observed at once', async () => {
  const uids = ['kept', 'absent', 'failed'];
  expectations.expectDeletions('a', uids);
  const control = {
    create: () => Promise.resolve(),
    delete: (_owner: object, { metadata }: Pod) =>
      metadata?.uid === 'failed' ? Promise.reject(new Error('no')) : Promise.resolve(metadata?.uid === 'kept'),
  };
  const pods = uids.map((uid) => of('a', { uid }));
  const results = await deletePods(control, expectations, { owner: {}, key: 'a', pods });
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected'],
  );
  assert.equal(expectations.settled('a'), false);
  expectations.deletionObserved('a', 'kept');
  assert.equal(expectations.settled('a'), true);
});
