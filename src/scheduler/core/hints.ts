/**
 * Queueing hints: decide whether an event can make a pod schedulable that a plug-in has rejected. A hint also inspects
 * the object of the event, so that, for example, the deletion of a pod does not requeue every waiting pod. Source:
 * KEP-4247 and EventsToRegister of upstream's plug-ins.
 */

import { mayBeDevices } from '../../api/devices/extended-resources.ts';
import type { Node, PersistentVolumeClaim } from '../../api/generated/core/v1.ts';
import { matchesNode } from '../../api/podspec/scheduling/node-affinity.ts';
import { amountsOf, PODS } from '../../api/podspec/scheduling/node-resources.ts';
import { type PodInfo, portsConflict } from '../../api/podspec/scheduling/pod-info.ts';
import { untoleratedTaint } from '../../api/podspec/scheduling/tolerations.ts';
import { FIXTURE_PREFIX } from '../../rigs/kinds/rig-types.ts';
import type { FilterName } from './filters/filter.ts';
import { podGroupKey } from './pod-group.ts';

/** Change of the cluster that may make a rejected pod schedulable. */
export type ClusterEvent =
  | { readonly kind: 'NodeAdded' | 'NodeAllocatableChanged' | 'NodeTaintsChanged'; readonly node: Node }
  /** `old`: the node before the change. */
  | { readonly kind: 'NodeLabelsChanged'; readonly node: Node; readonly old: Node }
  /** The kind PodPlaced includes pods that another scheduler has bound. */
  | { readonly kind: 'PodLeft' | 'PodPlaced' | 'PodLabelsChanged'; readonly pod: PodInfo }
  | { readonly kind: 'ClaimChanged'; readonly claim: PersistentVolumeClaim }
  /** `key`: `<namespace>/<name>` of a pod group. */
  | { readonly kind: 'PodGroupChanged'; readonly key: string }
  | { readonly kind: 'NodeRemoved' | 'NamespaceChanged' | 'VolumesChanged' | 'CSINodeChanged' | 'DevicesChanged' };

type Matching<E, K> = E extends { readonly kind: infer Kinds } ? (K extends Kinds ? E : never) : never;
type EventOf<K extends ClusterEvent['kind']> = Matching<ClusterEvent, K>;
/** Functions of a filter by kind of event. They return true if the event may make the pod schedulable. */
type Hints = { readonly [K in ClusterEvent['kind']]?: (pod: PodInfo, event: EventOf<K>) => boolean };

const always = (): boolean => true;
const NODE_EVENTS = { NodeAdded: always, NodeLabelsChanged: always, NodeTaintsChanged: always } as const;

const isTolerated = (pod: PodInfo, { node }: { readonly node: Node }): boolean =>
  untoleratedTaint(node.spec?.taints, pod.pod.spec?.tolerations, ['NoSchedule', 'NoExecute']) === undefined;

const isSchedulable = (pod: PodInfo, { node }: { readonly node: Node }): boolean =>
  node.spec?.unschedulable !== true ||
  untoleratedTaint([{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }], pod.pod.spec?.tolerations, [
    'NoSchedule',
  ]) === undefined;

/**
 * Whether the pod would fit on the node if the node had no pods. A resource that the node lacks may be provided by
 * devices.
 */
const fitsEmpty = (pod: PodInfo, { node }: { readonly node: Node }): boolean => {
  const allocatable = amountsOf(node.status?.allocatable ?? node.status?.capacity);
  return (
    (allocatable.get(PODS) ?? 0) > 0 &&
    [...pod.requests].every(([name, wanted]) => {
      const most = allocatable.get(name) ?? 0;
      return wanted <= most || (most === 0 && mayBeDevices(name));
    })
  );
};

const hasVolumes = (_: PodInfo, { pod: other }: { readonly pod: PodInfo }): boolean =>
  (other.pod.spec?.volumes?.length ?? 0) > 0;

const isOwnClaim = (pod: PodInfo, { claim: { metadata } }: { readonly claim: PersistentVolumeClaim }): boolean =>
  pod.claims.includes(`${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`);

/** Whether affinity terms of one of the pods may concern the other pod. A namespace selector is assumed to match. */
const isRelated = (pod: PodInfo, { pod: other }: { readonly pod: PodInfo }): boolean => {
  const selects = (one: PodInfo, of: PodInfo): boolean =>
    [...one.affinity, ...one.antiAffinity].some(
      ({ namespaces, namespaceSelector }) => namespaceSelector !== undefined || namespaces.has(of.namespace),
    );
  return selects(pod, other) || selects(other, pod);
};

