/** The executor that replica sets and replication controllers share. The decisions are in core/reconcile/replicaset. */
import type { Pod, PodTemplateSpec } from 'kubernetes-types/core/v1';
import { type KubeObject, objectKey, type ResourceType, splitKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { isEverything, type LabelSelector, matchesLabels } from '../../base/selector.ts';
import type { Informer } from '../../client/types.ts';
import { controllerOf, controllerReference } from '../../core/reconcile/ownership.ts';
import {
  planReplicaStatus,
  planReplicas,
  podFromTemplate,
  type ReplicaFailure,
  type ReplicaOwner,
  type ReplicaSnapshot,
} from '../../core/reconcile/replicaset/plan.ts';
import { carryOutClaim } from './claim.ts';
import { Expectations } from './expectations.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { controlledBy, indexByController, orphansIn } from './indices.ts';
import { createPodControl, isNamespaceTerminating } from './pod-control.ts';
import { slowStart } from './slow-start.ts';

/** How a kind shows the fields the planner needs. */
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
  const owners = handle.informer(kind.type);
  const pods = handle.informer(resources.pods);
  const ownerClient = handle.writer(kind.type);
  const podClient = handle.writer(resources.pods);
  const control = createPodControl(podClient, handle.recorder);
  indexByController(pods);
  indexByController(owners);

  return (scope) => {
    const expectations = new Expectations(handle.clock);
    const queue = scope.queue(sync, 8);

    scope.onChange(owners, {
      added: (owner) => queue.add(objectKey(owner)),
      updated: (owner) => queue.add(objectKey(owner)),
      deleted: (owner) => {
        expectations.forget(objectKey(owner));
        queue.add(objectKey(owner));
      },
    });

    const ownerKeyOf = (pod: Pod): string | undefined => {
      const reference = controllerOf(pod);
      if (reference?.kind !== kind.type.kind) return undefined;
      const owner = owners.get(`${pod.metadata?.namespace ?? ''}/${reference.name}`);
      return owner?.metadata?.uid === reference.uid ? objectKey(owner) : undefined;
    };
    const wakeAdopters = (pod: Pod): void => {
      if (controllerOf(pod) !== undefined) return;
      for (const owner of owners.list(pod.metadata?.namespace)) {
        const selector = kind.selector(owner);
        if (!isEverything(selector) && matchesLabels(selector, pod.metadata?.labels)) queue.add(objectKey(owner));
      }
    };

    scope.onChange(pods, {
      added: (pod) => {
        const key = ownerKeyOf(pod);
        if (key === undefined) wakeAdopters(pod);
        else if (pod.metadata?.deletionTimestamp === undefined) {
          expectations.creationObserved(key);
          queue.add(key);
        } else {
          expectations.deletionObserved(key, pod.metadata.uid ?? '');
          queue.add(key);
        }
      },
      updated: (pod, old) => {
        const key = ownerKeyOf(pod);
        const oldKey = ownerKeyOf(old);
        if (oldKey !== undefined && oldKey !== key) queue.add(oldKey);
        if (key === undefined) {
          if (oldKey !== undefined || pod.metadata?.labels !== old.metadata?.labels) wakeAdopters(pod);
          return;
        }
        // The graceful end has begun: this is when a deletion counts as seen, the record itself may stay for long.
        if (pod.metadata?.deletionTimestamp !== undefined) expectations.deletionObserved(key, pod.metadata.uid ?? '');
        queue.add(key);
      },
      deleted: (pod) => {
        const key = ownerKeyOf(pod);
        if (key === undefined) return;
        expectations.deletionObserved(key, pod.metadata?.uid ?? '');
        queue.add(key);
      },
    });

    async function sync(key: string): Promise<void> {
      const owner = owners.get(key);
      if (owner === undefined) {
        expectations.forget(key);
        return;
      }
      const { namespace = '' } = splitKey(key);
      const snapshot: ReplicaSnapshot = {
        owner,
        selector: kind.selector(owner),
        replicas: kind.replicas(owner),
        minReadySeconds: kind.minReadySeconds(owner),
        template: kind.template(owner),
        candidates: [...controlledBy(pods, owner.metadata?.uid ?? ''), ...orphansIn(pods, namespace)],
        related: kind.relatedUids(owner, owners).flatMap((uid) => controlledBy(pods, uid)),
        settled: expectations.settled(key),
      };
      const plan = planReplicas(snapshot, handle.plan());
      const claimed = await carryOutClaim(owner, plan.claim, {
        ownerType: kind.type,
        owners: ownerClient,
        objects: podClient,
      });
      const failure = await carryOut(key, owner, snapshot, plan.create, plan.delete);
      const next = planReplicaStatus(snapshot, claimed, failure?.condition, handle.plan());
      if (next.status !== undefined) {
        await ownerClient.update({ ...owner, status: next.status }, { subresource: 'status' });
      }
      if (next.recheckAfterMs !== undefined) queue.addAfter(key, next.recheckAfterMs);
      if (failure !== undefined) throw failure.error;
    }

    async function carryOut(
      key: string,
      owner: T,
      snapshot: ReplicaSnapshot,
      create: number,
      doomed: readonly Pod[],
    ): Promise<{ readonly condition: ReplicaFailure; readonly error: unknown } | undefined> {
      if (create > 0) {
        const reference = controllerReference(owner, kind.type);
        expectations.expectCreations(key, create);
        const { succeeded, error } = await slowStart(create, () =>
          control.create(owner, podFromTemplate(owner, snapshot.template, reference)),
        );
        expectations.creationObserved(key, create - succeeded);
        if (error === undefined || isNamespaceTerminating(error)) return undefined;
        return { condition: { reason: 'FailedCreate', message: messageOf(error) }, error };
      }
      if (doomed.length === 0) return undefined;
      expectations.expectDeletions(
        key,
        doomed.map((pod) => pod.metadata?.uid ?? ''),
      );
      const results = await Promise.allSettled(
        doomed.map(async (pod) => {
          let awaited = false;
          try {
            awaited = await control.delete(owner, pod);
          } finally {
            if (!awaited) expectations.deletionObserved(key, pod.metadata?.uid ?? '');
          }
        }),
      );
      const failed = results.find((result) => result.status === 'rejected');
      if (failed === undefined || isApiError(failed.reason, 'NotFound')) return undefined;
      return { condition: { reason: 'FailedDelete', message: messageOf(failed.reason) }, error: failed.reason };
    }
  };
}
