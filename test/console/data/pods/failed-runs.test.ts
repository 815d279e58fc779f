import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { failedRuns } from '../../../../src/console/data/pods/failed-runs.ts';

const pod = (...containerStatuses: readonly object[]): Pod => ({ status: { containerStatuses } }) as Pod;
const failed = { terminated: { exitCode: 3 } };

test('failed runs are the present run that failed, or the one before a restart', () => {
  const runs = failedRuns(
    pod(
      { name: 'ended', state: failed },
      { name: 'waits', state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: failed },
      { name: 'restarted', state: { running: {} }, lastState: failed, ready: false },
      { name: 'recovered', state: { running: {} }, lastState: failed, ready: true },
      { name: 'done', state: { terminated: { exitCode: 0 } } },
      { name: 'pulls', state: { waiting: { reason: 'ImagePullBackOff' } } },
    ),
  );
  assert.deepEqual(
    runs.map(({ container, isPrevious }) => [container, isPrevious]),
    [
      ['ended', false],
      ['waits', true],
      ['restarted', true],
    ],
  );
});
