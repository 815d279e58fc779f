import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServerClock } from '../../../src/console/data/server-clock.ts';

const DAY_MS = 86_400_000;
const SERVER_MS = Date.parse('2026-11-27T12:00:00Z');
const DATE = new Date(SERVER_MS).toUTCString();

test('the clock of the server replaces an own clock that is wrong by a day or ten years', () => {
  for (const errorMs of [DAY_MS, -DAY_MS, 3_653 * DAY_MS, -3_653 * DAY_MS]) {
    let ownMs = SERVER_MS + errorMs;
    const clock = new ServerClock(() => ownMs);
    clock.observe(DATE);
    assert.equal(clock.nowMs(), SERVER_MS);
    ownMs += 60_000;
    assert.equal(clock.nowMs(), SERVER_MS + 60_000);
  }
});

test('small differences and invalid dates do not change the clock', () => {
  const clock = new ServerClock(() => SERVER_MS + 4_000);
  for (const date of [DATE, null, '', 'yesterday']) clock.observe(date);
  assert.equal(clock.offsetMs, 0);
  assert.equal(clock.nowMs(), SERVER_MS + 4_000);
});