const isSpreadWith = (pod: PodInfo, { pod: other }: { readonly pod: PodInfo }): boolean =>
  pod.namespace === other.namespace;

/** Whether the node is in a domain of each constraint that can reject the pod. */
const hasSpreadKeys = (pod: PodInfo, { node }: { readonly node: Node }): boolean =>
  (pod.pod.spec?.topologySpreadConstraints ?? [])
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule')
    .every(({ topologyKey }) => Object.hasOwn(node.metadata?.labels ?? {}, topologyKey));

const HINTS: Readonly<Record<FilterName, Hints>> = {
  NodeUnschedulable: { NodeAdded: isSchedulable, NodeTaintsChanged: isSchedulable },
  NodeName: { NodeAdded: (pod, { node }) => node.metadata?.name === pod.pod.spec?.nodeName },
  TaintToleration: { NodeAdded: isTolerated, NodeTaintsChanged: isTolerated },
  NodeAffinity: {
    NodeAdded: (pod, { node }) => matchesNode(pod.pod, node),
    NodeLabelsChanged: (pod, { node }) => matchesNode(pod.pod, node),
  },
  NodePorts: {
    NodeAdded: always,
    PodLeft: (pod, { pod: other }) =>
      other.hostPorts.some((theirs) => pod.hostPorts.some((own) => portsConflict(own, theirs))),
  },
  NodeResourcesFit: {
    NodeAdded: fitsEmpty,
    NodeAllocatableChanged: fitsEmpty,
    PodLeft: always,
    DevicesChanged: (pod) => [...pod.requests.keys()].some(mayBeDevices),
  },
  VolumeRestrictions: { NodeAdded: always, PodLeft: hasVolumes, ClaimChanged: isOwnClaim },
  NodeVolumeLimits: { NodeAdded: always, PodLeft: hasVolumes, ClaimChanged: isOwnClaim, CSINodeChanged: always },
  VolumeBinding: {
    NodeAdded: always,
    NodeLabelsChanged: always,
    ClaimChanged: isOwnClaim,
    VolumesChanged: always,
    CSINodeChanged: always,
  },
  VolumeZone: { NodeAdded: always, NodeLabelsChanged: always, ClaimChanged: isOwnClaim, VolumesChanged: always },
  DynamicResources: {
    NodeAdded: always,
    NodeLabelsChanged: always,
    NodeAllocatableChanged: (pod) => [...pod.requests.keys()].some(mayBeDevices),
    DevicesChanged: always,
    PodLeft: (_, { pod: other }) => [...other.requests.keys()].some((name) => name.startsWith(FIXTURE_PREFIX)),
  },
  PodTopologySpread: {
    NodeAdded: hasSpreadKeys,
    // The node may have left the domain with the fewest pods.
    NodeLabelsChanged: (pod, { node, old }) => hasSpreadKeys(pod, { node }) || hasSpreadKeys(pod, { node: old }),
    NodeTaintsChanged: hasSpreadKeys,
    // The removed node may have been the last node of the domain with the fewest pods.
    NodeRemoved: always,
    PodLeft: isSpreadWith,
    PodPlaced: isSpreadWith,
    PodLabelsChanged: isSpreadWith,
  },
  InterPodAffinity: {
    NodeAdded: always,
    NodeLabelsChanged: always,
    PodLeft: isRelated,
    PodPlaced: isRelated,
    PodLabelsChanged: isRelated,
    NamespaceChanged: always,
  },
  Extender: { ...NODE_EVENTS, NodeAllocatableChanged: always, PodLeft: always, PodPlaced: always },
  Coscheduling: {
    ...NODE_EVENTS,
    NodeAllocatableChanged: always,
    PodLeft: always,
    PodGroupChanged: (pod, { key }) => key === podGroupKey(pod.pod),
  },
};

/** Whether events of this kind can change the result of one of the filters. */
export function mayChangeResult(filters: ReadonlySet<FilterName>, kind: ClusterEvent['kind']): boolean {
  if (filters.size === 0) return true;
  for (const filter of filters) if (HINTS[filter][kind] !== undefined) return true;
  return false;
}

/** Whether this event can change the result of `filter` for the pod. */
export function canChangeResult(filter: FilterName, pod: PodInfo, event: ClusterEvent): boolean {
  const hint = HINTS[filter][event.kind] as ((pod: PodInfo, event: ClusterEvent) => boolean) | undefined;
  return hint?.(pod, event) === true;
}
