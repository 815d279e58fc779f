/** Writes to device claims. Source: pkg/scheduler/framework/plugins/dynamicresources. */

import { EXTENDED_CLAIM_ANNOTATION } from '../../api/devices/extended-resources.ts';
import type { ResourceClaim } from '../../api/devices/types.ts';
import type { ContainerExtendedResourceRequest } from '../../api/generated/core/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import { resources } from '../../api/resources.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { ApiClient } from '../../client/types.ts';
import type { Allocation } from '../core/devices/device-results.ts';

/**
 * Finalizer that protects an allocated claim from deletion while pods use it. The resourceclaim controller removes it.
 */
const FINALIZER = 'resource.kubernetes.io/delete-protection';

export class ClaimWrites {
  readonly #client: ApiClient;
  readonly #nowMs: () => number;

  constructor(client: ApiClient, nowMs: () => number) {
    this.#client = client;
    this.#nowMs = nowMs;
  }

  /** Writes the allocation of the claim unless it has one, and records that the pod uses the claim. */
  async reserve(pod: PodInfo, known: ResourceClaim, chosen: Allocation | undefined): Promise<ResourceClaim> {
    const client = this.#client.resource(resources.resourceClaims);
    const { name = '', namespace = '', uid = '' } = known.metadata ?? {};
    let claim = await client.get(name, namespace);
    if (claim.metadata?.uid !== uid) throw new Error(`resourceclaim "${name}" was replaced`);
    if (claim.status?.allocation !== undefined && chosen !== undefined && known.status?.allocation === undefined)
      throw new Error(`resourceclaim "${name}" was allocated by another scheduler`);
    const allocation = claim.status?.allocation ?? (chosen === undefined ? undefined : this.#stamped(chosen));
    if (allocation === undefined) throw new Error(`resourceclaim "${name}" lost its allocation`);
    const finalizers = claim.metadata?.finalizers ?? [];
    if (!finalizers.includes(FINALIZER))
      claim = await client.update({
        ...claim,
        metadata: { ...claim.metadata, finalizers: [...finalizers, FINALIZER] },
      });
    const reservedFor = claim.status?.reservedFor ?? [];
    if (claim.status?.allocation !== undefined && reservedFor.some((each) => each.uid === pod.uid)) return claim;
    const consumer = { resource: 'pods', name: pod.pod.metadata?.name ?? '', uid: pod.uid };
    const status = { ...claim.status, allocation, reservedFor: [...reservedFor, consumer] };
    return client.update({ ...claim, status }, { subresource: 'status' });
  }

  create(claim: ResourceClaim): Promise<ResourceClaim> {
    return this.#client.resource(resources.resourceClaims).create(claim);
  }

  /**
   * Records in the pod which request of the claim belongs to which container. The kubelet assigns devices accordingly.
   */
  async recordExtended(
    { pod }: PodInfo,
    claim: ResourceClaim,
    requestMappings: readonly ContainerExtendedResourceRequest[],
  ) {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const status = {
      extendedResourceClaimStatus: { requestMappings, resourceClaimName: claim.metadata?.name ?? '' },
    };
    const patch = { metadata: { uid }, status };
    await this.#client.resource(resources.pods).patch(name, namespace, 'strategic', patch, { subresource: 'status' });
  }

  /** Removes the pod's reservation of the claim, because the pod was not bound. */
  async release(pod: PodInfo, claim: ResourceClaim): Promise<void> {
    const client = this.#client.resource(resources.resourceClaims);
    const { name = '', namespace } = claim.metadata ?? {};
    const now = await client.get(name, namespace);
    const reservedFor = (now.status?.reservedFor ?? []).filter((each) => each.uid !== pod.uid);
    if (reservedFor.length === (now.status?.reservedFor ?? []).length) return;
    await client.update({ ...now, status: { ...now.status, reservedFor } }, { subresource: 'status' });
  }

  /**
   * Removes the allocation. Fails if the claim has changed since it was read, so that a pod that has reserved it
   * meanwhile keeps its devices.
   */
  async deallocate(claim: ResourceClaim): Promise<void> {
    const { allocation: _allocation, reservedFor: _reserved, devices: _devices, ...status } = claim.status ?? {};
    await this.#client.resource(resources.resourceClaims).update({ ...claim, status }, { subresource: 'status' });
  }

  /** Deletes the claim for the pod's extended resources, unless the pod is bound. */
  async deleteExtended({ pod }: PodInfo, claim: ResourceClaim): Promise<void> {
    const client = this.#client.resource(resources.resourceClaims);
    const { name = '', namespace, uid } = claim.metadata ?? {};
    if (claim.metadata?.annotations?.[EXTENDED_CLAIM_ANNOTATION] !== 'true') return;
    try {
      const { name: podName = '', uid: podUid } = pod.metadata ?? {};
      const current = await this.#client.resource(resources.pods).get(podName, namespace);
      if (current.metadata?.uid === podUid && (current.spec?.nodeName ?? '') !== '') return;
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
    try {
      const now = await client.get(name, namespace);
      if (now.metadata?.uid !== uid) return;
      const finalizers = (now.metadata?.finalizers ?? []).filter((each) => each !== FINALIZER);
      if (finalizers.length < (now.metadata?.finalizers ?? []).length)
        await client.update({ ...now, metadata: { ...now.metadata, finalizers } });
      await client.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  #stamped(allocation: Allocation): Allocation {
    const allocationTimestamp = timestamp(this.#nowMs());
    return { ...allocation, allocationTimestamp };
  }
}
