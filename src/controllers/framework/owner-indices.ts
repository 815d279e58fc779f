/** Indices that controllers share on common informers. Each is added once per informer. */
import type { Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { claimNames } from '../../api/volumes/pod-claims.ts';
import type { Informer } from '../../client/types.ts';
import { controllerOf } from './core/ownership.ts';
import { addSharedIndex } from './shared-indices.ts';

const OWNER = 'all controllers';
const NO_CONTROLLER = 'orphans:';

function controllerUid(object: KubeObject): string[] {
  const controller = controllerOf(object);
  return [controller === undefined ? `${NO_CONTROLLER}${object.metadata?.namespace ?? ''}` : controller.uid];
}

const nodeName = (pod: Pod): string[] => [pod.spec?.nodeName ?? ''];
const claimKeys = (pod: Pod): string[] => claimNames(pod).map((name) => `${pod.metadata?.namespace ?? ''}/${name}`);

/** Indexes objects by the UID of their controller, and objects without a controller by namespace. */
export function indexByController<T extends KubeObject>(informer: Informer<T>): void {
  addSharedIndex(informer, 'controller', controllerUid, OWNER);
}

export function controlledBy<T extends KubeObject>(informer: Informer<T>, uid: string): T[] {
  return informer.byIndex('controller', uid);
}

export function orphansIn<T extends KubeObject>(informer: Informer<T>, namespace: string): T[] {
  return informer.byIndex('controller', `${NO_CONTROLLER}${namespace}`);
}

/** Object of the kind that controls `object`; undefined if the controller has another kind or does not exist. */
export function ownerIn<T extends KubeObject>(owners: Informer<T>, kind: string, object: KubeObject): T | undefined {
  const reference = controllerOf(object);
  if (reference?.kind !== kind) return undefined;
  const owner = owners.get(`${object.metadata?.namespace ?? ''}/${reference.name}`);
  return owner?.metadata?.uid === reference.uid ? owner : undefined;
}

/** Indexes pods by node. Unassigned pods are found under ''. */
export function indexByNode(informer: Informer<Pod>): void {
  addSharedIndex(informer, 'node', nodeName, OWNER);
}

export function podsOnNode(informer: Informer<Pod>, node: string): Pod[] {
  return informer.byIndex('node', node);
}

/** Indexes pods by the claims that they reference, as `namespace/name`. */
export function indexByClaim(informer: Informer<Pod>): void {
  addSharedIndex(informer, 'claim', claimKeys, OWNER);
}

export function podsWithClaim(informer: Informer<Pod>, claim: string): Pod[] {
  return informer.byIndex('claim', claim);
}
