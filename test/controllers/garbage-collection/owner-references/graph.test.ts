import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import { toUid } from '../../../../src/base/brand.ts';
import {
  decideCollection,
  type OwnerState,
  withoutOwners,
} from '../../../../src/controllers/garbage-collection/owner-references/decide.ts';
import { OwnershipGraph } from '../../../../src/controllers/garbage-collection/owner-references/graph.ts';
import { seeded } from '../../objects.ts';

interface Facts {
  owners?: string[];
  blocking?: boolean;
  finalizers?: string[];
  deleting?: boolean;
  namespace?: string;
}

function object(uid: string, facts: Facts = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: uid,
      namespace: facts.namespace ?? 'ns',
      uid,
      ...(facts.finalizers === undefined ? {} : { finalizers: facts.finalizers }),
      ...(facts.deleting === true ? { deletionTimestamp: 'now' } : {}),
      ownerReferences: (facts.owners ?? []).map((owner) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: owner,
        uid: owner,
        ...(facts.blocking === true ? { blockOwnerDeletion: true } : {}),
      })),
    },
  };
}

const list = (set: ReadonlySet<string>): string[] => [...set].sort();

test('rechecks the dependent of an unknown owner until the owner is looked up', () => {
  const graph = new OwnershipGraph();
  assert.deepEqual(list(graph.observe(object('child', { owners: ['owner'] })).delete), ['owner']);
  assert.equal(graph.node(toUid('owner'))?.isVirtual, true);
  assert.deepEqual(list(graph.observe(object('owner')).delete), []);
  assert.equal(graph.node(toUid('owner'))?.isVirtual, false);
});

test('checks the dependents of a deleted owner', () => {
  const graph = new OwnershipGraph();
  graph.observe(object('owner'));
  graph.observe(object('a', { owners: ['owner'] }));
  graph.observe(object('b', { owners: ['owner'] }));
  assert.deepEqual(list(graph.remove(toUid('owner')).delete), ['a', 'b']);
});

test('checks the dependents on a foreground deletion, and the owner after each deleted dependent', () => {
  const graph = new OwnershipGraph();
  graph.observe(object('owner'));
  graph.observe(object('a', { owners: ['owner'], blocking: true }));
  graph.observe(object('b', { owners: ['owner'] }));
  const marked = object('owner', { deleting: true, finalizers: ['foregroundDeletion'] });
  assert.deepEqual(list(graph.observe(marked).delete), ['a', 'b', 'owner']);
  assert.deepEqual(
    graph.blockingDependents(toUid('owner')).map((node) => node.uid),
    ['a'],
  );
  assert.deepEqual(list(graph.remove(toUid('a')).delete), ['owner']);
});

test('checks an owner that waits for deletion when a dependent stops blocking', () => {
  const graph = new OwnershipGraph();
  graph.observe(object('owner', { deleting: true, finalizers: ['foregroundDeletion'] }));
  graph.observe(object('a', { owners: ['owner'], blocking: true }));
  assert.deepEqual(list(graph.observe(object('a', { owners: ['owner'] })).delete), ['owner']);
});

test('the owner graph reports an orphaning deletion once', () => {
  const graph = new OwnershipGraph();
  const marked = object('owner', { deleting: true, finalizers: ['orphan'] });
  assert.deepEqual(list(graph.observe(marked).orphan), ['owner']);
  assert.deepEqual(list(graph.observe(marked).orphan), []);
});

test('deletes a dependent in another namespace than its owner', () => {
  const graph = new OwnershipGraph();
  graph.observe(object('owner', { namespace: 'other' }));
  assert.deepEqual(list(graph.observe(object('child', { owners: ['owner'] })).delete), ['child']);
});

test('checks a dependent that is added after its owner was deleted or not found', () => {
  const deleted = new OwnershipGraph();
  deleted.observe(object('owner'));
  deleted.observe(object('a', { owners: ['owner'] }));
  assert.deepEqual(list(deleted.remove(toUid('owner')).delete), ['a']);
  // The first dependent still exists, for example because it terminates gracefully.
  assert.deepEqual(list(deleted.observe(object('b', { owners: ['owner'] })).delete), ['b']);

  const unknown = new OwnershipGraph();
  unknown.observe(object('a', { owners: ['owner'] }));
  assert.deepEqual(
    list(unknown.observe(object('b', { owners: ['owner'] })).delete),
    [],
    'the owner is looked up first',
  );
  assert.deepEqual(list(unknown.markAbsent(toUid('owner')).delete), ['a', 'b']);
  assert.deepEqual(list(unknown.observe(object('c', { owners: ['owner'] })).delete), ['c']);
  unknown.observe(object('owner'));
  assert.deepEqual(list(unknown.observe(object('d', { owners: ['owner'] })).delete), [], 'the owner exists');
});

