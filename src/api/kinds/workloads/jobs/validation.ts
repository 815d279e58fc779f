/** Validation of jobs. Source: k8s.io/kubernetes/pkg/apis/batch/validation. */

import { dns1123LabelErrors } from '../../../../base/names.ts';
import { labelSelectorOf, matchesLabels } from '../../../../base/selector.ts';
import type { Job, JobSpec } from '../../../generated/batch/v1.ts';
import type { PodSpec } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { validatePodTemplate } from '../../../podspec/validate.ts';
import { validateDomainPath } from '../../../validation/domain-path.ts';
import { validateNonNegative, validateOptionalOneOf } from '../../../validation/scalars.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';
import { NAME_LABELS, UID_LABELS } from './labels.ts';
import { validatePodFailurePolicy, validateSuccessPolicy } from './policies.ts';

/** Limits for Indexed jobs, because the status lists every index. */
const MAX_INDEXED_PARALLELISM = 100_000;
const MAX_WITH_MANY_INDEXES = 10_000;
const MAX_CONTROLLER_NAME = 63;

export function validateJob(job: Job): FieldError[] {
  const errors = validateJobSpec(job.spec, 'spec');
  errors.push(...validateSelector(job.spec));
  const completions = job.spec?.completions ?? 0;
  if (job.spec?.completionMode === 'Indexed' && completions > 0) {
    const name = job.metadata?.name ?? '';
    const hostname = `${name}-${completions - 1}`;
    if (dns1123LabelErrors(hostname).length > 0) {
      errors.push(
        fieldError.invalid('metadata.name', name, `will not able to create pod with invalid DNS label: ${hostname}`),
      );
    }
  }
  return errors;
}

export function validateJobCreate(job: Job): FieldError[] {
  return validateGenerated(job, true);
}

/**
 * Validates that a generated selector is unchanged. `prefixed` is false for jobs created before 1.27, which have only
 * the labels without a prefix.
 */
function validateGenerated(job: Job, prefixed: boolean): FieldError[] {
  const spec = job.spec;
  if (spec?.manualSelector === true || spec?.selector === undefined) return [];
  const { uid = '', name = '' } = job.metadata ?? {};
  const labels = spec.template?.metadata?.labels;
  const wanted: [key: string, value: string][] = [UID_LABELS, NAME_LABELS].flatMap((keys, index) =>
    keys
      .filter((key) => prefixed || !key.includes('/'))
      .map((key): [string, string] => [key, index === 0 ? uid : name]),
  );
  const errors = wanted.flatMap(([key, value]) => {
    const at = `spec.template.metadata.labels[${key}]`;
    const why = `must be '${value}'`;
    const found = labels?.[key];
    if (found === undefined) return [fieldError.required(at, why)];
    return found === value ? [] : [fieldError.invalid(at, labels, why)];
  });
  if (validateLabelSelector(spec.selector, 'spec.selector').length > 0) return errors;
  if (!matchesLabels(labelSelectorOf(spec.selector), Object.fromEntries(wanted))) {
    errors.push(fieldError.invalid('spec.selector', spec.selector, '`selector` not auto-generated'));
  }
  return errors;
}

function validateSelector(spec: JobSpec | undefined): FieldError[] {
  const selector = spec?.selector;
  if (selector === undefined) return [fieldError.required('spec.selector')];
  const errors = validateLabelSelector(selector, 'spec.selector');
  if (errors.length > 0) return errors;
  const labels = spec?.template?.metadata?.labels;
  return matchesLabels(labelSelectorOf(selector), labels)
    ? []
    : [
        fieldError.invalid(
          'spec.template.metadata.labels',
          labels ?? null,
          '`selector` does not match template `labels`',
        ),
      ];
}

const COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
  'backoffLimitPerIndex',
  'maxFailedIndexes',
] as const;

/** Validates the spec of a job or of a cron job's template. `path` is the path of the job spec. */
export function validateJobSpec(spec: JobSpec | undefined, path: string): FieldError[] {
  const errors: FieldError[] = COUNTS.flatMap((field) => validateNonNegative(spec?.[field], `${path}.${field}`));
  if (spec?.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.required(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified'));
  }
  if (spec?.managedBy !== undefined) {
    errors.push(...validateDomainPath(spec.managedBy, `${path}.managedBy`));
    if (spec.managedBy.length > MAX_CONTROLLER_NAME) {
      errors.push(fieldError.tooLong(`${path}.managedBy`, MAX_CONTROLLER_NAME));
    }
  }
  errors.push(...validateCompletionMode(spec ?? { template: {} }, path));
  if (spec?.podFailurePolicy !== undefined) {
    errors.push(...validatePodFailurePolicy(spec, `${path}.podFailurePolicy`));
  }
  if (spec?.successPolicy !== undefined) errors.push(...validateSuccessPolicy(spec, `${path}.successPolicy`));
  errors.push(...validateReplacement(spec, `${path}.podReplacementPolicy`));
  errors.push(...validatePodTemplate(spec?.template, `${path}.template`));
  errors.push(...validateRestartPolicy(spec, `${path}.template.spec.restartPolicy`));
  return errors;
}

function validateCompletionMode(spec: JobSpec, path: string): FieldError[] {
  const errors = validateOptionalOneOf(spec.completionMode, ['NonIndexed', 'Indexed'], `${path}.completionMode`);
  if (spec.completionMode === 'Indexed') {
    if (spec.completions === undefined) {
      errors.push(fieldError.required(`${path}.completions`, 'when completion mode is Indexed'));
    }
    return [...errors, ...validateIndexedLimits(spec, path)];
  }
  if (spec.completionMode !== undefined && spec.completionMode !== 'NonIndexed') return errors;
  for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes'] as const) {
    if (spec[field] !== undefined) {
      errors.push(fieldError.invalid(`${path}.${field}`, spec[field], 'requires indexed completion mode'));
    }
  }
  return errors;
}

