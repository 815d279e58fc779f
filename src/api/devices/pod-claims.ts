/** Resource claims of a pod. Source: core/v1 PodResourceClaim; k8s.io/dynamic-resource-allocation/resourceclaim. */
import type { Pod, PodResourceClaim, PodResourceClaimStatus } from '../generated/core/v1.ts';

export const podClaims = (pod: Pod): readonly PodResourceClaim[] => pod.spec?.resourceClaims ?? [];

/** Status of a claim from a template; undefined until the controller has created it. */
export const generatedClaim = (pod: Pod, { name }: PodResourceClaim): PodResourceClaimStatus | undefined =>
  pod.status?.resourceClaimStatuses?.find((each) => each.name === name);

/** Name of the ResourceClaim. Undefined if it is created from a template and does not exist yet. */
export const claimNameOf = (pod: Pod, claim: PodResourceClaim): string | undefined =>
  claim.resourceClaimName ?? generatedClaim(pod, claim)?.resourceClaimName;
