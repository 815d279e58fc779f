import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Pace } from '../../../../src/components/etcd/replication/election-timeout.ts';

it('goes down to half a second where everything is fast, and stays there', () => {
  const pace = new Pace(1000);
  for (let now = 0; now < 3000; now += 100) pace.heard('a', 1, now);
  assert.equal(pace.adapt(2, 3000), 500);
  assert.equal(pace.adapt(3, 4000), undefined);
});

it('waits longer with a slow disk, and with a long way to the others', () => {
  const slow = new Pace(1000);
  assert.equal(slow.adapt(200, 0), 2000);
  const far = new Pace(1000);
  far.asked(1, ['b', 'c'], 0);
  far.answered(1, 'b', 300);
  assert.equal(far.adapt(0, 300), undefined);
  far.asked(2, ['b', 'c'], 400);
  far.answered(2, 'b', 900);
  assert.equal(far.adapt(0, 900), 1500);
  // The answer to an older question counts as well; one to a question never asked does not.
  const late = new Pace(1000);
  late.asked(1, ['b', 'c'], 0);
  late.asked(2, ['b', 'c'], 100);
  late.answered(1, 'b', 400);
  late.answered(9, 'b', 400);
  assert.equal(late.adapt(0, 400), 1200);
});

it('never waits longer than five seconds, and comes back when what was slow is fast again', () => {
  const pace = new Pace(1000);
  assert.equal(pace.adapt(10_000, 0), 5000);
  assert.equal(pace.adapt(1, 1000), 500);
});

it('learns from a leader that was silent for a while and leads on, not from one that was replaced', () => {
  const pace = new Pace(1000);
  pace.heard('a', 1, 0);
  pace.heard('a', 1, 1400);
  assert.equal(pace.adapt(0, 1400), 2100);
  pace.heard('b', 2, 2000);
  pace.heard('b', 3, 5000);
  assert.equal(pace.adapt(0, 5000), undefined);
  // It fades.
  assert.equal(pace.adapt(0, 120_000), 500);
});

it('waits longer when leaders are lost again and again', () => {
  const pace = new Pace(500);
  for (const now of [0, 2000, 4000, 6000, 8000]) pace.lost(now);
  assert.equal(pace.adapt(0, 8000), undefined);
  pace.lost(12_000);
  assert.equal(pace.adapt(0, 12_000), 1500);
  pace.lost(13_000);
  assert.equal(pace.adapt(0, 13_000), 4500);
});

it('learns nothing while it stands still itself', () => {
  const pace = new Pace(1000);
  for (let now = 0; now <= 1000; now += 50) {
    pace.ticked(now);
    pace.heard('a', 1, now);
    pace.asked(now, ['b', 'c'], now);
  }
  // What arrived meanwhile is read before the clock ticks again, or after.
  pace.heard('a', 1, 6000);
  pace.answered(1000, 'b', 6000);
  pace.ticked(6010);
  pace.heard('a', 1, 6020);
  pace.answered(950, 'b', 6020);
  assert.equal(pace.adapt(0, 6020), 500);
});

it('a round trip is that of a majority: who was away and answers all at once when it comes back counts for nothing', () => {
  const pace = new Pace(500);
  for (let round = 1; round <= 40; round++) {
    pace.ticked(round * 100);
    pace.asked(round, ['b', 'c'], round * 100);
    pace.answered(round, 'b', round * 100 + 5);
  }
  for (let round = 1; round <= 40; round++) pace.answered(round, 'c', 4100);
  assert.equal(pace.adapt(0, 4100), undefined);
  // Of four others two are needed, and nobody counts twice.
  pace.ticked(5000);
  pace.asked(50, ['b', 'c', 'd', 'e'], 5000);
  pace.answered(50, 'b', 5010);
  pace.ticked(5200);
  pace.answered(50, 'b', 5400);
  pace.ticked(5400);
  pace.answered(50, 'x', 5400);
  assert.equal(pace.adapt(0, 5400), undefined);
  pace.ticked(5600);
  pace.answered(50, 'c', 5600);
  assert.equal(Math.round(pace.adapt(0, 5600) ?? 0), 1800);
});
