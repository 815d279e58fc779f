/**
 * Cron jobs: the job that is due, the old jobs to delete, and the status. Source: upstream's cronjob_controllerv2.go.
 */

import type { CronJob, CronJobStatus, Job } from '../../../api/generated/batch/v1.ts';
import type { ObjectReference } from '../../../api/generated/core/v1.ts';
import { messageOf } from '../../../base/errors.ts';
import { timeMs, timestamp } from '../../../base/time/timestamps.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { lastTime, parseSchedule, type Schedule, splitZone } from './schedule.ts';

const CRON_JOB = { group: 'batch', version: 'v1', kind: 'CronJob' } as const;
const SCHEDULED = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
/** Number of missed start times above which an event warns about clock skew or the deadline. Upstream's value. */
const MANY_MISSED = 100;
/** Tolerance for timers: the controller's clock may be slightly behind the time it waited for. */
const LATE_MS = 100;

export interface CronSnapshot {
  readonly cronJob: CronJob;
  readonly jobs: readonly Job[];
  /** Time zone for schedules that do not specify one. */
  readonly localZone: string;
}

export interface CronPlan {
  /** Finished jobs beyond the history limits. */
  readonly clean: readonly Job[];
  /** Active jobs that the new job replaces. */
  readonly replace: readonly Job[];
  readonly create: Job | undefined;
  /** New status. The caller adds a created job to `active` with `withStarted`. */
  readonly status: CronJobStatus;
  readonly events: readonly PlannedEvent[];
  readonly recheckAfterMs: number | undefined;
}

export function planCronJob(snapshot: CronSnapshot, context: PlanContext): CronPlan {
  const { cronJob, jobs } = snapshot;
  const events: PlannedEvent[] = [];
  const clean = surplus(cronJob, jobs);
  const status = observedStatus(cronJob, jobs, events);
  const rest = { clean, replace: [], create: undefined, status, events, recheckAfterMs: undefined };
  if (cronJob.metadata?.deletionTimestamp !== undefined || cronJob.spec?.suspend === true) return rest;
  const schedule = scheduleOf(snapshot, events);
  if (schedule === undefined) return rest;
  const next = schedule.next(context.nowMs);
  const recheckAfterMs = next === undefined ? undefined : next - context.nowMs + LATE_MS;
  const due = dueTime(cronJob, schedule, context.nowMs, events);
  if (due === undefined) return { ...rest, recheckAfterMs };
  const active = jobs.filter((job) => status.active?.some((reference) => reference.uid === job.metadata?.uid));
  const create = newJob(cronJob, due);
  if (status.active?.some((reference) => reference.name === create.metadata?.name)) return { ...rest, recheckAfterMs };
  if (cronJob.spec?.concurrencyPolicy === 'Forbid' && (status.active ?? []).length > 0) {
    const message = 'Not starting job because prior execution is running and concurrency policy is Forbid';
    events.push({ type: 'Normal', reason: 'JobAlreadyActive', message });
    return { ...rest, recheckAfterMs };
  }
  const replace = cronJob.spec?.concurrencyPolicy === 'Replace' ? active : [];
  const replacedUids = new Set(replace.map((job) => job.metadata?.uid));
  const kept = (status.active ?? []).filter((reference) => !replacedUids.has(reference.uid));
  const started = withActive({ ...status, lastScheduleTime: timestamp(due) }, kept);
  return { ...rest, replace, create, status: started, recheckAfterMs };
}

function scheduleOf({ cronJob, localZone }: CronSnapshot, events: PlannedEvent[]): Schedule | undefined {
  const text = cronJob.spec?.schedule ?? '';
  const { timeZone } = cronJob.spec ?? {};
  const { zone, schedule } = splitZone(text);
  if (zone !== undefined) {
    const message = `CRON_TZ or TZ used in schedule ${JSON.stringify(text)} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details`;
    events.push({ type: 'Warning', reason: 'UnsupportedSchedule', message });
  }
  try {
    return parseSchedule(schedule, timeZone ?? zone ?? localZone);
  } catch (error) {
    const [reason, what] =
      error instanceof RangeError
        ? ['UnknownTimeZone', `invalid timeZone: ${JSON.stringify(timeZone ?? zone ?? '')}: ${messageOf(error)}`]
        : ['UnparseableSchedule', `unparseable schedule: ${JSON.stringify(text)} : ${messageOf(error)}`];
    events.push({ type: 'Warning', reason, message: what });
    return undefined;
  }
}

