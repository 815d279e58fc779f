/** Jobs. Source: k8s.io/kubernetes/pkg/registry/batch/job, pkg/apis/batch/v1 defaults, pkg/printers/internalversion. */
import type { Job } from '../../../generated/batch/v1.ts';
import { ageColumn, column, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import { humanDuration } from '../../../printing/duration.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../registry/strategies.ts';
import { setJobSpecDefaults } from './defaults.ts';
import { NAME_LABELS, UID_LABEL, UID_LABELS } from './labels.ts';
import { hasCondition, validateJobStatus } from './status.ts';
import { validateJob, validateJobCreate, validateJobUpdate } from './validation.ts';
import { jobWarnings } from './warnings.ts';

const { strategy, statusStrategy } = specStatusStrategies<Job>({
  prepareForCreate(job) {
    if (job.spec?.manualSelector !== true) generateSelector(job);
  },
  validate: validateJob,
  validateCreate: validateJobCreate,
  validateUpdate: validateJobUpdate,
  validateStatusUpdate: validateJobStatus,
  warnings: jobWarnings,
});

/** Makes the job select its pods by its UID, so that two jobs never select the same pods. */
function generateSelector(job: Job): void {
  const { name = '', uid = '' } = job.metadata ?? {};
  const spec = job.spec;
  if (spec === undefined) return;
  spec.template ??= {};
  spec.template.metadata ??= {};
  spec.template.metadata.labels ??= {};
  const { labels } = spec.template.metadata;
  for (const label of NAME_LABELS) labels[label] ??= name;
  for (const label of UID_LABELS) labels[label] ??= uid;
  // A job without other labels gets those of its pod template, as in upstream's defaults.
  const own = Object.entries(job.metadata?.labels ?? {});
  if (own.every(([label, value]) => labels[label] === value)) metadataOf(job).labels = { ...labels };
  spec.selector ??= {};
  spec.selector.matchLabels ??= {};
  spec.selector.matchLabels[UID_LABEL] ??= uid;
}

function statusText(job: Job): string {
  if (hasCondition(job, 'Complete')) return 'Complete';
  if (hasCondition(job, 'Failed')) return 'Failed';
  if (job.metadata?.deletionTimestamp !== undefined) return 'Terminating';
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find((type) => hasCondition(job, type)) ?? 'Running';
}

function completionsText(job: Job): string {
  const { completions, parallelism = 0 } = job.spec ?? {};
  const succeeded = job.status?.succeeded ?? 0;
  if (completions !== undefined) return `${succeeded}/${completions}`;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationText(job: Job, nowMs: number): string {
  const { startTime, completionTime } = job.status ?? {};
  if (startTime === undefined) return '';
  return humanDuration((completionTime === undefined ? nowMs : Date.parse(completionTime)) - Date.parse(startTime));
}

/** Upstream's warning. Source: k8s.io/kubernetes/pkg/registry/batch/job/storage. */
const ORPHANED_PODS =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';

export const jobs: KindDefinition<Job> = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  singular: 'job',
  listKind: 'JobList',
  namespaced: true,
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.batch.v1.Job',
  skeleton: { spec: { template: { metadata: {}, spec: { containers: null } } }, status: {} },
  storagePrefix: 'jobs',
  // Upstream keeps the behaviour from before garbage collection: pods are orphaned by default.
  defaultPropagation: 'Orphan',
  warningsOnDelete: (propagation) => (propagation === undefined ? [ORPHANED_PODS] : []),
  unknownFieldLabel: (field) => `field label ${JSON.stringify(field)} not supported for Job`,
  setDefaults(job) {
    job.spec ??= { template: {} };
    setJobSpecDefaults(job.spec);
    job.spec.manualSelector ??= false;
    const labels = job.spec.template?.metadata?.labels;
    if (
      labels !== undefined &&
      Object.keys(job.metadata?.labels ?? {}).length === 0 &&
      Object.keys(labels).length > 0
    ) {
      metadataOf(job).labels = { ...labels };
    }
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Job>('Status', 'State of the job.', statusText),
    column<Job>('Completions', 'Completed pods out of the desired completions.', completionsText),
    column<Job>('Duration', 'Duration of the job.', durationText),
    ageColumn,
    ...workloadColumns<Job>(
      (job) => job.spec?.template,
      (job) => selectorText(job.spec?.selector),
    ),
  ],
  fieldSelectors: { 'status.successful': (job) => String(job.status?.succeeded ?? 0) },
};
