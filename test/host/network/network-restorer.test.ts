import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import type { HostNetwork } from '../../../src/host/network/host-network.ts';
import { createNetworkRestorer } from '../../../src/host/network/network-restorer.ts';
import { ManualClock } from '../../client/clocks.ts';

function start() {
  const clock = new ManualClock();
  const state = {
    isFollowed: true,
    links: 0,
    full: 0,
    verified: 0,
    forwarding: 0,
    changed: (_foreign: ReadonlySet<string> | undefined): void => {},
    damaged: [] as string[],
    restored: Promise.resolve(),
  };
  const never = async (): Promise<never> => Promise.reject(new Error('not expected'));
  const network: HostNetwork = {
    attach: never,
    detach: never,
    retain: never,
    setPodCidrs: never,
    destroy: never,
    reconcile: async ({ filter }) => {
      state.links += 1;
      if (filter) state.full += 1;
    },
    watchFilter: (changed) => {
      state.changed = changed;
      return { isRunning: () => state.isFollowed, stop: () => {} };
    },
    filterTables: () => ['ip own', 'inet own-policy'],
    forwarding: async () => {
      state.forwarding += 1;
      return undefined;
    },
  };
  const restorer = createNetworkRestorer(network, clock, silentLog);
  restorer.start([
    (damaged) => {
      state.verified += 1;
      state.damaged.push([...damaged].join());
      return state.restored;
    },
  ]);
  const pass = (seconds: number): Promise<void> => clock.advance(seconds * 1_000);
  return { state, restorer, pass };
}

test('compares only links and routes periodically while the kernel reports changes of the packet filter', async () => {
  const { state, restorer, pass } = start();
  await pass(11);
  assert.deepEqual([state.links, state.full, state.verified, state.forwarding], [1, 1, 1, 1]);
  await pass(120);
  assert.deepEqual([state.links, state.full, state.verified], [13, 1, 1]);
  assert.ok(state.forwarding <= 3, String(state.forwarding));
  await pass(180);
  assert.equal(state.full, 2);
  restorer.stop();
});

test('compares everything after a change of the packet filter, a deletion, or missed lines of the monitor', async () => {
  const { state, restorer, pass } = start();
  await pass(36);
  for (const report of [
    () => state.changed(new Set()),
    () => restorer.lost('Deleted 10.1.0.0/16 dev eth0'),
    () => restorer.lost(''),
  ]) {
    const { full, forwarding } = state;
    report();
    await pass(6);
    assert.equal(state.full, full + 1);
    assert.equal(state.forwarding, forwarding + 1);
    assert.equal(state.verified, state.full);
  }
  restorer.stop();
});

test('compares everything at most once in five seconds while changes are reported continuously', async () => {
  const { state, restorer, pass } = start();
  await pass(11);
  for (let second = 0; second < 20; second += 1) {
    state.changed(new Set());
    await pass(1);
  }
  assert.ok(state.full >= 4 && state.full <= 6, String(state.full));
  restorer.stop();
});

test('compares everything every ten seconds if the kernel does not report changes of the packet filter', async () => {
  const { state, restorer, pass } = start();
  state.isFollowed = false;
  await pass(41);
  assert.equal(state.full, 4);
  restorer.stop();
});

test('reports a table that another program changed until its owner has restored it', async () => {
  const { state, restorer, pass } = start();
  await pass(11);
  const { promise, resolve } = Promise.withResolvers<void>();
  state.restored = promise;
  state.damaged = [];
  state.changed(new Set(['inet own-policy']));
  assert.match(restorer.filterProblem() ?? '', /table inet own-policy$/);
  await pass(6);
  assert.deepEqual(state.damaged, ['inet own-policy']);
  assert.match(restorer.filterProblem() ?? '', /own-policy/);
  resolve();
  await pass(1);
  assert.equal(restorer.filterProblem(), undefined);
  restorer.stop();
});

test('replaces all tables after missed changes, but not again for further changes missed soon afterwards', async () => {
  const { state, restorer, pass } = start();
  await pass(11);
  state.damaged = [];
  for (let count = 0; count < 3; count += 1) {
    state.changed(undefined);
    await pass(12);
  }
  const all = 'ip own,inet own-policy';
  assert.deepEqual(state.damaged, [all, '', '']);
  assert.equal(restorer.filterProblem(), undefined);
  await pass(190);
  assert.equal(state.damaged.filter((each) => each === all).length, 2);
  restorer.stop();
});
