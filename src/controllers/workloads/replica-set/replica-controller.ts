/** Creates and deletes the pods of replica sets and replication controllers, as `plan.ts` computes. */
import type { Pod, PodTemplateSpec } from '../../../api/generated/core/v1.ts';
import { type KubeObject, objectKey, type ResourceType, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { isEverything, type LabelSelector, matchesLabels } from '../../../base/selector.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { carryOutClaim } from '../../framework/adoption.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import { Expectations } from '../../framework/expectations.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { deletePods, observePods } from '../../framework/owned-pods.ts';
import { controlledBy, indexByController, orphansIn, ownerIn } from '../../framework/owner-indices.ts';
import { createPodControl, isNamespaceTerminating, type PodControl } from '../../framework/pod-control.ts';
import { slowStart } from '../../framework/slow-start.ts';
import {
  planReplicaStatus,
  planReplicas,
  podFromTemplate,
  type ReplicaFailure,
  type ReplicaOwner,
  type ReplicaSnapshot,
} from './plan.ts';

/** Describes a kind and maps its fields to those of the planner. */
export interface ReplicaKind<T extends KubeObject & ReplicaOwner> {
  readonly type: ResourceType<T>;
  selector(owner: T): LabelSelector;
  replicas(owner: T): number;
  minReadySeconds(owner: T): number;
  template(owner: T): PodTemplateSpec | undefined;
  relatedUids(owner: T, informer: Informer<T>): string[];
}

export function replicaController<T extends KubeObject & ReplicaOwner>(
  name: string,
  eventSource: string,
  kind: ReplicaKind<T>,
): ControllerSpec {
  return {
    name,
    eventSource,
    reads: [kind.type, resources.pods],
    writes: [kind.type, resources.pods],
    prepare: (handle) => prepare(handle, kind),
  };
}

function prepare<T extends KubeObject & ReplicaOwner>(handle: ControllerHandle, kind: ReplicaKind<T>): ControllerRun {
  const access: Access<T> = {
    owners: handle.informer(kind.type),
    pods: handle.informer(resources.pods),
    ownerClient: handle.writer(kind.type),
    podClient: handle.writer(resources.pods),
  };
  indexByController(access.pods);
  indexByController(access.owners);
  return (scope) => new ReplicaController<T>(handle, kind, access, scope).start();
}

interface Access<T extends KubeObject & ReplicaOwner> {
  readonly owners: Informer<T>;
  readonly pods: Informer<Pod>;
  readonly ownerClient: ResourceClient<T>;
  readonly podClient: ResourceClient<Pod>;
}

class ReplicaController<T extends KubeObject & ReplicaOwner> extends ControllerTerm {
  readonly #kind: ReplicaKind<T>;
  readonly #access: Access<T>;
  readonly #control: PodControl;
  readonly #expectations: Expectations;
  readonly #wakeOwners: CandidateWaker<T>;

  constructor(handle: ControllerHandle, kind: ReplicaKind<T>, access: Access<T>, scope: RunScope) {
    super(handle, scope, 8);
    this.#kind = kind;
    this.#access = access;
    this.#control = createPodControl(access.podClient, handle.recorder);
    this.#expectations = new Expectations(handle.clock);
    this.#wakeOwners = candidateWaker(scope, access.owners, (owner) => this.queue.add(objectKey(owner)));
  }

  override start(): void {
    this.scope.onChange(this.#access.owners, {
      added: (owner) => this.queue.add(objectKey(owner)),
      updated: (owner) => this.queue.add(objectKey(owner)),
      deleted: (owner) => {
        this.#expectations.forget(objectKey(owner));
        this.queue.add(objectKey(owner));
      },
    });
    const owners = {
      keyOf: (pod: Pod) => this.#ownerKeyOf(pod),
      wake: (key: string) => this.queue.add(key),
      wakeAdopters: (pod: Pod) => this.#wakeAdopters(pod),
    };
    this.scope.onChange(this.#access.pods, observePods(this.#expectations, owners));
  }

  #ownerKeyOf(pod: Pod): string | undefined {
    const owner = ownerIn(this.#access.owners, this.#kind.type.kind, pod);
    return owner === undefined ? undefined : objectKey(owner);
  }

  #wakeAdopters(pod: Pod): void {
    this.#wakeOwners(pod.metadata?.namespace, (owner) => {
      const selector = this.#kind.selector(owner);
      return !isEverything(selector) && matchesLabels(selector, pod.metadata?.labels);
    });
  }

  protected override async sync(key: string): Promise<void> {
    const owner = this.#access.owners.get(key);
    if (owner === undefined) {
      this.#expectations.forget(key);
      return;
    }
    const { namespace = '' } = splitKey(key);
    const snapshot: ReplicaSnapshot = {
      owner,
      selector: this.#kind.selector(owner),
      replicas: this.#kind.replicas(owner),
      minReadySeconds: this.#kind.minReadySeconds(owner),
      template: this.#kind.template(owner),
      candidates: [
        ...controlledBy(this.#access.pods, owner.metadata?.uid ?? ''),
        ...orphansIn(this.#access.pods, namespace),
      ],
      related: this.#kind
        .relatedUids(owner, this.#access.owners)
        .flatMap((uid) => controlledBy(this.#access.pods, uid)),
      settled: this.#expectations.settled(key),
    };
    const plan = planReplicas(snapshot, this.handle.plan());
    const claimed = await carryOutClaim(owner, plan.claim, {
      ownerType: this.#kind.type,
      owners: this.#access.ownerClient,
      objects: this.#access.podClient,
    });
    const failure = await this.#carryOut(key, owner, snapshot, plan.create, plan.delete);
    const next = planReplicaStatus(snapshot, claimed, failure?.condition, this.handle.plan());
    if (next.status !== undefined) {
      await this.#access.ownerClient.update({ ...owner, status: next.status }, { subresource: 'status' });
    }
    if (next.recheckAfterMs !== undefined) this.queue.addAfter(key, next.recheckAfterMs);
    if (failure !== undefined) throw failure.error;
  }

  async #carryOut(
    key: string,
    owner: T,
    snapshot: ReplicaSnapshot,
    create: number,
    doomed: readonly Pod[],
  ): Promise<{ readonly condition: ReplicaFailure; readonly error: unknown } | undefined> {
    if (create > 0) {
      const reference = controllerReference(owner, this.#kind.type);
      this.#expectations.expectCreations(key, create);
      const { succeeded, error } = await slowStart(create, () =>
        this.#control.create(owner, podFromTemplate(owner, snapshot.template, reference)),
      );
      this.#expectations.creationObserved(key, create - succeeded);
      if (error === undefined || isNamespaceTerminating(error)) return undefined;
      return { condition: { reason: 'FailedCreate', message: messageOf(error) }, error };
    }
    if (doomed.length === 0) return undefined;
    this.#expectations.expectDeletions(
      key,
      doomed.map((pod) => pod.metadata?.uid ?? ''),
    );
    const results = await deletePods(this.#control, this.#expectations, { owner, key, pods: doomed });
    const failed = results.find((result) => result.status === 'rejected');
    if (failed === undefined || isApiError(failed.reason, 'NotFound')) return undefined;
    return { condition: { reason: 'FailedDelete', message: messageOf(failed.reason) }, error: failed.reason };
  }
}