/** Last scheduled time that has passed, was not started yet, and may still be started. */
function dueTime(cronJob: CronJob, schedule: Schedule, nowMs: number, events: PlannedEvent[]): number | undefined {
  const { lastScheduleTime } = cronJob.status ?? {};
  const deadline = cronJob.spec?.startingDeadlineSeconds;
  const since = timeMs(lastScheduleTime, timeMs(cronJob.metadata?.creationTimestamp));
  const from = deadline === undefined ? since : Math.max(since, nowMs - deadline * 1000);
  const due = lastTime(schedule, from, nowMs);
  if (due !== undefined && due.count > MANY_MISSED) {
    const message = `too many missed start times: ${due.count}. Set or decrease .spec.startingDeadlineSeconds or check clock skew`;
    events.push({ type: 'Warning', reason: 'TooManyMissedTimes', message });
  }
  return due?.atMs;
}

/**
 * The job for a scheduled time. Its name contains the time, so that two controllers cannot start the same run twice.
 */
function newJob(cronJob: CronJob, dueMs: number): Job {
  const template = cronJob.spec?.jobTemplate;
  const { name = '', namespace = '' } = cronJob.metadata ?? {};
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: `${name}-${Math.floor(dueMs / 60_000)}`,
      namespace,
      ...(template?.metadata?.labels === undefined ? {} : { labels: { ...template.metadata.labels } }),
      annotations: { ...template?.metadata?.annotations, [SCHEDULED]: timestamp(dueMs) },
      ownerReferences: [controllerReference(cronJob, CRON_JOB)],
    },
    ...(template?.spec === undefined ? {} : { spec: template.spec }),
  };
}

type Finish = 'Complete' | 'Failed';

function finishOf(job: Job): Finish | undefined {
  const found = job.status?.conditions?.find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  );
  return found?.type as Finish | undefined;
}

function observedStatus(cronJob: CronJob, jobs: readonly Job[], events: PlannedEvent[]): CronJobStatus {
  const byUid = new Map(jobs.map((job) => [job.metadata?.uid, job]));
  const kept: ObjectReference[] = [];
  for (const reference of cronJob.status?.active ?? []) {
    const job = byUid.get(reference.uid);
    const finish = job === undefined ? undefined : finishOf(job);
    if (job === undefined) {
      events.push({ type: 'Normal', reason: 'MissingJob', message: `Active job went missing: ${reference.name}` });
    } else if (finish !== undefined) {
      const message = `Saw completed job: ${reference.name}, condition: ${finish}`;
      events.push({ type: 'Normal', reason: 'SawCompletedJob', message });
    } else kept.push(reference);
  }
  for (const job of jobs) {
    if (finishOf(job) !== undefined || kept.some((reference) => reference.uid === job.metadata?.uid)) continue;
    const message = `Saw a job that the controller did not create or forgot: ${job.metadata?.name ?? ''}`;
    events.push({ type: 'Warning', reason: 'UnexpectedJob', message });
  }
  const ends = jobs.filter((job) => finishOf(job) === 'Complete').map((job) => timeMs(job.status?.completionTime));
  const lastSuccess = Math.max(timeMs(cronJob.status?.lastSuccessfulTime), ...ends);
  return withActive(
    { ...cronJob.status, ...(lastSuccess > 0 ? { lastSuccessfulTime: timestamp(lastSuccess) } : {}) },
    kept,
  );
}

function withActive({ active: _, ...status }: CronJobStatus, active: readonly ObjectReference[]): CronJobStatus {
  return active.length === 0 ? status : { ...status, active: [...active] };
}

/** Adds a started job to `status.active`. */
export function withStarted(status: CronJobStatus, job: Job): CronJobStatus {
  const { name = '', namespace = '', uid = '', resourceVersion = '' } = job.metadata ?? {};
  const reference = { kind: 'Job', namespace, name, uid, apiVersion: 'batch/v1', resourceVersion };
  return withActive(status, [...(status.active ?? []), reference]);
}

/** The oldest finished jobs beyond the history limits. */
function surplus(cronJob: CronJob, jobs: readonly Job[]): Job[] {
  const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = cronJob.spec ?? {};
  const beyond = (finish: Finish, limit: number | undefined): Job[] => {
    const finished = jobs.filter((job) => finishOf(job) === finish && job.metadata?.deletionTimestamp === undefined);
    if (limit === undefined || finished.length <= limit) return [];
    return finished.sort(byStart).slice(0, finished.length - limit);
  };
  return [...beyond('Complete', successfulJobsHistoryLimit), ...beyond('Failed', failedJobsHistoryLimit)];
}

function byStart(a: Job, b: Job): number {
  const order = timeMs(a.status?.startTime) - timeMs(b.status?.startTime);
  return order !== 0 ? order : (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}
