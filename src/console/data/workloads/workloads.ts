/** State of workloads, and the requests of actions on them. */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { CronJob, Job } from '../../../api/generated/batch/v1.ts';
import type { KubeObject, ResourceType } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { objectPath, query } from '../../../client/resource-path.ts';
import { type Api, MERGE_PATCH, STRATEGIC_PATCH } from '../api/api.ts';
import { FIELD_MANAGER } from '../api/apply.ts';
import { conditionOf, fieldAt, numberAt, textAt } from '../api/resources.ts';

const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt';

export type Health = 'good' | 'progressing' | 'bad' | 'idle';

export interface WorkloadState {
  readonly ready: number;
  readonly desired: number;
  readonly health: Health;
  /** Short description of the state, such as `rolling out, 2 of 3 updated`. */
  readonly text: string;
}

const state = (ready: number, desired: number, health: Health, text: string): WorkloadState => ({
  ready,
  desired,
  health,
  text,
});

export function workloadState(object: KubeObject): WorkloadState {
  switch (object.kind) {
    case 'DaemonSet':
      return daemonSetState(object as DaemonSet);
    case 'Job':
      return jobState(object as Job);
    case 'CronJob':
      return cronJobState(object as CronJob);
    default:
      return replicatedState(object as Deployment | StatefulSet | ReplicaSet);
  }
}

function replicatedState(object: Deployment | StatefulSet | ReplicaSet): WorkloadState {
  const desired = numberAt(object, 1, 'spec', 'replicas');
  const ready = numberAt(object, 0, 'status', 'readyReplicas');
  const updated = numberAt(object, desired, 'status', 'updatedReplicas');
  const all = numberAt(object, 0, 'status', 'replicas');
  const observed = numberAt(object, 0, 'status', 'observedGeneration') >= (object.metadata?.generation ?? 0);
  const progress = conditionOf(object, 'Progressing');
  const failure = conditionOf(object, 'ReplicaFailure');
  if (failure?.status === 'True') return state(ready, desired, 'bad', failure.message);
  if (progress?.reason === 'ProgressDeadlineExceeded')
    return state(ready, desired, 'bad', 'the roll-out does not progress');
  if (fieldAt(object, 'spec', 'paused') === true) return state(ready, desired, 'idle', 'paused');
  if (!observed) return state(ready, desired, 'progressing', 'change not seen by the controller yet');
  if (desired === 0)
    return state(ready, desired, all === 0 ? 'idle' : 'progressing', all === 0 ? 'scaled to 0' : 'scaling down');
  if (object.kind === 'Deployment' && updated < desired)
    return state(ready, desired, 'progressing', `rolling out, ${updated} of ${desired} updated`);
  if (all > desired) return state(ready, desired, 'progressing', `${all - desired} old pods are ending`);
  if (ready < desired) return state(ready, desired, 'progressing', `${desired - ready} not ready`);
  return state(ready, desired, 'good', 'ready');
}

function daemonSetState({ status }: DaemonSet): WorkloadState {
  const desired = status?.desiredNumberScheduled ?? 0;
  const ready = status?.numberReady ?? 0;
  const updated = status?.updatedNumberScheduled ?? desired;
  if (desired === 0) return state(0, 0, 'idle', 'no node selected');
  if (updated < desired) return state(ready, desired, 'progressing', `rolling out, ${updated} of ${desired} updated`);
  return ready < desired
    ? state(ready, desired, 'progressing', `${desired - ready} not ready`)
    : state(ready, desired, 'good', 'ready');
}

function jobState(job: Job): WorkloadState {
  const desired = job.spec?.completions ?? job.spec?.parallelism ?? 1;
  const done = job.status?.succeeded ?? 0;
  const failed = conditionOf(job, 'Failed');
  if (failed?.status === 'True') return state(done, desired, 'bad', failed.message === '' ? 'failed' : failed.message);
  if (conditionOf(job, 'Complete')?.status === 'True') return state(done, desired, 'good', 'complete');
  if (job.spec?.suspend === true) return state(done, desired, 'idle', 'suspended');
  return state(done, desired, 'progressing', `${job.status?.active ?? 0} running`);
}

function cronJobState({ spec, status }: CronJob): WorkloadState {
  const active = status?.active?.length ?? 0;
  if (spec?.suspend === true) return state(active, 0, 'idle', 'suspended');
  return state(active, 0, active > 0 ? 'progressing' : 'good', `schedule ${spec?.schedule ?? ''}`);
}

interface Target {
  readonly type: ResourceType;
  readonly name: string;
  readonly namespace: string;
}

const own = query({ fieldManager: FIELD_MANAGER });

export async function scaleTo(api: Api, target: Target, replicas: number): Promise<void> {
  if (!Number.isInteger(replicas) || replicas < 0 || replicas > 10_000)
    throw new ApiError('BadRequest', `replicas: ${replicas} is not a number from 0 to 10000`);
  await api.json(objectPath(target.type, target.name, target.namespace, 'scale') + own, {
    method: 'PATCH',
    contentType: MERGE_PATCH,
    body: { spec: { replicas } },
  });
}

/** Replaces all pods, as `kubectl rollout restart` does. */
export async function restartWorkload(api: Api, target: Target, nowMs: number): Promise<void> {
  await api.json(objectPath(target.type, target.name, target.namespace) + own, {
    method: 'PATCH',
    contentType: STRATEGIC_PATCH,
    body: { spec: { template: { metadata: { annotations: { [RESTARTED_AT]: timestamp(nowMs) } } } } },
  });
}

export async function remove(api: Api, type: ResourceType, name: string, namespace?: string): Promise<void> {
  await api.json(objectPath(type, name, namespace), {
    method: 'DELETE',
    body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
  });
}

/** Label selector for the pods of a workload; undefined if it has none. */
export function podSelectorOf(object: KubeObject): string | undefined {
  const labels = fieldAt(object, 'spec', 'selector', 'matchLabels');
  if (typeof labels !== 'object' || labels === null) return undefined;
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${String(value)}`)
    .join(',');
}

/** Images of the pods of a workload. */
export function imagesOf(object: KubeObject): string {
  const template =
    fieldAt(object, 'spec', 'jobTemplate') === undefined ? object : fieldAt(object, 'spec', 'jobTemplate');
  const containers = fieldAt(template, 'spec', 'template', 'spec', 'containers');
  return Array.isArray(containers) ? containers.map((each: unknown) => textAt(each, 'image')).join(', ') : '';
}
