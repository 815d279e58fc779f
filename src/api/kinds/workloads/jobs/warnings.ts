/** Warnings about jobs. Source: k8s.io/kubernetes/pkg/api/job WarningsForJobSpec, pkg/registry/batch/job. */
import type { Job, JobSpec } from '../../../generated/batch/v1.ts';
import { templateWarnings } from '../../../podspec/checks/warnings.ts';
import { isNewSpec, podNameWarnings } from '../../../podspec/checks/workload-warnings.ts';

const MANY_INDEXES = 100_000;
const MANY_AT_ONCE = 10_000;

export function jobWarnings(job: Job, old: Job | undefined): string[] {
  return [...podNameWarnings(job, old), ...(isNewSpec(job, old) ? jobSpecWarnings(job.spec, 'spec') : [])];
}

export function jobSpecWarnings(spec: JobSpec | undefined, path: string): string[] {
  const many =
    spec?.completionMode === 'Indexed' &&
    (spec.completions ?? 0) > MANY_INDEXES &&
    (spec.parallelism ?? 0) > MANY_AT_ONCE;
  const why =
    'In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail';
  return [...(many ? [`${path}: ${why}`] : []), ...templateWarnings(spec?.template, `${path}.template`)];
}
