/** Resource claims of a pod. Source: core/v1 PodResourceClaim; k8s.io/dynamic-resource-allocation/resourceclaim. */
import type { Pod } from '../generated/core/v1.ts';

export interface PodClaim {
  readonly name: string;
  readonly resourceClaimName?: string;
  readonly resourceClaimTemplateName?: string;
}

/** `kubernetes-types` lacks these fields. */
export const podClaims = (pod: Pod): readonly PodClaim[] =>
  ((pod.spec ?? {}) as { readonly resourceClaims?: readonly PodClaim[] }).resourceClaims ?? [];

interface ClaimStatuses {
  readonly resourceClaimStatuses?: readonly { readonly name: string; readonly resourceClaimName?: string }[];
}

/** Status of a claim from a template; undefined until the controller has created it. */
export const generatedClaim = (pod: Pod, { name }: PodClaim): { readonly resourceClaimName?: string } | undefined =>
  ((pod.status ?? {}) as ClaimStatuses).resourceClaimStatuses?.find((each) => each.name === name);

/** Name of the ResourceClaim. Undefined if it is created from a template and does not exist yet. */
export const claimNameOf = (pod: Pod, claim: PodClaim): string | undefined =>
  claim.resourceClaimName ?? generatedClaim(pod, claim)?.resourceClaimName;
