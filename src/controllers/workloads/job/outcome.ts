/**
 * Whether a job has failed or succeeded, with the resulting conditions. Source: upstream's job_controller.go syncJob.
 */

import type { Job, JobCondition } from '../../../api/generated/batch/v1.ts';
import { timeMs, timestamp } from '../../../base/time/timestamps.ts';
import { metSuccessPolicy } from './policies.ts';
import type { JobProgress } from './progress.ts';

export interface Outcome {
  readonly type: 'FailureTarget' | 'SuccessCriteriaMet';
  readonly reason: string;
  readonly message: string;
}

export function jobCondition(job: Job, type: string): JobCondition | undefined {
  return job.status?.conditions?.find((condition) => condition.type === type);
}

const holds = (job: Job, type: string): boolean => jobCondition(job, type)?.status === 'True';

export const isJobFinished = (job: Job): boolean => holds(job, 'Complete') || holds(job, 'Failed');
export const isSuspended = (job: Job): boolean => job.spec?.suspend === true;

/** Outcome of the job; undefined while the job continues or waits for its last pods. */
export function outcomeOf(progress: JobProgress, nowMs: number): Outcome | undefined {
  const { job } = progress;
  for (const type of ['FailureTarget', 'SuccessCriteriaMet'] as const) {
    const { status, reason = '', message = '' } = jobCondition(job, type) ?? {};
    if (status === 'True') return { type, reason, message };
  }
  return failureOf(progress, nowMs) ?? indexFailureOf(progress) ?? successOf(progress);
}

const failure = (reason: string, message: string): Outcome => ({ type: 'FailureTarget', reason, message });

function failureOf(progress: JobProgress, nowMs: number): Outcome | undefined {
  const { job } = progress;
  const rule = progress.newFailed.map((pod) => progress.failureDecision(pod)).find((each) => each.action === 'FailJob');
  if (rule !== undefined) return failure('PodFailurePolicy', rule.message);
  if (progress.failed > (job.spec?.backoffLimit ?? 6) || hasRestartedTooOften(progress)) {
    return failure('BackoffLimitExceeded', 'Job has reached the specified backoff limit');
  }
  if (deadlineInMs(job, nowMs) === 0) {
    return failure('DeadlineExceeded', 'Job was active longer than specified deadline');
  }
  return undefined;
}

/**
 * Whether containers have restarted more often than the job's limit. With OnFailure, restarts of a container within its
 * pod count as failures of the job.
 */
function hasRestartedTooOften({ job, active }: JobProgress): boolean {
  if (job.spec?.template.spec?.restartPolicy !== 'OnFailure') return false;
  let restarts = 0;
  for (const pod of active) {
    const { phase, containerStatuses = [], initContainerStatuses = [] } = pod.status ?? {};
    if (phase !== 'Running' && phase !== 'Pending') continue;
    for (const status of [...containerStatuses, ...initContainerStatuses]) restarts += status.restartCount;
  }
  const limit = job.spec.backoffLimit ?? 6;
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

function indexFailureOf({ job, completions, succeededIndexes, failedIndexes }: JobProgress): Outcome | undefined {
  const { maxFailedIndexes } = job.spec ?? {};
  if (maxFailedIndexes !== undefined && failedIndexes.total > maxFailedIndexes) {
    return failure('MaxFailedIndexesExceeded', 'Job has exceeded the specified maximal number of failed indexes');
  }
  if (failedIndexes.total > 0 && failedIndexes.total + succeededIndexes.total >= completions) {
    return failure('FailedIndexes', 'Job has failed indexes');
  }
  return undefined;
}

function successOf(progress: JobProgress): Outcome | undefined {
  const { job, succeeded, active } = progress;
  const message = metSuccessPolicy(job, progress.succeededIndexes);
  if (message !== undefined) return { type: 'SuccessCriteriaMet', reason: 'SuccessPolicy', message };
  if (active.length > 0) return undefined;
  const isComplete = job.spec?.completions === undefined ? succeeded > 0 : succeeded >= job.spec.completions;
  if (!isComplete) return undefined;
  const reached = 'Reached expected number of succeeded pods';
  return { type: 'SuccessCriteriaMet', reason: 'CompletionsReached', message: reached };
}

/**
 * Milliseconds until the job's deadline; 0 if it has passed. Undefined if the job has no deadline or is not running.
 */
export function deadlineInMs(job: Job, nowMs: number): number | undefined {
  const seconds = job.spec?.activeDeadlineSeconds;
  const { startTime } = job.status ?? {};
  // Until the plan of a resumed job sets a new start time, the status contains the one from before the suspension.
  if (seconds === undefined || startTime === undefined || isSuspended(job) || holds(job, 'Suspended')) return undefined;
  return Math.max(0, timeMs(startTime) + seconds * 1000 - nowMs);
}

export function newCondition(
  type: string,
  status: 'True' | 'False',
  reason: string,
  message: string,
  nowMs: number,
): JobCondition {
  const now = timestamp(nowMs);
  return { type, status, reason, message, lastProbeTime: now, lastTransitionTime: now };
}
