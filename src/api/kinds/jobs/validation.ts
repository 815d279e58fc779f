/** Source: k8s.io/kubernetes/pkg/apis/batch/validation. */
import type { Job, JobSpec } from 'kubernetes-types/batch/v1';
import { dns1123LabelErrors } from '../../../base/names.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import { semanticEqual } from '../../meta/equality.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../meta/validation.ts';
import { validatePodTemplate } from '../../podspec/validate.ts';
import { validateDomainPath } from '../../validation/domain-path.ts';
import { validateNonNegative, validateOneOf } from '../../validation/scalars.ts';
import { validateLabelSelector } from '../../validation/selectors.ts';
import { validatePodFailurePolicy, validateSuccessPolicy } from './policies.ts';

/** Every index is kept in the status. */
const MAX_INDEXED_PARALLELISM = 100_000;
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

/** Also the spec of a cron job's template; `path` is where it stands. */
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
  const errors = validateOneOf(spec.completionMode, ['Indexed', 'NonIndexed'], `${path}.completionMode`, false);
  if (spec.completionMode === 'Indexed') {
    if (spec.completions === undefined) {
      errors.push(fieldError.required(`${path}.completions`, 'when completion mode is Indexed'));
    }
    for (const field of ['parallelism', 'maxFailedIndexes'] as const) {
      const value = spec[field] ?? 0;
      if (value > MAX_INDEXED_PARALLELISM) {
        const detail = `must be less than or equal to ${MAX_INDEXED_PARALLELISM} when completion mode is Indexed`;
        errors.push(fieldError.invalid(`${path}.${field}`, value, detail));
      }
    }
    return errors;
  }
  for (const field of ['backoffLimitPerIndex', 'maxFailedIndexes'] as const) {
    if (spec[field] !== undefined) {
      errors.push(fieldError.invalid(`${path}.${field}`, spec[field], 'requires indexed completion mode'));
    }
  }
  return errors;
}

function validateReplacement(spec: JobSpec | undefined, path: string): FieldError[] {
  const policy = spec?.podReplacementPolicy;
  if (policy === undefined) return [];
  const supported = spec?.podFailurePolicy === undefined ? ['Failed', 'TerminatingOrFailed'] : ['Failed'];
  return validateOneOf(policy, supported, path, false);
}

/** A pod that is always restarted never completes. */
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

/** Validates what changes; the rest was validated with `validate`, which the pipeline calls as well. */
export function validateJobUpdate(job: Job, old: Job): FieldError[] {
  const errors = validateCompletionsChange(job.spec, old.spec);
  errors.push(...validateTemplateChange(job, old));
  for (const field of FIXED) errors.push(...validateImmutable(job.spec?.[field], old.spec?.[field], `spec.${field}`));
  return errors;
}

/** Indexed jobs grow and shrink as a whole: completions follow parallelism. */
function validateCompletionsChange(spec: JobSpec | undefined, old: JobSpec | undefined): FieldError[] {
  if (spec?.completionMode !== 'Indexed' || spec.completions === undefined || old?.completions === undefined) {
    return validateImmutable(spec?.completions, old?.completions, 'spec.completions');
  }
  if (spec.completions === old.completions) return [];
  const together = spec.completions === spec.parallelism && old.completions === old.parallelism;
  return together
    ? []
    : [
        fieldError.invalid(
          'spec.completions',
          spec.completions,
          'may only be modified in tandem with parallelism: field is immutable',
        ),
      ];
}

/** Where pods go may still be said before the first of them has been made. */
function validateTemplateChange(job: Job, old: Job): FieldError[] {
  const suspended = old.spec?.suspend === true && old.status?.startTime === undefined;
  const shown = (template: JobSpec['template'] | undefined): unknown => {
    if (!suspended || template === undefined) return template;
    const { labels: _labels, annotations: _annotations, ...metadata } = template.metadata ?? {};
    const {
      affinity: _a,
      nodeSelector: _n,
      tolerations: _t,
      schedulingGates: _g,
      ...spec
    } = template.spec ?? {
      containers: [],
    };
    return { ...template, metadata, spec };
  };
  return semanticEqual(shown(job.spec?.template), shown(old.spec?.template))
    ? []
    : [fieldError.invalid('spec.template', job.spec?.template, 'field is immutable')];
}

const STATUS_COUNTS = ['active', 'succeeded', 'failed', 'ready', 'terminating'] as const;

export function validateJobStatus(job: Job, old: Job): FieldError[] {
  const errors = STATUS_COUNTS.flatMap((field) => validateNonNegative(job.status?.[field], `status.${field}`));
  if (old.status?.startTime !== undefined && isSet(old.status.completionTime)) {
    errors.push(...validateImmutable(job.status?.completionTime, old.status.completionTime, 'status.completionTime'));
  }
  return errors;
}
