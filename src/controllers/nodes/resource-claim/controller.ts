/** Creates the ResourceClaims of pods, reserves them for the pods, and deletes claims that are no longer needed. */

import { extendedClaimStatus } from '../../../api/devices/extended-resources.ts';
import type { ResourceClaim, ResourceClaimTemplate } from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { CLAIM_FINALIZER, type ClaimPlan, claimNameOf, claimsOf, planClaim, planPodClaims } from './plan.ts';

export const resourceClaimController: ControllerSpec = {
  name: 'resourceclaim',
  eventSource: 'resource_claim',
  reads: [resources.pods, resources.resourceClaims, resources.resourceClaimTemplates],
  writes: [resources.pods, resources.resourceClaims],
  prepare,
};

/** The queue contains keys of pods and of claims with these prefixes. */
const POD = 'pod:';
const CLAIM = 'claim:';

type ReleasePlan = Extract<ClaimPlan, { readonly kind: 'release' }>;

interface Access {
  readonly pods: Informer<Pod>;
  readonly claims: Informer<ResourceClaim>;
  readonly templates: Informer<ResourceClaimTemplate>;
  readonly podClient: ResourceClient<Pod>;
  readonly claimClient: ResourceClient<ResourceClaim>;
}

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    pods: handle.informer(resources.pods),
    claims: handle.informer(resources.resourceClaims),
    templates: handle.informer(resources.resourceClaimTemplates),
    podClient: handle.writer(resources.pods),
    claimClient: handle.writer(resources.resourceClaims),
  };
  return (scope) => new ResourceClaimController(handle, access, scope).start();
}

