/** Claims on devices of a pod. Source: core/v1 PodResourceClaim; k8s.io/dynamic-resource-allocation/resourceclaim. */
import type { Pod } from 'kubernetes-types/core/v1';

export interface PodClaim {
  readonly name: string;
  readonly resourceClaimName?: string;
  readonly resourceClaimTemplateName?: string;
}

/** kubernetes-types stops before these fields. */
export const podClaims = (pod: Pod): readonly PodClaim[] =>
  ((pod.spec ?? {}) as { readonly resourceClaims?: readonly PodClaim[] }).resourceClaims ?? [];

interface ClaimStatuses {
  readonly resourceClaimStatuses?: readonly { readonly name: string; readonly resourceClaimName?: string }[];
}

/** The status of a claim that was made of a template; undefined: the controller has not made it yet. */
export const generatedClaim = (pod: Pod, { name }: PodClaim): { readonly resourceClaimName?: string } | undefined =>
  ((pod.status ?? {}) as ClaimStatuses).resourceClaimStatuses?.find((each) => each.name === name);

/** The name of the ResourceClaim; undefined: made of a template that has none for the pod (yet). */
export const claimNameOf = (pod: Pod, claim: PodClaim): string | undefined =>
  claim.resourceClaimName ?? generatedClaim(pod, claim)?.resourceClaimName;
