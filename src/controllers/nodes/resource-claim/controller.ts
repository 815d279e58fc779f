/** Device claims of pods. Plan in controllers/nodes/resource-claim. */

import { extendedClaimStatus } from '../../../api/devices/extended-resources.ts';
import type { ResourceClaim } from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { candidateWaker } from '../../framework/candidates.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { CLAIM_FINALIZER, claimNameOf, claimsOf, planClaim, planPodClaims } from './plan.ts';

export const resourceClaimController: ControllerSpec = {
  name: 'resourceclaim',
  eventSource: 'resource_claim',
  reads: [resources.pods, resources.resourceClaims, resources.resourceClaimTemplates],
  writes: [resources.pods, resources.resourceClaims],
  prepare,
};

const POD = 'pod:';
const CLAIM = 'claim:';

function prepare(handle: ControllerHandle): ControllerRun {
  const pods = handle.informer(resources.pods);
  const claims = handle.informer(resources.resourceClaims);
  const templates = handle.informer(resources.resourceClaimTemplates);
  const podClient = handle.writer(resources.pods);
  const claimClient = handle.writer(resources.resourceClaims);
  const created = new CreatedClaims();

  const syncPod = async (key: string): Promise<void> => {
    const pod = pods.get(key);
    if (pod === undefined) return;
    const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
    const plan = planPodClaims(pod, {
      claims: [...claims.list(namespace), ...created.of(uid)],
      template: (each) => templates.get(`${namespace}/${each}`),
    });
    const failed = (message: string): void =>
      handle.recorder.event(pod, 'Warning', 'FailedResourceClaimCreation', message);
    const recorded = [...plan.record];
    for (const { entry, claim } of plan.create) {
      try {
        const made = await claimClient.create(claim);
        created.add(uid, made);
        recorded.push({ name: entry, resourceClaimName: made.metadata?.name ?? '' });
      } catch (error) {
        failed(`PodResourceClaim ${entry}: create resource claim: ${messageOf(error)}`);
        throw error;
      }
    }
    if (recorded.length > 0) {
      const patch = { metadata: { uid }, status: { resourceClaimStatuses: recorded } };
      await ignoreNotFound(() => podClient.patch(name, namespace, 'strategic', patch, { subresource: 'status' }));
    }
    for (const claim of plan.reserve) {
      const reservedFor = [...(claim.status?.reservedFor ?? []), { resource: 'pods', name, uid }];
      await claimClient.update({ ...claim, status: { ...claim.status, reservedFor } }, { subresource: 'status' });
    }
    for (const problem of plan.problems) failed(problem);
    if (plan.problems.length > 0) throw new Error(plan.problems.join('; '));
  };

  const syncClaim = async (key: string): Promise<void> => {
    const claim = claims.get(key);
    if (claim === undefined) return;
    const { namespace = '', name = '', uid } = claim.metadata ?? {};
    const consumers = new Map<string, Pod | undefined>();
    for (const consumer of consumersOf(claim))
      consumers.set(consumer, pods.get(`${namespace}/${consumer}`) ?? (await live(consumer, namespace)));
    const plan = planClaim(claim, (each) => consumers.get(each));
    if (plan.kind === 'keep') return;
    if (plan.kind === 'delete') {
      await ignoreNotFound(() =>
        claimClient.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } }),
      );
      return;
    }
    await ignoreNotFound(async () => {
      const { allocation, ...rest } = claim.status ?? {};
      const kept = plan.deallocate || allocation === undefined ? {} : { allocation };
      const status = { ...rest, ...kept, reservedFor: [...plan.reservedFor] };
      const released = await claimClient.update({ ...claim, status }, { subresource: 'status' });
      if (!plan.deallocate) return;
      const finalizers = (released.metadata?.finalizers ?? []).filter((each) => each !== CLAIM_FINALIZER);
      await claimClient.update({ ...released, metadata: { ...released.metadata, finalizers } });
    });
  };

  /** Reads a pod live if the informer lacks it, because the pod may be newer than the informer's copy. */
  async function live(name: string, namespace: string): Promise<Pod | undefined> {
    try {
      return await podClient.get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  return (scope) => {
    created.clear();
    const queue = scope.queue((key) =>
      key.startsWith(POD) ? syncPod(key.slice(POD.length)) : syncClaim(key.slice(CLAIM.length)),
    );
    const wakePod = (pod: Pod): void => {
      const extended = extendedClaimStatus(pod)?.resourceClaimName;
      if (extended !== undefined) queue.add(`${CLAIM}${pod.metadata?.namespace ?? ''}/${extended}`);
      const entries = claimsOf(pod);
      if (entries.length === 0) return;
      queue.add(POD + objectKey(pod));
      for (const entry of entries) {
        const name = claimNameOf(pod, entry);
        if (name !== undefined) queue.add(`${CLAIM}${pod.metadata?.namespace ?? ''}/${name}`);
      }
    };
    const wakeClaim = (claim: ResourceClaim): void => {
      created.seen(claim);
      queue.add(CLAIM + objectKey(claim));
      const { namespace } = splitKey(objectKey(claim));
      for (const consumer of consumersOf(claim)) {
        const pod = pods.get(`${namespace ?? ''}/${consumer}`);
        if (pod !== undefined) queue.add(POD + objectKey(pod));
      }
    };
    scope.onChange(pods, {
      added: wakePod,
      updated: wakePod,
      deleted: (pod) => {
        created.ended(pod.metadata?.uid ?? '');
        wakePod(pod);
      },
    });
    scope.onChange(claims, { added: wakeClaim, updated: wakeClaim, deleted: wakeClaim });
    const wakePods = candidateWaker(scope, pods, wakePod);
    scope.onChange(templates, {
      added: ({ metadata }) =>
        wakePods(metadata?.namespace, (pod) =>
          claimsOf(pod).some(({ resourceClaimTemplateName }) => resourceClaimTemplateName === metadata?.name),
        ),
    });
  };
}

/** Names of the pods that use the claim and of the pod that it was created for. */
function consumersOf({ metadata, status }: ResourceClaim): string[] {
  const reserved = (status?.reservedFor ?? []).flatMap(({ resource, name }) =>
    resource === 'pods' && name !== undefined ? [name] : [],
  );
  const owners = (metadata?.ownerReferences ?? []).filter(({ kind }) => kind === 'Pod').map(({ name }) => name);
  return [...new Set([...reserved, ...owners])];
}

/**
 * Created claims that the informer has not shown yet, by UID of the pod. Without this record a pod could get two
 * claims.
 */
class CreatedClaims {
  readonly #byPod = new Map<string, readonly ResourceClaim[]>();

  of(pod: string): readonly ResourceClaim[] {
    return this.#byPod.get(pod) ?? [];
  }

  add(pod: string, claim: ResourceClaim): void {
    this.#byPod.set(pod, [...this.of(pod), claim]);
  }

  /** Must be called when the informer shows the claim or its deletion. */
  seen({ metadata }: ResourceClaim): void {
    for (const { uid } of metadata?.ownerReferences ?? []) {
      const left = this.of(uid).filter((each) => each.metadata?.uid !== metadata?.uid);
      if (left.length > 0) this.#byPod.set(uid, left);
      else this.#byPod.delete(uid);
    }
  }

  ended(pod: string): void {
    this.#byPod.delete(pod);
  }

  clear(): void {
    this.#byPod.clear();
  }
}