class ResourceClaimController extends ControllerTerm {
  readonly #access: Access;
  readonly #created = new CreatedClaims();

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope);
    this.#access = access;
  }

  override start(): void {
    const { pods, claims, templates } = this.#access;
    this.scope.onChange(pods, {
      added: this.#wakePod,
      updated: this.#wakePod,
      deleted: (pod) => {
        this.#created.ended(pod.metadata?.uid ?? '');
        this.#wakePod(pod);
      },
    });
    this.scope.onChange(claims, { added: this.#wakeClaim, updated: this.#wakeClaim, deleted: this.#wakeClaim });
    const wakePods = candidateWaker(this.scope, pods, this.#wakePod);
    this.scope.onChange(templates, {
      added: ({ metadata }) =>
        wakePods(metadata?.namespace, (pod) =>
          claimsOf(pod).some(({ resourceClaimTemplateName }) => resourceClaimTemplateName === metadata?.name),
        ),
    });
  }

  readonly #wakePod = (pod: Pod): void => {
    const namespace = pod.metadata?.namespace ?? '';
    const extended = extendedClaimStatus(pod)?.resourceClaimName;
    if (extended !== undefined) this.queue.add(`${CLAIM}${namespace}/${extended}`);
    const entries = claimsOf(pod);
    if (entries.length === 0) return;
    this.queue.add(POD + objectKey(pod));
    for (const entry of entries) {
      const name = claimNameOf(pod, entry);
      if (name !== undefined) this.queue.add(`${CLAIM}${namespace}/${name}`);
    }
  };

  readonly #wakeClaim = (claim: ResourceClaim): void => {
    this.#created.seen(claim);
    this.queue.add(CLAIM + objectKey(claim));
    const { namespace } = splitKey(objectKey(claim));
    for (const consumer of consumersOf(claim)) {
      const pod = this.#access.pods.get(`${namespace ?? ''}/${consumer}`);
      if (pod !== undefined) this.queue.add(POD + objectKey(pod));
    }
  };

  protected override async sync(key: string): Promise<void> {
    if (key.startsWith(POD)) await this.#syncPod(key.slice(POD.length));
    else await this.#syncClaim(key.slice(CLAIM.length));
  }

  /** Creates the claims of a pod, records their names in its status, and reserves them for it. */
  async #syncPod(key: string): Promise<void> {
    const { pods, claims, templates, podClient } = this.#access;
    const pod = pods.get(key);
    if (pod === undefined) return;
    const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
    const plan = planPodClaims(pod, {
      claims: [...claims.list(namespace), ...this.#created.of(uid)],
      template: (each) => templates.get(`${namespace}/${each}`),
    });
    const recorded = [...plan.record];
    for (const { entry, claim } of plan.create) {
      const created = await this.#create(pod, entry, claim);
      recorded.push({ name: entry, resourceClaimName: created.metadata?.name ?? '' });
    }
    if (recorded.length > 0) {
      const patch = { metadata: { uid }, status: { resourceClaimStatuses: recorded } };
      await ignoreNotFound(() => podClient.patch(name, namespace, 'strategic', patch, { subresource: 'status' }));
    }
    for (const claim of plan.reserve) await this.#reserve(claim, pod);
    for (const problem of plan.problems) this.#reportFailure(pod, problem);
    if (plan.problems.length > 0) throw new Error(plan.problems.join('; '));
  }

  async #create(pod: Pod, entry: string, claim: ResourceClaim): Promise<ResourceClaim> {
    try {
      const created = await this.#access.claimClient.create(claim);
      this.#created.add(pod.metadata?.uid ?? '', created);
      return created;
    } catch (error) {
      this.#reportFailure(pod, `PodResourceClaim ${entry}: create resource claim: ${messageOf(error)}`);
      throw error;
    }
  }

  async #reserve(claim: ResourceClaim, { metadata }: Pod): Promise<void> {
    const consumer = { resource: 'pods', name: metadata?.name ?? '', uid: metadata?.uid ?? '' };
    const reservedFor = [...(claim.status?.reservedFor ?? []), consumer];
    const status = { ...claim.status, reservedFor };
    await this.#access.claimClient.update({ ...claim, status }, { subresource: 'status' });
  }

  #reportFailure(pod: Pod, message: string): void {
    this.handle.recorder.event(pod, 'Warning', 'FailedResourceClaimCreation', message);
  }

  /** Deletes a claim whose pod has ended, or removes the reservations of pods that have ended. */
  async #syncClaim(key: string): Promise<void> {
    const claim = this.#access.claims.get(key);
    if (claim === undefined) return;
    const { namespace = '', name = '', uid } = claim.metadata ?? {};
    const consumers = new Map<string, Pod | undefined>();
    for (const consumer of consumersOf(claim)) consumers.set(consumer, await this.#consumer(consumer, namespace));
    const plan = planClaim(claim, (each) => consumers.get(each));
    if (plan.kind === 'keep') return;
    if (plan.kind === 'delete') {
      const options = uid === undefined ? {} : { preconditions: { uid } };
      await ignoreNotFound(() => this.#access.claimClient.delete(name, namespace, options));
      return;
    }
    await ignoreNotFound(() => this.#release(claim, plan));
  }

  /** Writes the remaining reservations. A claim without reservations loses its allocation, and then its finalizer. */
  async #release(claim: ResourceClaim, { reservedFor, deallocate }: ReleasePlan): Promise<void> {
    const { allocation, ...rest } = claim.status ?? {};
    const kept = deallocate || allocation === undefined ? {} : { allocation };
    const status = { ...rest, ...kept, reservedFor: [...reservedFor] };
    const { claimClient } = this.#access;
    const released = await claimClient.update({ ...claim, status }, { subresource: 'status' });
    if (!deallocate) return;
    const finalizers = (released.metadata?.finalizers ?? []).filter((each) => each !== CLAIM_FINALIZER);
    await claimClient.update({ ...released, metadata: { ...released.metadata, finalizers } });
  }

  /** Reads a pod live if the informer lacks it, because the pod may be newer than the informer's copy. */
  async #consumer(name: string, namespace: string): Promise<Pod | undefined> {
    const known = this.#access.pods.get(`${namespace}/${name}`);
    if (known !== undefined) return known;
    try {
      return await this.#access.podClient.get(name, namespace);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }
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
}
