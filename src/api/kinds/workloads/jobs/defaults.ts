/** Source: k8s.io/kubernetes/pkg/apis/batch/v1 SetDefaults_Job. */
import type { JobSpec } from '../../../generated/batch/v1.ts';
import { isSet } from '../../../meta/validation.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';

const BACKOFF_LIMIT = 6;
const UNLIMITED = 2 ** 31 - 1;

export function setJobSpecDefaults(spec: JobSpec): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? BACKOFF_LIMIT : UNLIMITED;
  spec.completionMode ??= 'NonIndexed';
  spec.suspend ??= false;
  for (const rule of spec.podFailurePolicy?.rules ?? []) {
    for (const pattern of rule.onPodConditions ?? []) if (!isSet(pattern.status)) pattern.status = 'True';
  }
  spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed';
  setTemplateDefaults(spec);
}

/**
 * Sets the defaults for the job template of a cron job. A job that is created from the template gets the other
 * defaults.
 */
export function setTemplateDefaults(spec: JobSpec): void {
  spec.template ??= {};
  setPodTemplateDefaults(spec.template);
}
