import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ElectionTimeout } from '../../../src/store/replication/election-timeout.ts';

it('the election timeout decreases to half a second with a fast disk and network, and stays there', () => {
  const timeout = new ElectionTimeout(1000);
  for (let now = 0; now < 3000; now += 100) timeout.leaderMessageReceived('a', 1, now);
  assert.equal(timeout.adapt(2, 3000), 500);
  assert.equal(timeout.adapt(3, 4000), undefined);
});

it('the election timeout increases with a slow disk and with high latency to other members', () => {
  const slow = new ElectionTimeout(1000);
  assert.equal(slow.adapt(200, 0), 2000);
  const far = new ElectionTimeout(1000);
  far.roundSent(1, ['b', 'c'], 0);
  far.answered(1, 'b', 300);
  assert.equal(far.adapt(0, 300), undefined);
  far.roundSent(2, ['b', 'c'], 400);
  far.answered(2, 'b', 900);
  assert.equal(far.adapt(0, 900), 1500);
  // A response to an earlier request counts too, but not a response to a request that was never sent.
  const late = new ElectionTimeout(1000);
  late.roundSent(1, ['b', 'c'], 0);
  late.roundSent(2, ['b', 'c'], 100);
  late.answered(1, 'b', 400);
  late.answered(9, 'b', 400);
  assert.equal(late.adapt(0, 400), 1200);
});

it('the election timeout never exceeds five seconds, and decreases when conditions improve', () => {
  const timeout = new ElectionTimeout(1000);
  assert.equal(timeout.adapt(10_000, 0), 5000);
  assert.equal(timeout.adapt(1, 1000), 500);
});

it('the election timeout increases after a pause of a leader that still leads, but not after a change of leader', () => {
  const timeout = new ElectionTimeout(1000);
  timeout.leaderMessageReceived('a', 1, 0);
  timeout.leaderMessageReceived('a', 1, 1400);
  assert.equal(timeout.adapt(0, 1400), 2100);
  timeout.leaderMessageReceived('b', 2, 2000);
  timeout.leaderMessageReceived('b', 3, 5000);
  assert.equal(timeout.adapt(0, 5000), undefined);
  // The timeout decreases again after some time.
  assert.equal(timeout.adapt(0, 120_000), 500);
});

it('the election timeout increases when leaders are lost repeatedly', () => {
  const timeout = new ElectionTimeout(500);
  for (const now of [0, 2000, 4000, 6000, 8000]) timeout.lost(now);
  assert.equal(timeout.adapt(0, 8000), undefined);
  timeout.lost(12_000);
  assert.equal(timeout.adapt(0, 12_000), 1500);
  timeout.lost(13_000);
  assert.equal(timeout.adapt(0, 13_000), 4500);
});

it('the election timeout ignores periods in which the process itself was stalled', () => {
  const timeout = new ElectionTimeout(1000);
  for (let now = 0; now <= 1000; now += 50) {
    timeout.ticked(now);
    timeout.leaderMessageReceived('a', 1, now);
    timeout.roundSent(now, ['b', 'c'], now);
  }
  // Messages that arrived in the meantime are read before or after the next tick.
  timeout.leaderMessageReceived('a', 1, 6000);
  timeout.answered(1000, 'b', 6000);
  timeout.ticked(6010);
  timeout.leaderMessageReceived('a', 1, 6020);
  timeout.answered(950, 'b', 6020);
  assert.equal(timeout.adapt(0, 6020), 500);
});

it('the election timeout follows the round trip to a majority, and ignores delayed responses of a returning member', () => {
  const timeout = new ElectionTimeout(500);
  for (let round = 1; round <= 40; round++) {
    timeout.ticked(round * 100);
    timeout.roundSent(round, ['b', 'c'], round * 100);
    timeout.answered(round, 'b', round * 100 + 5);
  }
  for (let round = 1; round <= 40; round++) timeout.answered(round, 'c', 4100);
  assert.equal(timeout.adapt(0, 4100), undefined);
  // Two of four other members are required, and no member counts twice.
  timeout.ticked(5000);
  timeout.roundSent(50, ['b', 'c', 'd', 'e'], 5000);
  timeout.answered(50, 'b', 5010);
  timeout.ticked(5200);
  timeout.answered(50, 'b', 5400);
  timeout.ticked(5400);
  timeout.answered(50, 'x', 5400);
  assert.equal(timeout.adapt(0, 5400), undefined);
  timeout.ticked(5600);
  timeout.answered(50, 'c', 5600);
  assert.equal(Math.round(timeout.adapt(0, 5600) ?? 0), 1800);
});
