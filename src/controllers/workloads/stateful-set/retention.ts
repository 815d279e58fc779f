/**
 * Owner references of a stateful set's claims. With an owner, the garbage collector can delete the claim. Source:
 * KEP-1847, upstream's stateful_set_utils.go updateClaimOwnerRefForSetAndPod.
 */
import type { StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import { STATEFUL_SET } from './pod.ts';

const POD = { group: '', version: 'v1', kind: 'Pod' } as const;

/**
 * Owner references that the claim should have; undefined if they are correct. A claim with another controller, or of an
 * earlier set or pod of the same name, gets none from this set: the garbage collector decides about it.
 *
 * @param condemned The claim's pod is beyond the replicas.
 */
export function retainedBy(
  set: StatefulSet,
  claim: PersistentVolumeClaim,
  pod: Pod | undefined,
  { condemned }: { readonly condemned: boolean },
): OwnerReference[] | undefined {
  const present = claim.metadata?.ownerReferences ?? [];
  const names = (reference: OwnerReference): boolean =>
    matches(reference, STATEFUL_SET, 'apps/v1', set) || (pod !== undefined && matches(reference, POD, 'v1', pod));
  const isOurs = (reference: OwnerReference): boolean =>
    reference.uid === set.metadata?.uid || (pod !== undefined && reference.uid === pod.metadata?.uid);
  if (present.some((reference) => names(reference) && !isOurs(reference))) return undefined;
  const policy = set.spec?.persistentVolumeClaimRetentionPolicy;
  const ours = present.filter(isOurs);
  const others = present.filter((reference) => !names(reference));
  const byPod = policy?.whenScaled === 'Delete' && condemned && pod !== undefined;
  const bySet = policy?.whenDeleted === 'Delete' && !byPod;
  const foreign =
    (policy?.whenScaled === 'Delete' || policy?.whenDeleted === 'Delete') &&
    present.some((reference) => reference.controller === true && !isOurs(reference));
  if (foreign) return ours.length === 0 ? undefined : others;
  const wanted = [
    ...(bySet ? [controllerReference(set, STATEFUL_SET)] : []),
    ...(byPod && pod !== undefined ? [controllerReference(pod, POD)] : []),
  ];
  const right = (each: OwnerReference): boolean => ours.some((own) => own.uid === each.uid && own.controller === true);
  return ours.length === wanted.length && wanted.every(right) ? undefined : [...others, ...wanted];
}

function matches(
  reference: OwnerReference,
  { kind }: { readonly kind: string },
  apiVersion: string,
  { metadata }: StatefulSet | Pod,
): boolean {
  return reference.apiVersion === apiVersion && reference.kind === kind && reference.name === metadata?.name;
}

/** Whether an earlier pod of the same name owns the claim. Such a claim is about to be deleted and must not be used. */
export function isStaleClaim(claim: PersistentVolumeClaim, pod: string, uid: string | undefined): boolean {
  return (claim.metadata?.ownerReferences ?? []).some(
    (reference) => reference.kind === 'Pod' && reference.name === pod && reference.uid !== uid,
  );
}