test('checks a dependent whose reference names another group than its owner', () => {
  const graph = new OwnershipGraph();
  graph.observe(object('owner'));
  const dependent = object('child', { owners: ['owner'] });
  const [reference] = dependent.metadata?.ownerReferences ?? [];
  assert.ok(reference);
  const forged = { ...dependent.metadata, ownerReferences: [{ ...reference, apiVersion: 'example.com/v1' }] };
  assert.deepEqual(list(graph.observe({ ...dependent, metadata: forged }).delete), ['child']);
});

test('checks an object with many owners instead of looking up each owner', () => {
  const graph = new OwnershipGraph();
  const owners = Array.from({ length: 101 }, (_, index) => `owner-${index}`);
  assert.deepEqual(list(graph.observe(object('wide', { owners })).delete), ['wide']);
  assert.deepEqual(list(graph.observe(object('narrow', { owners: ['owner-7'] })).delete), ['narrow']);
});

test('records many owner references in time that grows linearly', () => {
  const referencesTo = (uids: readonly string[]) => object('wide', { owners: [...uids], blocking: true });
  const cost = (count: number): number => {
    const graph = new OwnershipGraph();
    graph.observe(object('busy', { deleting: true, finalizers: ['foregroundDeletion'] }));
    const others = Array.from({ length: count }, (_, index) => `owner-${index}`);
    graph.observe(referencesTo(others));
    const next = referencesTo(others.map(() => 'busy'));
    const began = process.cpuUsage();
    graph.observe(next);
    withoutOwners(referencesTo(others), others.slice(1).map(toUid));
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1000;
  };
  cost(1000);
  const ms = cost(20_000);
  assert.ok(ms < 300, `${ms} ms`);
});

test('the owner graph frees all memory when all objects are deleted', () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seeded(seed);
    const graph = new OwnershipGraph();
    const uids = Array.from({ length: 12 }, (_, index) => `o${index}`);
    const alive = new Set<string>();
    for (let step = 0; step < 150; step++) {
      const uid = uids[Math.floor(random() * uids.length)] ?? '';
      if (random() < 0.3) {
        graph.remove(toUid(uid));
        alive.delete(uid);
      } else {
        graph.observe(object(uid, { owners: uids.filter(() => random() < 0.2), blocking: random() < 0.5 }));
        alive.add(uid);
      }
    }
    for (const uid of alive) graph.remove(toUid(uid));
    assert.equal(graph.size, 0, `seed ${seed}`);
  }
});

const owners = (...states: OwnerState[]) =>
  states.map((state, index) => ({ reference: { apiVersion: 'v1', kind: 'K', name: 'n', uid: `${index}` }, state }));
const judge = (
  states: OwnerState[],
  more: { finalizers?: string[]; hasDependents?: boolean; waiting?: boolean } = {},
) =>
  decideCollection({
    object: object('x', { finalizers: more.finalizers ?? [] }),
    owners: owners(...states),
    hasDependents: more.hasDependents ?? false,
    hasWaitingDependents: more.waiting ?? false,
  });

test('keeps or deletes an object according to the state of its owners', () => {
  assert.deepEqual(judge([]), { kind: 'keep' });
  assert.deepEqual(judge(['solid']), { kind: 'keep' });
  assert.deepEqual(judge(['solid', 'dangling', 'waiting']), { kind: 'forget-owners', uids: ['1', '2'] });
  assert.deepEqual(judge(['dangling']), { kind: 'delete', propagation: 'Background', unblockOwners: false });
  assert.deepEqual(judge(['waiting'], { hasDependents: true }), {
    kind: 'delete',
    propagation: 'Foreground',
    unblockOwners: false,
  });
  assert.deepEqual(judge(['waiting'], { hasDependents: true, waiting: true }), {
    kind: 'delete',
    propagation: 'Foreground',
    unblockOwners: true,
  });
  assert.equal(judge(['dangling'], { finalizers: ['orphan'] }).kind, 'delete');
  const orphaned = judge(['dangling'], { finalizers: ['orphan'] });
  assert.equal(orphaned.kind === 'delete' && orphaned.propagation, 'Orphan');
});
