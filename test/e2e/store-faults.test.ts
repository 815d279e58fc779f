/** Members of a store as processes, under load, and what befalls them. See `test/drills` for the same at greater length. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drillLeaderLoss, drillRandomKills } from '../drills/drills.ts';

test('killed at random under load, three members lose nothing and write nothing twice', async () => {
  const summary = await drillRandomKills(15, 42);
  assert.ok(summary.acknowledged > 100, `${summary.acknowledged} writes`);
});

test('writes resume soon after the leader is killed, ended in order, or stands still', async () => {
  const killed = await drillLeaderLoss('SIGKILL', 3);
  assert.ok(Math.max(...killed) < 2000, killed.join());
  const ended = await drillLeaderLoss('SIGTERM', 3);
  assert.ok(Math.max(...ended) < 1000, ended.join());
  const paused = await drillLeaderLoss('SIGSTOP', 1);
  assert.ok(Math.max(...paused) < 3000, paused.join());
});
