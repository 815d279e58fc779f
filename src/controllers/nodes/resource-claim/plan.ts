/**
 * Resource claims: created from templates for pods, released and deleted after their pods have finished. Source:
 * k8s.io/kubernetes/pkg/controller/resourceclaim; KEP-4381.
 */

import type { ResourceClaim, ResourceClaimTemplate } from '../../../api/devices/types.ts';
import type { Pod, PodResourceClaim, PodResourceClaimStatus } from '../../../api/generated/core/v1.ts';
import { controllerReference, isControlledBy } from '../../framework/core/ownership.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';

/** Name of the entry in `spec.resourceClaims` for which a claim was created. */
export const POD_CLAIM_ANNOTATION = 'resource.kubernetes.io/pod-claim-name';
export const CLAIM_FINALIZER = 'resource.kubernetes.io/delete-protection';

export const claimsOf = (pod: Pod): readonly PodResourceClaim[] => pod.spec?.resourceClaims ?? [];
const statusesOf = (pod: Pod): readonly PodResourceClaimStatus[] => pod.status?.resourceClaimStatuses ?? [];

/** Whether the pod no longer holds claims, because it has finished or was deleted before it was bound to a node. */
export function isPodDone(pod: Pod): boolean {
  return isPodTerminal(pod) || (pod.metadata?.deletionTimestamp !== undefined && (pod.spec?.nodeName ?? '') === '');
}

/** Name of the claim, if known. */
export function claimNameOf(pod: Pod, claim: PodResourceClaim): string | undefined {
  return claim.resourceClaimName ?? statusesOf(pod).find(({ name }) => name === claim.name)?.resourceClaimName;
}

export interface PodPlan {
  readonly create: readonly { readonly entry: string; readonly claim: ResourceClaim }[];
  /** Entries of `status.resourceClaimStatuses` to write for claims that exist. */
  readonly record: readonly PodResourceClaimStatus[];
  /** Allocated claims to reserve for the pod, because it was bound to a node without the scheduler. */
  readonly reserve: readonly ResourceClaim[];
  readonly problems: readonly string[];
}

export interface PodSnapshot {
  /** Claims in the pod's namespace. */
  readonly claims: readonly ResourceClaim[];
  template(name: string): ResourceClaimTemplate | undefined;
}

export function planPodClaims(pod: Pod, { claims, template }: PodSnapshot): PodPlan {
  const create: { entry: string; claim: ResourceClaim }[] = [];
  const record: PodResourceClaimStatus[] = [];
  const reserve: ResourceClaim[] = [];
  const problems: string[] = [];
  if (isPodDone(pod) || pod.metadata?.deletionTimestamp !== undefined) return { create, record, reserve, problems };
  for (const entry of claimsOf(pod)) {
    const known = claimNameOf(pod, entry);
    if (known !== undefined) {
      const claim = claims.find(({ metadata }) => metadata?.name === known);
      if (claim !== undefined && mayReserve(pod, claim)) reserve.push(claim);
      continue;
    }
    if (entry.resourceClaimTemplateName === undefined || statusesOf(pod).some(({ name }) => name === entry.name))
      continue;
    const made = claims.find(
      (claim) =>
        isControlledBy(claim, pod.metadata?.uid) && claim.metadata?.annotations?.[POD_CLAIM_ANNOTATION] === entry.name,
    );
    if (made !== undefined) {
      record.push({ name: entry.name, resourceClaimName: made.metadata?.name ?? '' });
      continue;
    }
    const source = template(entry.resourceClaimTemplateName);
    if (source === undefined)
      problems.push(
        `PodResourceClaim ${entry.name}: resource claim template "${entry.resourceClaimTemplateName}": resourceclaimtemplate.resource.k8s.io "${entry.resourceClaimTemplateName}" not found`,
      );
    else create.push({ entry: entry.name, claim: claimFor(pod, entry.name, source) });
  }
  return { create, record, reserve, problems };
}

function claimFor(pod: Pod, entry: string, template: ResourceClaimTemplate): ResourceClaim {
  const { name = '', namespace } = pod.metadata ?? {};
  const { labels, annotations } = template.spec?.metadata ?? {};
  return {
    metadata: {
      generateName: `${name}-${entry}-`,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [POD_CLAIM_ANNOTATION]: entry },
      ownerReferences: [controllerReference(pod, { group: '', version: 'v1', kind: 'Pod' })],
    },
    ...(template.spec?.spec === undefined ? {} : { spec: template.spec.spec }),
  };
}

const MAX_RESERVED = 256;

function mayReserve(pod: Pod, { status, metadata }: ResourceClaim): boolean {
  if ((pod.spec?.nodeName ?? '') === '' || status?.allocation === undefined) return false;
  const reserved = status.reservedFor ?? [];
  return (
    metadata?.deletionTimestamp === undefined &&
    reserved.length < MAX_RESERVED &&
    !reserved.some(({ uid }) => uid === pod.metadata?.uid)
  );
}

export type ClaimPlan =
  | { readonly kind: 'keep' }
  | {
      readonly kind: 'release';
      readonly reservedFor: NonNullable<NonNullable<ResourceClaim['status']>['reservedFor']>;
      /** Whether the claim's devices are released, because no pod uses the claim any more. */
      readonly deallocate: boolean;
    }
  | { readonly kind: 'delete' };

/** @param pod Reads a pod of the claim's namespace from the API server. */
export function planClaim(claim: ResourceClaim, pod: (name: string) => Pod | undefined): ClaimPlan {
  const { metadata, status } = claim;
  const reservedFor = status?.reservedFor ?? [];
  const valid = reservedFor.filter(({ apiGroup = '', resource, name = '', uid }) => {
    if (apiGroup !== '' || resource !== 'pods') return true;
    const consumer = pod(name);
    return consumer !== undefined && consumer.metadata?.uid === uid && !isPodDone(consumer);
  });
  const isProtected = metadata?.finalizers?.includes(CLAIM_FINALIZER) === true;
  const deallocate = valid.length === 0 && isProtected;
  if (valid.length < reservedFor.length) return { kind: 'release', reservedFor: valid, deallocate };
  // The scheduler adds the finalizer before it allocates, so a claim with a finalizer but no allocation is kept.
  if (deallocate && metadata?.deletionTimestamp !== undefined)
    return { kind: 'release', reservedFor: valid, deallocate };
  if (valid.length > 0 || metadata?.deletionTimestamp !== undefined) return { kind: 'keep' };
  const owner = metadata?.ownerReferences?.find(({ controller, kind }) => controller === true && kind === 'Pod');
  if (owner === undefined) return { kind: 'keep' };
  const made = pod(owner.name);
  return made !== undefined && made.metadata?.uid === owner.uid && isPodDone(made)
    ? { kind: 'delete' }
    : { kind: 'keep' };
}
