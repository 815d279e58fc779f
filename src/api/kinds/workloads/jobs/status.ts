/**
 * Validation of status updates of jobs. Source: k8s.io/kubernetes/pkg/apis/batch/validation, pkg/registry/batch/job.
 */
import type { Job, JobStatus } from '../../../generated/batch/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError, OMITTED } from '../../../meta/field-error.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';
import { overlapOf, parseIndexes } from './indexes.ts';

const COUNTS = ['active', 'succeeded', 'failed', 'ready', 'terminating'] as const;
const INDEXES = ['completedIndexes', 'failedIndexes'] as const;
const CONDITIONS = 'status.conditions';

export function hasCondition(job: Job, type: string): boolean {
  return (job.status?.conditions ?? []).some((each) => each.type === type && each.status === 'True');
}

const isFinished = (job: Job): boolean => hasCondition(job, 'Complete') || hasCondition(job, 'Failed');

export function validateJobStatus(job: Job, old: Job): FieldError[] {
  const status = job.status ?? {};
  return [
    ...COUNTS.flatMap((field) => validateNonNegative(status[field], `status.${field}`)),
    ...validateUncounted(status),
    ...validateConditions(job, old),
    ...validateTimes(job, old),
    ...validateFinished(job, old),
    ...validateIndexes(job, old),
    ...(isTracked(job, old) ? validateProgress(job, old) : []),
  ];
}

/**
 * Whether the job controller tracks pods with finalizers. Controllers before 1.23 count the existing pods, so their
 * counts may decrease and uncountedTerminatedPods is absent.
 */
const isTracked = (job: Job, old: Job): boolean =>
  job.spec?.managedBy !== undefined ||
  job.status?.uncountedTerminatedPods !== undefined ||
  old.status?.uncountedTerminatedPods !== undefined;

function validateUncounted(status: JobStatus): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  for (const field of ['succeeded', 'failed'] as const) {
    (status.uncountedTerminatedPods?.[field] ?? []).forEach((uid, index) => {
      const at = `status.uncountedTerminatedPods.${field}[${index}]`;
      if (uid === '') errors.push(fieldError.invalid(at, uid, 'must not be empty'));
      else if (seen.has(uid)) errors.push(fieldError.duplicate(at, uid));
      else seen.add(uid);
    });
  }
  return errors;
}

/** Rejects conditions that exclude each other, and the removal of terminal conditions. */
function validateConditions(job: Job, old: Job): FieldError[] {
  if (semanticEqual(job.status?.conditions, old.status?.conditions)) return [];
  const errors: FieldError[] = [];
  const refuse = (why: string): void => {
    errors.push(fieldError.invalid(CONDITIONS, OMITTED, why));
  };
  const is = (type: string): boolean => hasCondition(job, type);
  for (const type of ['Failed', 'Complete', 'FailureTarget']) {
    if (hasCondition(old, type) && !is(type)) refuse(`cannot disable the terminal ${type}=True condition`);
  }
  if (is('Complete')) {
    if (is('Failed')) refuse('cannot set Complete=True and Failed=true conditions');
    if (is('FailureTarget')) refuse('cannot set Complete=True and FailureTarget=true conditions');
    if (job.spec?.successPolicy !== undefined && !is('SuccessCriteriaMet')) {
      refuse('cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True');
    }
  }
  if (hasCondition(old, 'SuccessCriteriaMet') && !is('SuccessCriteriaMet')) {
    refuse('cannot disable the SuccessCriteriaMet=True condition');
  }
  if (is('SuccessCriteriaMet')) {
    for (const type of ['Failed', 'FailureTarget']) {
      if (is(type)) refuse(`cannot set SuccessCriteriaMet=True and ${type}=true conditions`);
    }
    if (hasCondition(old, 'Complete') && !hasCondition(old, 'SuccessCriteriaMet')) {
      refuse('cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions');
    }
  }
  return errors;
}

function validateTimes(job: Job, old: Job): FieldError[] {
  const { startTime, completionTime } = job.status ?? {};
  const before = old.status ?? {};
  const path = 'status.completionTime';
  const complete = hasCondition(job, 'Complete');
  const errors: FieldError[] = [];
  const changed = completionTime !== before.completionTime;
  if (before.startTime !== undefined && startTime !== before.startTime && job.spec?.suspend !== true) {
    errors.push(fieldError.required('status.startTime', 'startTime cannot be removed for unsuspended job'));
  }
  if (changed && completionTime !== undefined && !complete) {
    errors.push(
      fieldError.invalid(path, completionTime, 'cannot set completionTime when there is no Complete=True condition'),
    );
  }
  if (complete && completionTime === undefined && (changed || !hasCondition(old, 'Complete'))) {
    errors.push(fieldError.required(path, 'completionTime is required for Complete jobs'));
  }
  if (changed && before.completionTime !== undefined && completionTime !== undefined) {
    errors.push(fieldError.invalid(path, completionTime, 'completionTime cannot be mutated'));
  }
  if ((changed || startTime !== before.startTime) && completionTime !== undefined && startTime !== undefined) {
    if (Date.parse(completionTime) < Date.parse(startTime)) {
      errors.push(fieldError.invalid(path, completionTime, 'completionTime cannot be set before startTime'));
    }
  }
  return errors;
}

