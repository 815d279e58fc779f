/** Jobs: the pods to create, delete and count, and the status. Source: upstream's pkg/controller/job. */

import type { Job, JobCondition, JobStatus } from '../../../api/generated/batch/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { omitEmpty } from '../../../base/json/omit-fields.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { isPodReady, podsToDelete } from '../../framework/core/pods.ts';
import { type Backoff, nextBackoff, remainingMs } from './backoff.ts';
import { Indexes } from './indexes.ts';
import {
  deadlineInMs,
  isJobFinished,
  isSuspended,
  jobCondition,
  newCondition,
  type Outcome,
  outcomeOf,
} from './outcome.ts';
import { failuresBefore, finishedMs, indexOf, isPodFailed, jobPod, replacesOnlyFailed, uidOf } from './pod.ts';
import { failureTotal, JobProgress, type JobSnapshot } from './progress.ts';

export interface JobPlan {
  readonly create: readonly Pod[];
  /**
   * `uncounted` means that the job itself deletes the pod, which is not a failure. The pod's finalizer is removed
   * first.
   */
  readonly delete: readonly { readonly pod: Pod; readonly uncounted: boolean }[];
  /** New status, which must be written before any finalizer is removed. Undefined if unchanged. */
  readonly status: JobStatus | undefined;
  readonly removeFinalizers: readonly Pod[];
  readonly events: readonly PlannedEvent[];
  /** New back-off record, which is valid once the status is written. */
  readonly backoff: Backoff;
  readonly recheckAfterMs: number | undefined;
}

/** Upstream's limits on pods created or deleted, and on UIDs kept in the status, per plan. */
const BURST = 500;
const MAX_UNCOUNTED = 500;

export function planJob(snapshot: JobSnapshot, record: Backoff, context: PlanContext): JobPlan {
  const { job } = snapshot;
  const { nowMs } = context;
  const progress = new JobProgress(snapshot);
  if (isJobFinished(job)) {
    const idle = { create: [], delete: [], status: undefined, events: [], recheckAfterMs: undefined };
    return { ...idle, removeFinalizers: progress.tracked, backoff: record };
  }
  const backoff = nextBackoff(record, progress.newSucceeded, progress.newFailed);
  const outcome = outcomeOf(progress, nowMs);
  const draft: Draft = { create: [], delete: [], events: [], waitMs: deadlineInMs(job, nowMs) };
  const isManaged = outcome === undefined && snapshot.settled && job.metadata?.deletionTimestamp === undefined;
  if (outcome !== undefined) draft.delete = progress.active.map((pod) => ({ pod, uncounted: false }));
  else if (isManaged) planPods(progress, backoff, nowMs, draft);
  const finished = count(progress, outcome);
  const status = nextStatus(progress, outcome, finished, isManaged, draft.events, nowMs);
  return {
    create: draft.create,
    delete: draft.delete,
    status: job.status !== undefined && equalIgnoringEmptyLists(job.status, status) ? undefined : status,
    removeFinalizers: finished.remove,
    events: draft.events,
    backoff,
    recheckAfterMs: draft.waitMs,
  };
}

interface Draft {
  create: Pod[];
  delete: { readonly pod: Pod; readonly uncounted: boolean }[];
  readonly events: PlannedEvent[];
  waitMs: number | undefined;
}

function planPods(progress: JobProgress, backoff: Backoff, nowMs: number, draft: Draft): void {
  const { job, active } = progress;
  const isGone = (pods: readonly Pod[]): void => {
    draft.delete = pods.slice(0, BURST).map((pod) => ({ pod, uncounted: true }));
  };
  if (isSuspended(job)) {
    isGone(active);
    return;
  }
  const wanted = wantedActive(progress);
  const surplus = surplusOf(progress, Math.max(0, active.length - wanted), nowMs);
  if (surplus.length > 0) {
    isGone(surplus);
    return;
  }
  const blocked = replacesOnlyFailed(job) ? progress.terminating.length : 0;
  const missing = Math.min(wanted - active.length - blocked, BURST);
  if (missing <= 0) return;
  if (job.spec?.backoffLimitPerIndex !== undefined) {
    createIndexes(progress, missing, nowMs, draft);
    return;
  }
  const waitMs = remainingMs(backoff, nowMs);
  if (waitMs > 0) {
    draft.waitMs = Math.min(draft.waitMs ?? waitMs, waitMs);
    return;
  }
  if (progress.indexed)
    draft.create = [...freeIndexes(progress).take(missing)].map((index) => jobPod(job, index, undefined));
  else draft.create = Array.from({ length: missing }, () => jobPod(job, undefined, undefined));
}