/** Validates the limits of indexes, because the status lists completed and failed indexes. */
function validateIndexedLimits(spec: JobSpec, path: string): FieldError[] {
  const { completions = 0, parallelism = 0, maxFailedIndexes } = spec;
  const errors: FieldError[] = [];
  const refuse = (field: 'maxFailedIndexes' | 'parallelism', why: string): void => {
    errors.push(fieldError.invalid(`${path}.${field}`, spec[field], why));
  };
  const most = `must be less than or equal to ${MAX_INDEXED_PARALLELISM}`;
  if (parallelism > MAX_INDEXED_PARALLELISM) refuse('parallelism', `${most} when completion mode is Indexed`);
  if (spec.completions !== undefined && (maxFailedIndexes ?? 0) > completions) {
    refuse('maxFailedIndexes', 'must be less than or equal to completions');
  }
  if ((maxFailedIndexes ?? 0) > MAX_INDEXED_PARALLELISM) refuse('maxFailedIndexes', most);
  if (completions <= MAX_INDEXED_PARALLELISM || spec.backoffLimitPerIndex === undefined) return errors;
  if (maxFailedIndexes === undefined) {
    const why = `must be specified when completions is above ${MAX_INDEXED_PARALLELISM}`;
    errors.push(fieldError.required(`${path}.maxFailedIndexes`, why));
  }
  for (const field of ['parallelism', 'maxFailedIndexes'] as const) {
    if ((spec[field] ?? 0) <= MAX_WITH_MANY_INDEXES) continue;
    const why = `must be less than or equal to ${MAX_WITH_MANY_INDEXES} when completions are above ${MAX_INDEXED_PARALLELISM} and used with backoff limit per index`;
    refuse(field, why);
  }
  return errors;
}

function validateReplacement(spec: JobSpec | undefined, path: string): FieldError[] {
  const policy = spec?.podReplacementPolicy;
  if (policy === undefined) return [];
  const supported = spec?.podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed'];
  return validateOptionalOneOf(policy, supported, path);
}

/** Rejects the restart policy Always, with which a pod never completes. */
function validateRestartPolicy(spec: JobSpec | undefined, path: string): FieldError[] {
  const policy = spec?.template?.spec?.restartPolicy ?? '';
  if (policy === '' || policy === 'Always') return [fieldError.required(path, 'valid values: "OnFailure", "Never"')];
  if (policy !== 'OnFailure' && policy !== 'Never')
    return [fieldError.notSupported(path, policy, ['OnFailure', 'Never'])];
  return spec?.podFailurePolicy !== undefined && policy !== 'Never'
    ? [fieldError.invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    : [];
}

const FIXED = [
  'selector',
  'completionMode',
  'podFailurePolicy',
  'backoffLimitPerIndex',
  'managedBy',
  'successPolicy',
] as const;

/** Validates the changes of an update. The pipeline also calls `validate` for the new object. */
export function validateJobUpdate(job: Job, old: Job): FieldError[] {
  const labels = old.spec?.template?.metadata?.labels ?? {};
  const prefixed = [...UID_LABELS, ...NAME_LABELS].every((key) => !key.includes('/') || Object.hasOwn(labels, key));
  const errors = validateGenerated(job, prefixed);
  errors.push(...validateCompletionsChange(job.spec, old.spec));
  errors.push(...validateTemplateChange(job, old));
  for (const field of FIXED) errors.push(...validateImmutable(job.spec?.[field], old.spec?.[field], `spec.${field}`));
  return errors;
}

/** An Indexed job is scaled by changing completions and parallelism to the same value. */
function validateCompletionsChange(spec: JobSpec | undefined, old: JobSpec | undefined): FieldError[] {
  if (spec?.completionMode !== 'Indexed' || spec.completions === undefined || old?.completions === undefined) {
    return validateImmutable(spec?.completions, old?.completions, 'spec.completions');
  }
  if (spec.completions === old.completions) return [];
  if (spec.completions === spec.parallelism) return [];
  const why = `can only be modified in tandem with spec.parallelism`;
  return [fieldError.invalid('spec.completions', spec.completions, why)];
}

/**
 * Scheduling directives and resources of the template can change while a suspended job has no pods. Source: KEP-2926,
 * KEP-5440; pkg/registry/batch/job/strategy.go shouldAllowMutablePodTemplate.
 */
function validateTemplateChange(job: Job, old: Job): FieldError[] {
  const { startTime, conditions = [], active = 0 } = old.status ?? {};
  const seen = conditions.some(({ type, status }) => type === 'Suspended' && status === 'True');
  const mutable = old.spec?.suspend === true && (startTime === undefined || seen) && active === 0;
  const shown = (template: JobSpec['template'] | undefined): unknown => {
    if (!mutable || template === undefined) return template;
    const { labels: _labels, annotations: _annotations, ...metadata } = template.metadata ?? {};
    const {
      affinity,
      nodeSelector: _n,
      tolerations: _t,
      schedulingGates: _g,
      ...spec
    } = template.spec ?? {
      containers: [],
    };
    const { nodeAffinity: _nodes, ...others } = affinity ?? {};
    const withoutResources = (containers: PodSpec['containers'] | undefined): unknown =>
      containers?.map(({ resources: _r, ...container }) => container);
    const containers = withoutResources(spec.containers);
    const initContainers = withoutResources(spec.initContainers);
    return { ...template, metadata, spec: { ...spec, containers, initContainers, affinity: others } };
  };
  return semanticEqual(shown(job.spec?.template), shown(old.spec?.template))
    ? []
    : [fieldError.invalid('spec.template', job.spec?.template, 'field is immutable')];
}
