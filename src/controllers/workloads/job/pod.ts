/** Creates the pods of a job and reads their index, failures and state. Source: upstream's pkg/controller/job. */

import type { Job } from '../../../api/generated/batch/v1.ts';
import type { Container, ContainerStatus, Pod } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import { podCondition } from '../../framework/core/pods.ts';
import { podFromTemplate } from '../replica-set/plan.ts';

/** Finalizer of pods that are not counted yet. */
export const TRACKING_FINALIZER = 'batch.kubernetes.io/job-tracking';
const INDEX = 'batch.kubernetes.io/job-completion-index';
const FAILURES = 'batch.kubernetes.io/job-index-failure-count';
const IGNORED_FAILURES = 'batch.kubernetes.io/job-index-ignored-failure-count';
const INDEX_VARIABLE = 'JOB_COMPLETION_INDEX';
const JOB = { group: 'batch', version: 'v1', kind: 'Job' } as const;
const MAX_NAME_PREFIX = 58;

export const isTracked = (pod: Pod): boolean => pod.metadata?.finalizers?.includes(TRACKING_FINALIZER) === true;
export const uidOf = (pod: Pod): string => pod.metadata?.uid ?? '';
export const isIndexed = (job: Job): boolean => job.spec?.completionMode === 'Indexed';

/** Completion index of a pod; undefined if it is missing or invalid. */
export function indexOf(pod: Pod): number | undefined {
  const text = pod.metadata?.annotations?.[INDEX];
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : undefined;
}

export interface FailureCounts {
  /** Failures of the index before this pod. */
  readonly counted: number;
  /** Failures of the index that the pod failure policy ignored. */
  readonly ignored: number;
}

export function failuresBefore(pod: Pod): FailureCounts {
  const read = (annotation: string): number => {
    const text = pod.metadata?.annotations?.[annotation];
    return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : 0;
  };
  return { counted: read(FAILURES), ignored: read(IGNORED_FAILURES) };
}

/**
 * @param index Completion index, for Indexed jobs.
 * @param failures Earlier failures of the index, if the job limits failures per index.
 */
export function jobPod(job: Job, index: number | undefined, failures: FailureCounts | undefined): Pod {
  const pod = podFromTemplate(job, job.spec?.template, controllerReference(job, JOB));
  const metadata = { ...pod.metadata, finalizers: [...(pod.metadata?.finalizers ?? []), TRACKING_FINALIZER] };
  if (index === undefined) return { ...pod, metadata };
  const text = String(index);
  const name = job.metadata?.name ?? '';
  metadata.generateName = `${name.slice(0, MAX_NAME_PREFIX - text.length - 2)}-${text}-`;
  metadata.labels = { ...metadata.labels, [INDEX]: text };
  metadata.annotations = { ...metadata.annotations, [INDEX]: text };
  if (failures !== undefined) {
    metadata.annotations[FAILURES] = String(failures.counted);
    if (failures.ignored > 0) metadata.annotations[IGNORED_FAILURES] = String(failures.ignored);
  }
  const spec = pod.spec ?? { containers: [] };
  return {
    ...pod,
    metadata,
    spec: {
      ...spec,
      hostname: `${name}-${text}`,
      containers: spec.containers.map(withIndexVariable),
      ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(withIndexVariable) }),
    },
  };
}

function withIndexVariable(container: Container): Container {
  const variables = container.env ?? [];
  if (variables.some((variable) => variable.name === INDEX_VARIABLE)) return container;
  const fieldPath = `metadata.labels['${INDEX}']`;
  return { ...container, env: [...variables, { name: INDEX_VARIABLE, valueFrom: { fieldRef: { fieldPath } } }] };
}

/** Whether a terminating pod is replaced only after it has terminated. */
export function replacesOnlyFailed(job: Job): boolean {
  return job.spec?.podReplacementPolicy === 'Failed' || job.spec?.podFailurePolicy !== undefined;
}

/**
 * Whether the pod counts as failed. A pod that is being deleted counts as failed if it is replaced at once, because it
 * may never reach the phase Failed.
 */
export function isPodFailed(pod: Pod, job: Job): boolean {
  if (pod.status?.phase === 'Failed') return true;
  if (replacesOnlyFailed(job)) return false;
  return pod.metadata?.deletionTimestamp !== undefined && pod.status?.phase !== 'Succeeded';
}

/** Statuses of all containers, including init containers. */
export function containerStatusesOf(pod: Pod): readonly ContainerStatus[] {
  return [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
}

/** Time at which a pod finished, as precise as the pod's status permits. */
export function finishedMs(pod: Pod): number {
  const ended = (pod.status?.containerStatuses ?? []).map((status) =>
    timeMs(status.state?.terminated?.finishedAt, Number.NaN),
  );
  const last = Math.max(...ended);
  if (ended.length > 0 && !Number.isNaN(last)) return last;
  const ready = podCondition(pod, 'Ready');
  if (ready?.status === 'False' && ready.lastTransitionTime !== undefined) return timeMs(ready.lastTransitionTime);
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, creationTimestamp } = pod.metadata ?? {};
  if (deletionTimestamp !== undefined) return timeMs(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  return timeMs(creationTimestamp);
}
