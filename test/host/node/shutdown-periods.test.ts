import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shutdownPeriods } from '../../../src/host/node/shutdown-periods.ts';

const TOTAL = 'shutdown-grace-period';
const CRITICAL = 'shutdown-grace-period-critical-pods';
const BY_PRIORITY = 'shutdown-grace-period-by-pod-priority';

test('reads the periods of a node shutdown by pod priority and by critical pods', () => {
  assert.deepEqual(shutdownPeriods('f', {}), []);
  assert.deepEqual(shutdownPeriods('f', { [TOTAL]: ['1m'], [CRITICAL]: ['20s'] }), [
    { priority: 0, seconds: 40 },
    { priority: 2_000_000_000, seconds: 20 },
  ]);
  assert.deepEqual(shutdownPeriods('f', { [BY_PRIORITY]: ['0=60s,1000=10s', '-5=1s'] }), [
    { priority: 0, seconds: 60 },
    { priority: 1000, seconds: 10 },
    { priority: -5, seconds: 1 },
  ]);
});

test('rejects contradictory periods with the argument', () => {
  const refused = (given: Record<string, string[]>, message: RegExp): void =>
    assert.throws(() => shutdownPeriods('f', given), { code: 'bad-config', message });
  refused({ [TOTAL]: ['10s'], [CRITICAL]: ['20s'] }, /critical-pods: must be at most shutdown-grace-period/);
  refused({ [TOTAL]: ['10s'], [BY_PRIORITY]: ['0=1s'] }, /by-pod-priority: give either this flag or/);
  refused({ [TOTAL]: ['soon'] }, /"soon" is not a duration/);
  refused({ [TOTAL]: ['500ms'] }, /whole number of seconds/);
  refused({ [BY_PRIORITY]: ['high=1s'] }, /"high" is not a priority/);
});
