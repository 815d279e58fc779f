/**
 * Replica sets and replication controllers: the number of pods to create, the pods to delete, and the status. Source:
 * upstream's pkg/controller/replicaset.
 */

import type { ReplicaSet, ReplicaSetStatus } from '../../../api/generated/apps/v1.ts';
import type { Pod, PodTemplateSpec, ReplicationControllerCondition } from '../../../api/generated/core/v1.ts';
import type { ObjectMeta } from '../../../api/meta/object.ts';
import { type LabelSelector, matchesLabels, selectorOfLabels } from '../../../base/selector.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { type Claim, claimObjects } from '../../framework/core/ownership.ts';
import type { PlanContext } from '../../framework/core/plan-context.ts';
import { availableInMs, isPodActive, isPodReady, podsToDelete } from '../../framework/core/pods.ts';

/** Common fields of a ReplicaSet and a ReplicationController. */
export interface ReplicaOwner {
  readonly metadata?: ObjectMeta;
  readonly status?: ReplicaSetStatus;
}

export interface ReplicaSnapshot {
  readonly owner: ReplicaOwner;
  readonly selector: LabelSelector;
  readonly replicas: number;
  readonly minReadySeconds: number;
  readonly template: PodTemplateSpec | undefined;
  /** Pods of the namespace that are controlled by the owner or have no controller. */
  readonly candidates: readonly Pod[];
  /** Pods of sibling owners (other revisions of one deployment), which also crowd nodes. */
  readonly related: readonly Pod[];
  /** Whether the watch has delivered all creations and deletions of earlier plans. */
  readonly settled: boolean;
}

export interface ReplicaPlan {
  readonly claim: Claim<Pod>;
  readonly create: number;
  readonly delete: readonly Pod[];
}

/** Upstream's limit on pods created or deleted per plan. */
export const BURST_REPLICAS = 500;

export function planReplicas(snapshot: ReplicaSnapshot, context: PlanContext): ReplicaPlan {
  const { owner, selector } = snapshot;
  const claim = claimObjects(owner, snapshot.candidates.filter(isPodActive), (pod) =>
    matchesLabels(selector, pod.metadata?.labels),
  );
  if (!snapshot.settled || owner.metadata?.deletionTimestamp !== undefined) return { claim, create: 0, delete: [] };
  const missing = snapshot.replicas - claim.claimed.length;
  if (missing >= 0) return { claim, create: Math.min(missing, BURST_REPLICAS), delete: [] };
  const surplus = Math.min(-missing, BURST_REPLICAS);
  const related = [...claim.claimed, ...snapshot.related];
  return { claim, create: 0, delete: podsToDelete(claim.claimed, related, surplus, context.nowMs) };
}

/** Error during the execution of a plan; shown as the ReplicaFailure condition. */
export interface ReplicaFailure {
  readonly reason: 'FailedCreate' | 'FailedDelete';
  readonly message: string;
}

export interface ReplicaStatusPlan {
  /** New status; undefined if it is unchanged. */
  readonly status: ReplicaSetStatus | undefined;
  /** Time until the next ready pod becomes available, if there is one. */
  readonly recheckAfterMs: number | undefined;
}

export function planReplicaStatus(
  snapshot: ReplicaSnapshot,
  claimed: readonly Pod[],
  failure: ReplicaFailure | undefined,
  context: PlanContext,
): ReplicaStatusPlan {
  const old: ReplicaSetStatus = snapshot.owner.status ?? { replicas: 0 };
  const templateLabels = selectorOfLabels(snapshot.template?.metadata?.labels ?? {});
  let fullyLabeled = 0;
  let ready = 0;
  let available = 0;
  let recheckAfterMs: number | undefined;
  for (const pod of claimed) {
    if (matchesLabels(templateLabels, pod.metadata?.labels)) fullyLabeled++;
    if (!isPodReady(pod)) continue;
    ready++;
    const waitMs = availableInMs(pod, snapshot.minReadySeconds, context.nowMs);
    if (waitMs === 0) available++;
    else if (waitMs !== undefined) recheckAfterMs = Math.min(recheckAfterMs ?? waitMs, waitMs);
  }
  const conditions = withFailure(old.conditions ?? [], failure, context.nowMs);
  const status: ReplicaSetStatus = {
    ...old,
    replicas: claimed.length,
    fullyLabeledReplicas: fullyLabeled,
    readyReplicas: ready,
    availableReplicas: available,
    observedGeneration: snapshot.owner.metadata?.generation ?? 0,
  };
  if (conditions.length > 0) status.conditions = conditions;
  else delete status.conditions;
  const counts = (each: ReplicaSetStatus) => [
    each.replicas,
    each.fullyLabeledReplicas ?? 0,
    each.readyReplicas ?? 0,
    each.availableReplicas ?? 0,
    each.observedGeneration ?? 0,
  ];
  const same =
    snapshot.owner.status !== undefined &&
    equalIgnoringEmptyLists(counts(old), counts(status)) &&
    equalIgnoringEmptyLists(old.conditions, status.conditions);
  return { status: same ? undefined : status, recheckAfterMs };
}

/**
 * Conditions with the failure, or without a failure condition if there is none. While the reason stays the same, the
 * time of the first failure is kept.
 */
function withFailure(
  conditions: readonly ReplicationControllerCondition[],
  failure: ReplicaFailure | undefined,
  nowMs: number,
): ReplicationControllerCondition[] {
  const current = conditions.find((condition) => condition.type === 'ReplicaFailure');
  if (failure !== undefined && current?.status === 'True' && current.reason === failure.reason) return [...conditions];
  const others = conditions.filter((condition) => condition.type !== 'ReplicaFailure');
  if (failure === undefined) return others;
  return [
    ...others,
    {
      type: 'ReplicaFailure',
      status: 'True',
      reason: failure.reason,
      message: failure.message,
      lastTransitionTime: timestamp(nowMs),
    },
  ];
}

/**
 * Creates a pod from a controller's template, like upstream's GetPodFromTemplate. The API server generates its name.
 */
export function podFromTemplate(
  owner: { readonly metadata?: ObjectMeta },
  template: PodTemplateSpec | undefined,
  reference: NonNullable<ObjectMeta['ownerReferences']>[number],
): Pod {
  const metadata: ObjectMeta = {
    generateName: `${owner.metadata?.name ?? ''}-`,
    namespace: owner.metadata?.namespace ?? '',
    ownerReferences: [reference],
  };
  const source = template?.metadata;
  if (source?.labels !== undefined) metadata.labels = { ...source.labels };
  if (source?.annotations !== undefined) metadata.annotations = { ...source.annotations };
  if (source?.finalizers !== undefined) metadata.finalizers = [...source.finalizers];
  const pod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata };
  if (template?.spec !== undefined) pod.spec = { ...template.spec };
  return pod;
}

/** UIDs of replica sets of the same deployment. Their pods count when pods to delete are selected. */
export function siblingUids(set: ReplicaSet, all: readonly ReplicaSet[]): string[] {
  const controller = set.metadata?.ownerReferences?.find((reference) => reference.controller === true);
  if (controller === undefined) return [];
  return all
    .filter(
      (each) =>
        each.metadata?.uid !== set.metadata?.uid &&
        each.metadata?.ownerReferences?.some((reference) => reference.uid === controller.uid),
    )
    .map((each) => each.metadata?.uid ?? '');
}