function validateFinished(job: Job, old: Job): FieldError[] {
  if (!isFinished(job)) return [];
  const status = job.status ?? {};
  const now = !isFinished(old);
  const errors: FieldError[] = [];
  if ((now || status.active !== old.status?.active) && (status.active ?? 0) > 0) {
    errors.push(fieldError.invalid('status.active', status.active, 'active>0 is invalid for finished job'));
  }
  if ((now || status.startTime !== old.status?.startTime) && status.startTime === undefined) {
    errors.push(fieldError.required('status.startTime', 'startTime is required for finished job'));
  }
  const uncounted = status.uncountedTerminatedPods;
  if ((uncounted?.failed ?? []).length + (uncounted?.succeeded ?? []).length > 0) {
    const path = 'status.uncountedTerminatedPods';
    errors.push(fieldError.invalid(path, uncounted, 'uncountedTerminatedPods needs to be empty for finished job'));
  }
  return errors;
}

function validateIndexes(job: Job, old: Job): FieldError[] {
  const status = job.status ?? {};
  const spec = job.spec;
  const changed = INDEXES.filter((field) => status[field] !== old.status?.[field]);
  const errors: FieldError[] = [];
  if (
    changed.includes('completedIndexes') &&
    spec?.completionMode !== 'Indexed' &&
    (status.completedIndexes ?? '') !== ''
  ) {
    const why = 'cannot set non-empty completedIndexes when non-indexed completion mode';
    errors.push(fieldError.invalid('status.completedIndexes', status.completedIndexes, why));
  }
  if (
    changed.includes('failedIndexes') &&
    spec?.backoffLimitPerIndex === undefined &&
    status.failedIndexes !== undefined
  ) {
    const why = 'cannot set non-null failedIndexes when backoffLimitPerIndex is null';
    errors.push(fieldError.invalid('status.failedIndexes', status.failedIndexes, why));
  }
  if (changed.length === 0 || spec?.completions === undefined) return errors;
  const [completed, failed] = INDEXES.map((field) => {
    const parsed = parseIndexes(status[field] ?? '', spec.completions ?? 0);
    if (typeof parsed === 'object') return parsed;
    if (changed.includes(field)) {
      errors.push(fieldError.invalid(`status.${field}`, status[field], `error parsing ${field}: ${parsed}`));
    }
    return undefined;
  });
  const both = completed === undefined || failed === undefined ? undefined : overlapOf(failed, completed);
  if (both !== undefined) {
    const why = `failedIndexes and completedIndexes overlap at index: ${both}`;
    errors.push(fieldError.invalid('status.failedIndexes', status.failedIndexes, why));
  }
  return errors;
}

/** Rules for controllers that count every pod once: counters never decrease, and terminal conditions come last. */
function validateProgress(job: Job, old: Job): FieldError[] {
  const status = job.status ?? {};
  const before = old.status ?? {};
  const { completions, parallelism, completionMode } = job.spec ?? {};
  const errors: FieldError[] = [];
  const falls = (field: 'failed' | 'succeeded'): boolean => (status[field] ?? 0) < (before[field] ?? 0);
  if (falls('failed')) {
    errors.push(fieldError.invalid('status.failed', status.failed ?? 0, 'cannot decrease the failed counter'));
  }
  const newly = (type: string): boolean => hasCondition(job, type) && !hasCondition(old, type);
  for (const [type, first] of [
    ['Failed', 'FailureTarget'],
    ['Complete', 'SuccessCriteriaMet'],
  ] as const) {
    if (!newly(type) || hasCondition(job, first)) continue;
    const why = `cannot set ${type}=True condition without the ${first}=true condition`;
    errors.push(fieldError.invalid(CONDITIONS, OMITTED, why));
  }
  if (isFinished(job) && (status.terminating ?? 0) > 0 && status.terminating !== before.terminating) {
    errors.push(
      fieldError.invalid('status.terminating', status.terminating, 'terminating>0 is invalid for finished job'),
    );
  }
  if (
    (status.ready ?? 0) > (status.active ?? 0) &&
    (status.ready !== before.ready || status.active !== before.active)
  ) {
    errors.push(fieldError.invalid('status.ready', status.ready, 'cannot set more ready pods than active'));
  }
  // A scaled-down Indexed job drops the indexes that it no longer has, so its counter may decrease.
  if (falls('succeeded') && !(completionMode === 'Indexed' && completions === parallelism)) {
    errors.push(fieldError.invalid('status.succeeded', status.succeeded ?? 0, 'cannot decrease the succeeded counter'));
  }
  return errors;
}