function wantedActive(progress: JobProgress): number {
  const { job, active, parallelism, succeeded, failedIndexes } = progress;
  const { completions } = job.spec ?? {};
  // A job without `completions` is a work queue: after the first success no more pods are started.
  if (completions === undefined) return succeeded > 0 ? Math.min(active.length, parallelism) : parallelism;
  return Math.max(0, Math.min(parallelism, completions - succeeded - failedIndexes.total));
}

/** Pods to delete. Pods without a valid index and duplicates of an index come first. */
function surplusOf(progress: JobProgress, count: number, nowMs: number): Pod[] {
  const { active, indexed, completions } = progress;
  if (!indexed) return podsToDelete(active, active, count, nowMs);
  const byIndex = new Map<number, Pod[]>();
  const doomed: Pod[] = [];
  for (const pod of active) {
    const index = indexOf(pod);
    const same = index === undefined ? undefined : byIndex.get(index);
    if (index === undefined || index >= completions) doomed.push(pod);
    else if (same === undefined) byIndex.set(index, [pod]);
    else same.push(pod);
  }
  const left: Pod[] = [];
  for (const pods of byIndex.values()) {
    const second = new Set(podsToDelete(pods, pods, pods.length - 1, nowMs));
    for (const pod of pods) (second.has(pod) ? doomed : left).push(pod);
  }
  if (doomed.length >= count) return doomed;
  return [...doomed, ...podsToDelete(left, left, count - doomed.length, nowMs)];
}

/** Indexes that have not finished and have no pod, ascending. */
function freeIndexes(progress: JobProgress): IteratorObject<number> {
  const { job, active, terminating } = progress;
  const busy = [...active, ...(replacesOnlyFailed(job) ? terminating : [])]
    .map(indexOf)
    .filter((index) => index !== undefined);
  return progress.succeededIndexes.union(progress.failedIndexes).union(Indexes.of(busy)).missing(progress.completions);
}

/**
 * Creates pods for indexes. Each index has its own back-off, and the next pod of an index carries the number of
 * failures.
 */
function createIndexes(progress: JobProgress, count: number, nowMs: number, draft: Draft): void {
  const { job, lastFailed } = progress;
  const ready: number[] = [];
  for (const index of freeIndexes(progress)) {
    const last = lastFailed.get(index);
    const waitMs =
      last === undefined
        ? 0
        : remainingMs({ failures: failureTotal(last) + 1, lastFailureMs: finishedMs(last) }, nowMs);
    if (waitMs > 0) draft.waitMs = Math.min(draft.waitMs ?? waitMs, waitMs);
    else ready.push(index);
    if (ready.length === count) break;
  }
  draft.create = ready.map((index) => {
    const last = lastFailed.get(index);
    if (last === undefined) return jobPod(job, index, { counted: 0, ignored: 0 });
    const { counted, ignored } = failuresBefore(last);
    const isCounted = progress.failureDecision(last).counts;
    return jobPod(job, index, { counted: counted + Number(isCounted), ignored: ignored + Number(!isCounted) });
  });
}

interface FinishedPods {
  readonly remove: Pod[];
  readonly succeeded: string[];
  readonly failed: string[];
}

/** Counts finished pods. In a failed job, all pods that have not succeeded count as failed. */
function count(progress: JobProgress, outcome: Outcome | undefined): FinishedPods {
  const { job, uncounted } = progress;
  const finished: FinishedPods = { remove: [], succeeded: [...uncounted.succeeded], failed: [...uncounted.failed] };
  const known = new Set([...uncounted.succeeded, ...uncounted.failed]);
  for (const pod of progress.tracked) {
    const isFailed = isPodFailed(pod, job);
    const isSucceeded = pod.status?.phase === 'Succeeded';
    const isOver = outcome !== undefined || job.metadata?.deletionTimestamp !== undefined;
    const index = indexOf(pod);
    const carriesFailures = index !== undefined && progress.lastFailed.get(index) === pod;
    if (!isOver && !isSucceeded && (!isFailed || carriesFailures)) continue;
    finished.remove.push(pod);
    const hasPlace = !progress.indexed || (index !== undefined && index < progress.completions);
    if (known.has(uidOf(pod)) || !hasPlace) continue;
    if (isSucceeded) {
      if (!progress.indexed) finished.succeeded.push(uidOf(pod));
    } else if (isFailed ? progress.failureDecision(pod).counts : outcome?.type === 'FailureTarget') {
      finished.failed.push(uidOf(pod));
    }
    if (finished.succeeded.length + finished.failed.length >= MAX_UNCOUNTED) break;
  }
  return finished;
}

