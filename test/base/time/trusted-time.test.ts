import assert from 'node:assert/strict';
import { test } from 'node:test';
import { certificateTimeMs, clockProblem, raisedFloorMs } from '../../../src/base/time/trusted-time.ts';

const DAY = 24 * 3600 * 1000;
const RELEASED = Date.UTC(2026, 0, 1);
const NOW = Date.UTC(2026, 10, 20);
const at = (nowMs: number, floorMs = 0, offsetMs?: number) => ({ nowMs, floorMs, offsetMs });

test('the trusted time is never before its floor or the release', () => {
  assert.equal(certificateTimeMs(at(0), RELEASED), RELEASED);
  assert.equal(certificateTimeMs(at(0, NOW), RELEASED), NOW);
  assert.equal(certificateTimeMs(at(NOW + DAY, NOW), RELEASED), NOW + DAY);
});

test('the floor of the trusted time rises with the clock, also after a year without power', () => {
  assert.equal(raisedFloorMs(at(NOW), RELEASED), NOW);
  assert.equal(raisedFloorMs(at(NOW + 370 * DAY, NOW), RELEASED), NOW + 370 * DAY);
  assert.equal(raisedFloorMs(at(0, NOW), RELEASED), NOW);
});

test('accepts a clock in 2040 as the new floor only if peers agree', () => {
  const wrong = Date.UTC(2040, 0, 1);
  assert.equal(raisedFloorMs(at(wrong, NOW), RELEASED), NOW);
  assert.equal(raisedFloorMs(at(wrong, NOW, 5_000), RELEASED), wrong);
  assert.equal(raisedFloorMs(at(NOW + DAY, NOW, 600_000), RELEASED), NOW, 'peers contradict');
});

test('reports a wrong clock with the command that sets it', () => {
  assert.equal(clockProblem(at(NOW, NOW - DAY, 400), RELEASED), undefined);
  assert.match(
    clockProblem(at(NOW + 600_000, 0, 600_000), RELEASED) ?? '',
    /600 s ahead of its peers; set it: date -u -s "2026-11-20 00:00:00"/,
  );
  assert.match(clockProblem(at(0, NOW), RELEASED) ?? '', /shows 1970-01-01 .* it has been 2026-11-20 00:00:00 UTC/);
});
