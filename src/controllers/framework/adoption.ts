/** Executes adoption and release of objects by their controller. Source: upstream's controller_ref_manager. */
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { ResourceClient } from '../../client/types.ts';
import { type Claim, controllerReference } from './core/ownership.ts';

export interface ClaimPorts<O extends KubeObject, T extends KubeObject> {
  readonly ownerType: ResourceType<O>;
  readonly owners: ResourceClient<O>;
  readonly objects: ResourceClient<T>;
}

/**
 * Adopts and releases as planned. The owner is read live before the first adoption, because an owner that was deleted,
 * or re-created under the same name, must not adopt. Resolves with the objects that belong to the owner, without those
 * deleted in the meantime.
 */
export async function carryOutClaim<O extends KubeObject, T extends KubeObject>(
  owner: O,
  claim: Claim<T>,
  ports: ClaimPorts<O, T>,
): Promise<T[]> {
  if (claim.adopt.length === 0 && claim.release.length === 0) return claim.claimed;
  const uid = owner.metadata?.uid ?? '';
  const lost = new Set<T>();
  if (claim.adopt.length > 0) {
    const live = await ports.owners.get(owner.metadata?.name ?? '', owner.metadata?.namespace);
    if (live.metadata?.uid !== uid || live.metadata?.deletionTimestamp !== undefined) {
      throw new Error(
        `${ports.ownerType.kind} ${owner.metadata?.name ?? ''} is deleted or terminating and cannot adopt`,
      );
    }
  }
  for (const object of claim.adopt) {
    const adopted = await patchOwner(ports.objects, object, {
      metadata: { uid: object.metadata?.uid ?? '', ownerReferences: [controllerReference(owner, ports.ownerType)] },
    });
    if (!adopted) lost.add(object);
  }
  for (const object of claim.release) {
    await patchOwner(ports.objects, object, {
      metadata: { uid: object.metadata?.uid ?? '', ownerReferences: [{ $patch: 'delete', uid }] },
    });
  }
  return claim.claimed.filter((object) => !lost.has(object));
}

/**
 * Patches the owner references of an object. Returns false, without a change, when the object was deleted or replaced
 * by another object of the same name.
 */
async function patchOwner<T extends KubeObject>(client: ResourceClient<T>, object: T, body: unknown): Promise<boolean> {
  try {
    await client.patch(object.metadata?.name ?? '', object.metadata?.namespace, 'strategic', body);
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Invalid')) return false;
    throw error;
  }
}
