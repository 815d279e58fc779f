/** Observation and deletion of pods that the objects of a controller own, with the controller's expectations. */
import type { Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { ChangeHandler } from '../../client/types.ts';
import { controllerOf, mayBeAdopted } from './core/ownership.ts';
import type { Expectations } from './expectations.ts';
import type { PodControl } from './pod-control.ts';

export interface PodOwners {
  /** Key of the object that controls the pod; undefined if the pod belongs to no object of the controller. */
  keyOf(pod: Pod): string | undefined;
  /** Queues the object. */
  wake(key: string): void;
  /** Queues the objects that may adopt the pod, which has no controller. */
  wakeAdopters(pod: Pod): void;
}

/** Records changes of pods as observed, and queues the objects that control the pods or may adopt them. */
export function observePods(expectations: Expectations, owners: PodOwners): Required<ChangeHandler<Pod>> {
  const wakeAdopters = (pod: Pod): void => {
    if (controllerOf(pod) === undefined) owners.wakeAdopters(pod);
  };
  return {
    added: (pod) => {
      const key = owners.keyOf(pod);
      if (key === undefined) return wakeAdopters(pod);
      if (isTerminating(pod)) expectations.deletionObserved(key, uidOf(pod));
      else expectations.creationObserved(key);
      owners.wake(key);
    },
    updated: (pod, old) => {
      const key = owners.keyOf(pod);
      const oldKey = owners.keyOf(old);
      if (oldKey !== undefined && oldKey !== key) owners.wake(oldKey);
      if (key === undefined) {
        if (oldKey !== undefined || mayBeAdopted(pod, old)) wakeAdopters(pod);
        return;
      }
      // A deletion counts as observed when graceful termination begins, because the object may exist for a long time
      // after that.
      if (isTerminating(pod)) expectations.deletionObserved(key, uidOf(pod));
      owners.wake(key);
    },
    deleted: (pod) => {
      const key = owners.keyOf(pod);
      if (key === undefined) return;
      expectations.deletionObserved(key, uidOf(pod));
      owners.wake(key);
    },
  };
}

/** Pods to delete, of one object. */
export interface PodDeletions {
  readonly owner: KubeObject;
  /** Key of the owner in the expectations, which already expect the deletions. */
  readonly key: string;
  readonly pods: readonly Pod[];
}

/** Deletes pods concurrently. Returns the results in the order of the pods. */
export function deletePods(
  control: PodControl,
  expectations: Expectations,
  { owner, key, pods }: PodDeletions,
): Promise<PromiseSettledResult<void>[]> {
  return Promise.allSettled(
    pods.map(async (pod) => {
      let isEventExpected = false;
      try {
        isEventExpected = await control.delete(owner, pod);
      } finally {
        if (!isEventExpected) expectations.deletionObserved(key, uidOf(pod));
      }
    }),
  );
}

const isTerminating = (pod: Pod): boolean => pod.metadata?.deletionTimestamp !== undefined;
const uidOf = (pod: Pod): string => pod.metadata?.uid ?? '';
