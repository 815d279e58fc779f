import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CronJob, CronJobStatus, Job } from '../../../../src/api/generated/batch/v1.ts';
import { planCronJob, withStarted } from '../../../../src/controllers/workloads/cron-job/plan.ts';

const CREATED = '2026-01-01T00:00:30Z';
const at = (text: string): number => Date.parse(text);

function cronJob(spec: Partial<NonNullable<CronJob['spec']>> = {}, status: CronJobStatus = {}): CronJob {
  return {
    metadata: { name: 'tick', namespace: 'ns', uid: 'tick', creationTimestamp: CREATED },
    spec: {
      schedule: '*/10 * * * *',
      concurrencyPolicy: 'Allow',
      jobTemplate: { metadata: { labels: { a: 'b' } }, spec: { template: {} } },
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
      ...spec,
    },
    status,
  };
}
function job(name: string, finish?: 'Complete' | 'Failed', startTime = CREATED): Job {
  const conditions = finish === undefined ? [] : [{ type: finish, status: 'True' }];
  return {
    metadata: { name, namespace: 'ns', uid: name },
    status: { startTime, conditions, ...(finish === 'Complete' ? { completionTime: startTime } : {}) },
  };
}
const active = (...jobs: Job[]): CronJobStatus =>
  jobs.reduce(withStarted, { lastScheduleTime: '2026-01-01T00:10:00Z' });
const plan = (cron: CronJob, now: string, jobs: readonly Job[] = []) =>
  planCronJob({ cronJob: cron, jobs, localZone: 'UTC' }, { nowMs: at(now), random: () => 0 });
const reasons = (made: ReturnType<typeof plan>): string[] => made.events.map((event) => event.reason);

test('creates one job at the scheduled time, with the time in its name', () => {
  const early = plan(cronJob(), '2026-01-01T00:09:00Z');
  assert.deepEqual([early.create, early.recheckAfterMs], [undefined, 60_100]);
  const due = plan(cronJob(), '2026-01-01T00:10:01Z');
  assert.equal(due.create?.metadata?.name, `tick-${at('2026-01-01T00:10:00Z') / 60_000}`);
  assert.deepEqual(due.create?.metadata?.labels, { a: 'b' });
  assert.equal(
    due.create?.metadata?.annotations?.['batch.kubernetes.io/cronjob-scheduled-timestamp'],
    '2026-01-01T00:10:00Z',
  );
  assert.equal(due.create?.metadata?.ownerReferences?.[0]?.uid, 'tick');
  assert.equal(due.status.lastScheduleTime, '2026-01-01T00:10:00Z');
  assert.equal(plan(cronJob({}, due.status), '2026-01-01T00:10:02Z').create, undefined);
});

test('starts only the last of several missed runs, within the deadline', () => {
  const now = '2026-01-01T01:05:00Z';
  assert.equal(plan(cronJob(), now).status.lastScheduleTime, '2026-01-01T01:00:00Z');
  assert.equal(plan(cronJob({ startingDeadlineSeconds: 200 }), now).create, undefined);
  assert.ok(plan(cronJob({ startingDeadlineSeconds: 400 }), now).create);
  assert.deepEqual(reasons(plan(cronJob(), '2026-01-09T00:00:00Z')), ['TooManyMissedTimes']);
  assert.deepEqual(reasons(plan(cronJob({ startingDeadlineSeconds: 3600 }), '2026-01-09T00:00:00Z')), []);
});

test('a cron job applies its concurrency policy', () => {
  const running = job('tick-1');
  const at20 = '2026-01-01T00:20:00Z';
  assert.ok(plan(cronJob({}, active(running)), at20, [running]).create);
  const forbid = plan(cronJob({ concurrencyPolicy: 'Forbid' }, active(running)), at20, [running]);
  assert.deepEqual([forbid.create, reasons(forbid)], [undefined, ['JobAlreadyActive']]);
  const replace = plan(cronJob({ concurrencyPolicy: 'Replace' }, active(running)), at20, [running]);
  assert.deepEqual([replace.replace, replace.status.active], [[running], undefined]);
  assert.ok(replace.create);
});

test('starts no job while suspended or being deleted', () => {
  assert.equal(plan(cronJob({ suspend: true }), '2026-01-01T00:20:00Z').create, undefined);
  const ending = cronJob();
  ending.metadata = { ...ending.metadata, deletionTimestamp: CREATED };
  assert.equal(plan(ending, '2026-01-01T00:20:00Z').create, undefined);
});

test('updates the status of a cron job from its jobs', () => {
  const [running, done] = [job('tick-1'), job('tick-2', 'Complete', '2026-01-01T00:11:00Z')];
  const seen = plan(cronJob({}, active(running, done, job('lost'))), '2026-01-01T00:12:00Z', [
    running,
    done,
    job('foreign'),
  ]);
  assert.deepEqual(
    seen.status.active?.map((reference) => reference.name),
    ['tick-1'],
  );
  assert.equal(seen.status.lastSuccessfulTime, '2026-01-01T00:11:00Z');
  assert.deepEqual(reasons(seen), ['SawCompletedJob', 'MissingJob', 'UnexpectedJob']);
});

test('keeps the newest jobs within the history limits', () => {
  const jobs = [1, 2, 3, 4].flatMap((hour) => [
    job(`good-${hour}`, 'Complete', `2026-01-01T0${hour}:00:00Z`),
    job(`bad-${hour}`, 'Failed', `2026-01-01T0${hour}:00:00Z`),
  ]);
  const names = (made: ReturnType<typeof plan>) => made.clean.map((each) => each.metadata?.name);
  const status = { lastScheduleTime: '2026-01-01T05:00:00Z' };
  assert.deepEqual(names(plan(cronJob({}, status), '2026-01-01T05:01:00Z', jobs)), [
    'good-1',
    'bad-1',
    'bad-2',
    'bad-3',
  ]);
});

test('applies time zones and reports invalid schedules', () => {
  const tokyo = plan(cronJob({ schedule: '0 9 * * *', timeZone: 'Asia/Tokyo' }), '2026-01-01T00:00:40Z');
  assert.equal(tokyo.recheckAfterMs, 24 * 3_600_000 - 40_000 + 100);
  const nowhere = plan(cronJob({ timeZone: 'No/Where' }), '2026-01-01T00:20:00Z');
  assert.deepEqual([nowhere.create, reasons(nowhere)], [undefined, ['UnknownTimeZone']]);
  const broken = plan(cronJob({ schedule: 'x' }), '2026-01-01T00:20:00Z');
  assert.deepEqual([broken.create, reasons(broken)], [undefined, ['UnparseableSchedule']]);
  const old = plan(cronJob({ schedule: 'TZ=Asia/Tokyo */10 * * * *' }), '2026-01-01T00:20:00Z');
  assert.deepEqual([old.create !== undefined, reasons(old)], [true, ['UnsupportedSchedule']]);
});
