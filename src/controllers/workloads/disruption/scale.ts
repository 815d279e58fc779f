/** Number of replicas that a pod's controller specifies. Source: pkg/controller/disruption, its finders. */
import type { Deployment, ReplicaSet, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { ReplicationController } from '../../../api/generated/core/v1.ts';
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { controllerOf } from '../../framework/core/ownership.ts';

export interface ControllerScale {
  /**
   * UID of the object that specifies the number: the deployment if the pod's replica set belongs to one, otherwise the
   * controller itself.
   */
  readonly uid: string;
  readonly replicas: number;
}

/** Cached workloads of one namespace by name. */
export interface Workloads {
  replicationController(name: string): ReplicationController | undefined;
  replicaSet(name: string): ReplicaSet | undefined;
  deployment(name: string): Deployment | undefined;
  statefulSet(name: string): StatefulSet | undefined;
}

/** Scale of a controller from the cache; undefined if it must be read from the scale sub-resource. */
export function knownScale(reference: OwnerReference, workloads: Workloads): ControllerScale | undefined {
  const { kind, name } = reference;
  const group = groupOf(reference.apiVersion);
  if (kind === 'ReplicationController' && group === '') {
    return scaleIf(workloads.replicationController(name), reference);
  }
  if (kind === 'StatefulSet' && group === 'apps') return scaleIf(workloads.statefulSet(name), reference);
  if (kind !== 'ReplicaSet' || !isWorkloadGroup(group)) return undefined;
  const set = workloads.replicaSet(name);
  if (set?.metadata?.uid !== reference.uid) return undefined;
  const owner = controllerOf(set);
  if (owner?.kind !== 'Deployment') return scaleIf(set, reference);
  return isWorkloadGroup(groupOf(owner.apiVersion)) ? scaleIf(workloads.deployment(owner.name), owner) : undefined;
}

function scaleIf(
  workload: (KubeObject & { readonly spec?: { readonly replicas?: number } }) | undefined,
  { uid }: OwnerReference,
): ControllerScale | undefined {
  return workload?.metadata?.uid === uid ? { uid, replicas: workload.spec?.replicas ?? 1 } : undefined;
}

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '');
const isWorkloadGroup = (group: string): boolean => group === 'apps' || group === 'extensions';
