import type { Pod } from '../../api/generated/core/v1.ts';
import type { PodSource } from '../../api/podspec/host-root-image.ts';
import type { Uid } from '../../base/brand.ts';
import { fullName } from '../sources/static-pod.ts';
import { isSystemCritical } from './critical.ts';
import type { PodWorker } from './pod-worker.ts';

export interface ManagedPod {
  readonly worker: PodWorker;
  readonly source: PodSource;
  /** Whether no source contains the pod any longer. The entry is removed after the pod has ended. */
  gone: boolean;
}

/**
 * Pods of this node: their workers, the static pods of the manifest sources, and the mirror pods of the API. Only the
 * PodManager changes the table. All other parts of the kubelet only read it; they are created later and declare the
 * methods that they use.
 */
export class PodTable {
  readonly managed = new Map<Uid, ManagedPod>();
  readonly staticPods = new Map<PodSource, Map<Uid, Pod>>();
  /** Mirror pods by `fullName`. */
  readonly mirrors = new Map<string, Pod>();
  /** Whether the list of API pods is complete. */
  apiHasSynced = false;
  /** Whether API pods were added that were bound to this node when the API server was last reachable. */
  hasLastKnownPods = false;

  /** Whether only last known API pods are available because the API has not been listed yet. */
  get isCutOff(): boolean {
    return this.hasLastKnownPods && !this.apiHasSynced;
  }

  worker(uid: Uid): PodWorker | undefined {
    return this.managed.get(uid)?.worker;
  }

  workers(): PodWorker[] {
    return [...this.managed.values()].map((each) => each.worker);
  }

  /** Pods that hold or will hold resources of the node. */
  activePods(): Pod[] {
    return this.workers()
      .filter((worker) => !worker.finished)
      .map((worker) => worker.pod);
  }

  /** Pods of this node. Undefined while the list of API pods is incomplete. */
  knownPods(withoutApi: boolean): Pod[] | undefined {
    return withoutApi || this.apiHasSynced || this.isCutOff ? this.activePods() : undefined;
  }

  /**
   * Other admitted pods whose containers have not ended. Returns them with their allocated resources instead of the
   * requested ones. Source: pkg/kubelet filterOutInactivePods.
   */
  otherPods(pod: Pod): Pod[] {
    return this.workers()
      .filter((worker) => !worker.finished && !worker.containersEnded && !worker.rejected)
      .filter(({ uid }) => uid !== pod.metadata?.uid)
      .map((worker) => worker.allottedPod);
  }

  /**
   * Static pods and system-critical pods are never evicted. While the host is disconnected, no pod is evicted, because
   * no controller would replace it. Source: pkg/kubelet/types IsCriticalPod.
   */
  isCritical({ uid, pod }: PodWorker): boolean {
    if (this.isCutOff) return true;
    return this.managed.get(uid)?.source !== 'api' || isSystemCritical(pod);
  }

  /** Finds a worker by the name that clients use. The name of a mirror pod maps to its static pod. */
  byName(namespace: string, name: string): PodWorker | undefined {
    let found: PodWorker | undefined;
    for (const { worker, gone } of this.managed.values()) {
      const { metadata } = worker.pod;
      if (metadata?.name !== name || metadata.namespace !== namespace) continue;
      if (!gone) return worker;
      found ??= worker;
    }
    return found;
  }

  allStaticPods(): Pod[] {
    return [...this.staticPods.values()].flatMap((pods) => [...pods.values()]);
  }

  mirrorOf(pod: Pod): Pod | undefined {
    return this.mirrors.get(fullName(pod));
  }

  allMirrors(): Pod[] {
    return [...this.mirrors.values()];
  }

  wake(uids: readonly Uid[]): void {
    for (const uid of uids) this.managed.get(uid)?.worker.wake();
  }

  wakeAll(): void {
    for (const { worker } of this.managed.values()) worker.wake();
  }
}
