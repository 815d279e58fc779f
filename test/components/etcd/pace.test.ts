import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Pace } from '../../../src/components/etcd/pace.ts';

it('goes down to half a second where everything is fast, and stays there', () => {
  const pace = new Pace(1000);
  for (let now = 0; now < 3000; now += 100) pace.heard('a', now);
  assert.equal(pace.adapt(2, 3000), 500);
  assert.equal(pace.adapt(3, 4000), undefined);
});

it('waits longer with a slow disk, and with a long way to the others', () => {
  const slow = new Pace(1000);
  assert.equal(slow.adapt(200, 0), 2000);
  const far = new Pace(1000);
  far.asked(1, 0);
  far.answered(1, 300);
  assert.equal(far.adapt(0, 300), 3000);
  // Of the same question only the first time counts, and an answer to an older one says nothing.
  const late = new Pace(1000);
  late.asked(1, 0);
  late.asked(2, 100);
  late.answered(1, 400);
  assert.equal(late.adapt(0, 400), 500);
});

it('never waits longer than five seconds, and comes back when what was slow is fast again', () => {
  const pace = new Pace(1000);
  assert.equal(pace.adapt(10_000, 0), 5000);
  assert.equal(pace.adapt(1, 1000), 500);
});

it('learns from a leader that was silent for a while, not from one that was replaced or away for good', () => {
  const pace = new Pace(1000);
  pace.heard('a', 0);
  pace.heard('a', 700);
  assert.equal(pace.adapt(0, 700), 2100);
  pace.heard('b', 2000);
  pace.heard('b', 5000);
  assert.equal(pace.adapt(0, 5000), undefined);
  // It fades.
  assert.equal(pace.adapt(0, 120_000), 500);
});
