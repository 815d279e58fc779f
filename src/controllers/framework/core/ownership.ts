/**
 * Controller references: the controller of an object, and the objects that a controller must adopt or release. Source:
 * pkg/controller controller_ref_manager.
 */

import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta } from '../../../api/meta/object.ts';
import { equalIgnoringEmptyLists } from './equality.ts';

export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find((reference) => reference.controller === true);
}

/** Whether a change of an object without a controller may lead to its adoption: its labels or controller changed. */
export function mayBeAdopted(object: KubeObject, old: KubeObject): boolean {
  return controllerOf(old) !== undefined || !equalIgnoringEmptyLists(object.metadata?.labels, old.metadata?.labels);
}

export function isControlledBy(object: KubeObject, uid: string | undefined): boolean {
  return uid !== undefined && controllerOf(object)?.uid === uid;
}

/** Owner reference that a controller sets on the objects it creates. */
export function controllerReference(
  owner: { readonly metadata?: ObjectMeta },
  gvk: { readonly group: string; readonly version: string; readonly kind: string },
): OwnerReference {
  return {
    apiVersion: apiVersionOf(gvk),
    kind: gvk.kind,
    name: owner.metadata?.name ?? '',
    uid: owner.metadata?.uid ?? '',
    controller: true,
    blockOwnerDeletion: true,
  };
}

export interface Claim<T> {
  /** Objects of the controller: those that it controls and whose labels match, and those that it is about to adopt. */
  readonly claimed: T[];
  readonly adopt: T[];
  /** Controlled objects whose labels no longer match. */
  readonly release: T[];
}

/**
 * Classifies candidates by controller reference and labels. An owner that is being deleted neither adopts nor releases.
 */
export function claimObjects<T extends KubeObject>(
  owner: KubeObject,
  candidates: readonly T[],
  matches: (object: T) => boolean,
): Claim<T> {
  const uid = owner.metadata?.uid;
  const ownerLives = owner.metadata?.deletionTimestamp === undefined;
  const claimed: T[] = [];
  const adopt: T[] = [];
  const release: T[] = [];
  for (const object of candidates) {
    const controller = controllerOf(object);
    if (controller !== undefined) {
      if (controller.uid !== uid) continue;
      if (matches(object)) claimed.push(object);
      else if (ownerLives) release.push(object);
      continue;
    }
    if (!ownerLives || object.metadata?.deletionTimestamp !== undefined || !matches(object)) continue;
    adopt.push(object);
    claimed.push(object);
  }
  return { claimed, adopt, release };
}
