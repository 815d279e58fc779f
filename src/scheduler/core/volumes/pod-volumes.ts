/**
 * Determines what the claims of a pod require of its node, and how they are bound there. Source:
 * pkg/scheduler/framework/plugins/volumebinding.
 */
import type {
  Node,
  NodeSelectorTerm,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
} from '../../../api/generated/core/v1.ts';
import type { CSINode, StorageClass } from '../../../api/generated/storage/v1.ts';
import {
  annotationOf,
  classNameOf,
  isFullyBound,
  NO_PROVISIONER,
  SELECTED_NODE,
  waitsForConsumer,
} from '../../../api/volumes/binding.ts';
import { findMatchingVolume } from '../../../api/volumes/match.ts';
import { type CapacityLister, hasRoom } from './storage-capacity.ts';

/** Claims, volumes and storage classes from the informers. */
export interface VolumeLister {
  claim(namespace: string, name: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  volumes(): readonly PersistentVolume[];
  storageClass(name: string): StorageClass | undefined;
  csiNode(name: string): CSINode | undefined;
  /** Storage capacity of CSI drivers; undefined if it is unknown. */
  readonly capacity?: CapacityLister | undefined;
}

export interface PodVolumes {
  /** Reason why no node is suitable. If undefined, the nodes must be checked. */
  readonly problem: string | undefined;
  /** Node selector terms of each bound volume. */
  readonly terms: readonly (readonly NodeSelectorTerm[])[];
  /** Claims that will be bound when a node is selected for the pod. */
  readonly unbound: readonly PersistentVolumeClaim[];
}

/** Actions that bind the claims of a pod on its node. */
export interface VolumesOnNode {
  readonly reserve: readonly { readonly claim: PersistentVolumeClaim; readonly volume: PersistentVolume }[];
  /** Claims for which a provisioner creates a volume on the node. */
  readonly provision: readonly PersistentVolumeClaim[];
}

/** Requirements of the pod's claims; undefined if the pod has no claims. */
export function volumesOfPod(pod: Pod, lister: VolumeLister | undefined): PodVolumes | undefined {
  const terms: (readonly NodeSelectorTerm[])[] = [];
  const unbound: PersistentVolumeClaim[] = [];
  let hasClaims = false;
  let isUnboundAtOnce = false;
  for (const { name, persistentVolumeClaim, ephemeral } of pod.spec?.volumes ?? []) {
    if (persistentVolumeClaim === undefined && ephemeral === undefined) continue;
    hasClaims = true;
    const claimName = persistentVolumeClaim?.claimName ?? `${pod.metadata?.name ?? ''}-${name}`;
    const claim = lister?.claim(pod.metadata?.namespace ?? '', claimName);
    if (claim === undefined) {
      return problem(
        ephemeral === undefined
          ? `persistentvolumeclaim "${claimName}" not found`
          : `waiting for ephemeral volume controller to create the persistentvolumeclaim "${claimName}"`,
      );
    }
    const wrong = problemOf(claim, claimName);
    if (wrong !== undefined) return problem(wrong);
    if (
      ephemeral !== undefined &&
      claim.metadata?.ownerReferences?.find(({ controller }) => controller === true)?.uid !== pod.metadata?.uid
    ) {
      const key = `${pod.metadata?.namespace ?? ''}/${claimName}`;
      return problem(`PVC "${key}" was not created for pod "${pod.metadata?.name ?? ''}" (pod is not owner)`);
    }
    if (isFullyBound(claim)) {
      const volume = lister?.volume(claim.spec?.volumeName ?? '');
      if (volume === undefined) {
        return problem('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');
      }
      const affinity = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
      if (affinity !== undefined) terms.push(affinity);
    } else if (waitsForConsumer(lister?.storageClass(classNameOf(claim))) && (claim.spec?.volumeName ?? '') === '') {
      unbound.push(claim);
    } else isUnboundAtOnce = true;
  }
  if (!hasClaims) return undefined;
  if (isUnboundAtOnce) return problem('pod has unbound immediate PersistentVolumeClaims');
  return { problem: undefined, terms, unbound };
}

export const NO_VOLUME = "node(s) didn't find available persistent volumes to bind";
export const NO_SPACE = 'node(s) did not have enough free storage';

/** Plans how the claims are bound on the node. Returns the reason as a text if a claim cannot be bound there. */
export function unboundVolumesOn(
  node: Node,
  claims: readonly PersistentVolumeClaim[],
  lister: VolumeLister | undefined,
): VolumesOnNode | string {
  const reserve: { claim: PersistentVolumeClaim; volume: PersistentVolume }[] = [];
  const provision: PersistentVolumeClaim[] = [];
  const chosen = new Set<string>();
  for (const claim of claims) {
    const selected = annotationOf(claim, SELECTED_NODE);
    if (selected !== undefined) {
      if (selected !== node.metadata?.name) return NO_VOLUME;
      provision.push(claim);
      continue;
    }
    const volume = findMatchingVolume(claim, lister?.volumes() ?? [], {
      node,
      waitsForConsumer: true,
      excluded: chosen,
    });
    if (volume !== undefined) {
      chosen.add(volume.metadata?.name ?? '');
      reserve.push({ claim, volume });
      continue;
    }
    const storageClass = lister?.storageClass(classNameOf(claim));
    if (storageClass === undefined || !canProvision(storageClass, node)) return NO_VOLUME;
    if (!hasRoom(claim, storageClass, node, lister?.capacity)) return NO_SPACE;
    provision.push(claim);
  }
  return { reserve, provision };
}

function canProvision({ provisioner, allowedTopologies = [] }: StorageClass, node: Node): boolean {
  if (provisioner === NO_PROVISIONER) return false;
  if (allowedTopologies.length === 0) return true;
  const labels = node.metadata?.labels ?? {};
  return allowedTopologies.some(({ matchLabelExpressions = [] }) =>
    matchLabelExpressions.every(({ key, values }) => Object.hasOwn(labels, key) && values.includes(labels[key] ?? '')),
  );
}

function problemOf({ metadata, spec, status }: PersistentVolumeClaim, name: string): string | undefined {
  if (metadata?.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
  if (status?.phase !== 'Lost') return undefined;
  return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${spec?.volumeName ?? ''}"`;
}

const problem = (text: string): PodVolumes => ({ problem: text, terms: [], unbound: [] });
