/**
 * Action for one object, derived from the API's current state of the object and its owners. Source: upstream's
 * attemptToDeleteItem.
 */
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { toUid, type Uid } from '../../../base/brand.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from './graph.ts';

/**
 * State of an owner. 'solid': it exists. 'waiting': it is being deleted and waits for its dependents. 'dangling': it
 * does not exist, or another object has its name.
 */
export type OwnerState = 'solid' | 'waiting' | 'dangling';

export interface DecisionInput {
  readonly object: KubeObject;
  readonly owners: readonly { readonly reference: OwnerReference; readonly state: OwnerState }[];
  readonly hasDependents: boolean;
  /** Whether a dependent also waits for its own dependents. Such a cycle of foreground deletions must be broken. */
  readonly hasWaitingDependents: boolean;
}

export type GcDecision =
  | { readonly kind: 'keep' }
  /** Other owners remain, so only the references to these owners are removed. */
  | { readonly kind: 'forget-owners'; readonly uids: readonly Uid[] }
  | {
      readonly kind: 'delete';
      readonly propagation: 'Background' | 'Foreground' | 'Orphan';
      /** Whether `blockOwnerDeletion` must be removed first, so that owners no longer wait for this object. */
      readonly unblockOwners: boolean;
    };

export function decideCollection(input: DecisionInput): GcDecision {
  const { object, owners } = input;
  if (owners.length === 0) return { kind: 'keep' };
  const notSolid = owners.filter((owner) => owner.state !== 'solid').map((owner) => toUid(owner.reference.uid));
  if (notSolid.length === 0) return { kind: 'keep' };
  if (notSolid.length < owners.length) return { kind: 'forget-owners', uids: notSolid };
  if (owners.some((owner) => owner.state === 'waiting') && input.hasDependents) {
    return { kind: 'delete', propagation: 'Foreground', unblockOwners: input.hasWaitingDependents };
  }
  const finalizers = object.metadata?.finalizers ?? [];
  const propagation = finalizers.includes(ORPHAN_FINALIZER)
    ? 'Orphan'
    : finalizers.includes(FOREGROUND_FINALIZER)
      ? 'Foreground'
      : 'Background';
  return { kind: 'delete', propagation, unblockOwners: false };
}

export function withoutOwners(object: KubeObject, uids: readonly Uid[]): OwnerReference[] {
  const removed = new Set(uids);
  return (object.metadata?.ownerReferences ?? []).filter((reference) => !removed.has(toUid(reference.uid)));
}

export function withoutBlockingOwners(object: KubeObject): OwnerReference[] {
  return (object.metadata?.ownerReferences ?? []).map((reference) => ({ ...reference, blockOwnerDeletion: false }));
}

export function withoutFinalizer(object: KubeObject, finalizer: string): string[] {
  return (object.metadata?.finalizers ?? []).filter((each) => each !== finalizer);
}
