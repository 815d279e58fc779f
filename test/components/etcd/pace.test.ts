import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Pace } from '../../../src/components/etcd/pace.ts';

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
  far.asked(1, 0);
  far.answered(1, 300);
  assert.equal(far.adapt(0, 300), undefined);
  far.asked(2, 400);
  far.answered(2, 900);
  assert.equal(far.adapt(0, 900), 1500);
  // The answer to an older question counts as well; one to a question never asked does not.
  const late = new Pace(1000);
  late.asked(1, 0);
  late.asked(2, 100);
  late.answered(1, 400);
  late.answered(9, 400);
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
    pace.asked(now, now);
  }
  // What arrived meanwhile is read before the clock ticks again, or after.
  pace.heard('a', 1, 6000);
  pace.answered(1000, 6000);
  pace.ticked(6010);
  pace.heard('a', 1, 6020);
  pace.answered(950, 6020);
  assert.equal(pace.adapt(0, 6020), 500);
});
