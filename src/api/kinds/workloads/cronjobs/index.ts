/** Cron jobs. Source: k8s.io/kubernetes/pkg/registry/batch/cronjob, pkg/apis/batch/{v1,validation}. */
import type { CronJob, CronJobSpec } from '../../../generated/batch/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { isNewSpec, podNameWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { ageColumn, column, NONE, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import { since } from '../../../printing/duration.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNonNegative, validateOneOf } from '../../../validation/scalars.ts';
import { setTemplateDefaults } from '../jobs/defaults.ts';
import { validateJobSpec } from '../jobs/validation.ts';
import { jobSpecWarnings } from '../jobs/warnings.ts';
import { scheduleError } from './schedule.ts';

/** Names of created jobs are 11 characters longer and must fit a 63-character label. */
const MAX_NAME = 52;

const ZONE_WARNING =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

const { strategy, statusStrategy } = specStatusStrategies<CronJob>({
  validate: validateCronJob,
  validateCreate: (job) => [
    ...validateName(job),
    ...validateSchedule(job.spec, undefined),
    ...validateTimeZone(job.spec?.timeZone),
  ],
  validateUpdate: (job, old) => [
    ...validateSchedule(job.spec, old.spec),
    ...(job.spec?.timeZone === old.spec?.timeZone ? [] : validateTimeZone(job.spec?.timeZone)),
  ],
  warnings(job, old) {
    const zoned = old !== undefined && (job.spec?.schedule ?? '').includes('TZ');
    return [
      ...podNameWarnings(job, old),
      ...(isNewSpec(job, old) ? jobSpecWarnings(job.spec?.jobTemplate?.spec, 'spec.jobTemplate.spec') : []),
      ...(zoned ? [ZONE_WARNING] : []),
    ];
  },
});

function validateCronJob(job: CronJob): FieldError[] {
  const spec = job.spec;
  const errors: FieldError[] = [];
  errors.push(...validateNonNegative(spec?.startingDeadlineSeconds, 'spec.startingDeadlineSeconds'));
  errors.push(...validateOneOf(spec?.concurrencyPolicy, ['Allow', 'Forbid', 'Replace'], 'spec.concurrencyPolicy'));
  const template = spec?.jobTemplate?.spec;
  errors.push(...validateJobSpec(template, 'spec.jobTemplate.spec'));
  if (template?.manualSelector === true) {
    errors.push(fieldError.notSupported('spec.jobTemplate.spec.manualSelector', true, ['nil', 'false']));
  }
  if (template?.selector !== undefined) {
    errors.push(
      fieldError.invalid('spec.jobTemplate.spec.selector', template.selector, '`selector` will be auto-generated'),
    );
  }
  for (const field of ['successfulJobsHistoryLimit', 'failedJobsHistoryLimit'] as const) {
    errors.push(...validateNonNegative(spec?.[field], `spec.${field}`));
  }
  return errors;
}

function validateName(job: CronJob): FieldError[] {
  const name = job.metadata?.name ?? '';
  if (name.length <= MAX_NAME) return [];
  return [fieldError.invalid('metadata.name', name, `must be no more than ${MAX_NAME} characters`)];
}

/** A TZ prefix in the schedule predates `timeZone`. It is rejected for new objects and kept on update. */
function validateSchedule(spec: CronJobSpec | undefined, old: CronJobSpec | undefined): FieldError[] {
  const path = 'spec.schedule';
  const schedule = spec?.schedule ?? '';
  if (schedule === '') return [fieldError.required(path)];
  const zoned = schedule.includes('TZ');
  const error = scheduleError(zoned ? schedule.replace(/^(?:CRON_)?TZ=\S*\s+/, '') : schedule);
  const errors = error === undefined ? [] : [fieldError.invalid(path, schedule, error)];
  if (!zoned) return errors;
  if (old?.schedule?.includes('TZ') !== true) {
    errors.push(fieldError.invalid(path, schedule, 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'));
  } else if (spec?.timeZone !== undefined) {
    errors.push(fieldError.invalid(path, schedule, 'cannot use both timeZone field and TZ or CRON_TZ in schedule'));
  }
  return errors;
}

function validateTimeZone(zone: string | undefined): FieldError[] {
  const path = 'spec.timeZone';
  if (zone === undefined) return [];
  if (zone === '') return [fieldError.invalid(path, zone, 'timeZone must be nil or non-empty string')];
  if (zone.toLowerCase() === 'local') {
    return [
      fieldError.invalid(
        path,
        zone,
        'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
      ),
    ];
  }
  return isTimeZone(zone) ? [] : [fieldError.invalid(path, zone, `unknown time zone ${zone}`)];
}

function isTimeZone(zone: string): boolean {
  // Upstream does not accept UTC offsets as time zones, but Intl does.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(zone)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

export const cronJobs: KindDefinition<CronJob> = {
  group: 'batch',
  version: 'v1',
  kind: 'CronJob',
  plural: 'cronjobs',
  singular: 'cronjob',
  listKind: 'CronJobList',
  namespaced: true,
  shortNames: ['cj'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.batch.v1.CronJob',
  skeleton: {
    spec: { jobTemplate: { metadata: {}, spec: { template: { metadata: {}, spec: { containers: null } } } } },
    status: {},
  },
  storagePrefix: 'cronjobs',
  aliases: [sameShape('batch', 'v1beta1', '1.21', '1.25')],
  setDefaults(job) {
    job.spec ??= { schedule: '', jobTemplate: {} };
    const spec = job.spec;
    if (!isSet(spec.concurrencyPolicy)) spec.concurrencyPolicy = 'Allow';
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= 3;
    spec.failedJobsHistoryLimit ??= 1;
    spec.jobTemplate ??= {};
    spec.jobTemplate.spec ??= { template: {} };
    setTemplateDefaults(spec.jobTemplate.spec);
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<CronJob>('Schedule', 'Schedule of the jobs.', (job) => job.spec?.schedule ?? ''),
    column<CronJob>('Timezone', 'The time zone of the schedule.', (job) => job.spec?.timeZone ?? NONE),
    column<CronJob>('Suspend', 'Whether the cron job is suspended.', (job) =>
      job.spec?.suspend === undefined ? '<unset>' : job.spec.suspend ? 'True' : 'False',
    ),
    column<CronJob>('Active', 'Number of active jobs.', (job) => job.status?.active?.length ?? 0, {
      type: 'integer',
    }),
    column<CronJob>('Last Schedule', 'Time since the last job was created.', (job, nowMs) =>
      job.status?.lastScheduleTime === undefined ? NONE : since(job.status.lastScheduleTime, nowMs),
    ),
    ageColumn,
    ...workloadColumns<CronJob>(
      (job) => job.spec?.jobTemplate?.spec?.template,
      (job) => selectorText(job.spec?.jobTemplate?.spec?.selector),
    ),
  ],
};