function nextStatus(
  progress: JobProgress,
  outcome: Outcome | undefined,
  finished: FinishedPods,
  isManaged: boolean,
  events: PlannedEvent[],
  nowMs: number,
): JobStatus {
  const { job, counted, indexed } = progress;
  const old = job.status ?? {};
  const conditions: JobCondition[] = [...(old.conditions ?? [])];
  let startTime = old.startTime ?? (isSuspended(job) ? undefined : timestamp(nowMs));
  if (isManaged && suspend(job, conditions, events, nowMs) === 'resumed') startTime = timestamp(nowMs);
  if (outcome !== undefined && jobCondition(job, outcome.type)?.status !== 'True') {
    conditions.push(newCondition(outcome.type, 'True', outcome.reason, outcome.message, nowMs));
  }
  const hasUncounted = finished.succeeded.length + finished.failed.length > 0;
  const isOver =
    outcome !== undefined &&
    progress.active.length + progress.terminating.length === 0 &&
    finished.remove.length === 0 &&
    !hasUncounted;
  if (isOver) conclude(progress, outcome, conditions, events, nowMs);
  return {
    ...omitEmpty({
      conditions,
      startTime: startTime ?? (isOver ? timestamp(nowMs) : undefined),
      completionTime: isOver && outcome.type === 'SuccessCriteriaMet' ? timestamp(nowMs) : undefined,
      active: progress.active.length,
      succeeded: indexed ? progress.succeededIndexes.total : counted.succeeded,
      failed: counted.failed,
    }),
    terminating: progress.terminating.length,
    ...omitEmpty({ completedIndexes: progress.succeededIndexes.toString() }),
    ...(job.spec?.backoffLimitPerIndex === undefined ? {} : { failedIndexes: progress.failedIndexes.toString() }),
    uncountedTerminatedPods: omitEmpty({ succeeded: finished.succeeded, failed: finished.failed }),
    ready: progress.active.filter(isPodReady).length,
  };
}

function conclude(
  { job, succeeded }: JobProgress,
  { type, reason, message }: Outcome,
  conditions: JobCondition[],
  events: PlannedEvent[],
  nowMs: number,
): void {
  if (type === 'FailureTarget') {
    conditions.push(newCondition('Failed', 'True', reason, message, nowMs));
    events.push({ type: 'Warning', reason, message });
    return;
  }
  conditions.push(newCondition('Complete', 'True', reason, message, nowMs));
  if (job.spec?.completions !== undefined && succeeded > job.spec.completions) {
    events.push({
      type: 'Warning',
      reason: 'TooManySucceededPods',
      message: 'Too many succeeded pods running after completion count reached',
    });
  }
  events.push({ type: 'Normal', reason: 'Completed', message: 'Job completed' });
}

/** Maintains the Suspended condition. A job that was never suspended has none. */
function suspend(job: Job, conditions: JobCondition[], events: PlannedEvent[], nowMs: number): 'resumed' | undefined {
  const at = conditions.findIndex((condition) => condition.type === 'Suspended');
  const status = isSuspended(job) ? 'True' : 'False';
  if (conditions[at]?.status === status || (at < 0 && status === 'False')) return undefined;
  const [reason, message] = status === 'True' ? ['JobSuspended', 'Job suspended'] : ['JobResumed', 'Job resumed'];
  const condition = newCondition('Suspended', status, reason, message, nowMs);
  if (at < 0) conditions.push(condition);
  else conditions[at] = condition;
  events.push({ type: 'Normal', reason: status === 'True' ? 'Suspended' : 'Resumed', message });
  return status === 'False' ? 'resumed' : undefined;
}
