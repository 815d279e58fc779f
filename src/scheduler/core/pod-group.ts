/**
 * Pod groups, whose pods are placed together or not at all. A label of a pod names its group, and the group specifies
 * how many pods it needs at least. Source: scheduler-plugins' Coscheduling and its PodGroup
 * (scheduling.x-k8s.io/v1alpha1).
 */
import type { Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';

export const POD_GROUP_LABEL = 'scheduling.x-k8s.io/pod-group';
const DEFAULT_TIMEOUT_SECONDS = 60;

export interface PodGroup extends KubeObject {
  readonly spec?: {
    readonly minMember?: number;
    readonly minResources?: Readonly<Record<string, string>>;
    readonly scheduleTimeoutSeconds?: number;
  };
}

/** Key `<namespace>/<name>` of the pod's group; undefined if it belongs to none. */
export function podGroupKey({ metadata }: Pod): string | undefined {
  const labels = metadata?.labels;
  const name = labels !== undefined && Object.hasOwn(labels, POD_GROUP_LABEL) ? labels[POD_GROUP_LABEL] : undefined;
  return name === undefined || name === '' ? undefined : `${metadata?.namespace ?? ''}/${name}`;
}

export const minMemberOf = ({ spec }: PodGroup): number => Math.max(1, spec?.minMember ?? 1);

/** Time for which placed members wait until enough members of the group can be bound. */
export const timeoutMsOf = ({ spec }: PodGroup): number =>
  (spec?.scheduleTimeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS) * 1_000;
