/**
 * Keeps running containers on the CPUs that are theirs: the shared ones change with every container that gets some for
 * itself. Source: pkg/kubelet/cm/cpumanager reconcileState.
 */
import type { Container } from 'kubernetes-types/core/v1';
import { messageOf } from '../../../base/errors.ts';
import { containerResources } from '../pods/container-config.ts';
import type { PodManager } from '../pods/pod-manager.ts';
import type { PodServices } from '../pods/services.ts';
import { nodeLimits } from './node-limits.ts';

export class Placements {
  readonly #services: PodServices;
  readonly #pods: PodManager;
  /** What was last written, by container id. */
  #applied = new Map<string, string>();
  #running: Promise<void> | undefined;
  #again = false;

  constructor(services: PodServices, pods: PodManager) {
    this.#services = services;
    this.#pods = pods;
  }

  /** Applies soon; changes while it runs lead to one more run. */
  kick(): void {
    this.apply().catch((error: unknown) =>
      this.#services.log.warn('CPUs of containers not updated', { error: messageOf(error) }),
    );
  }

  apply(): Promise<void> {
    if (this.#running !== undefined) {
      this.#again = true;
      return this.#running;
    }
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      const seen = new Map<string, string>();
      for (const { uid, allottedPod: pod } of this.#pods.workers()) {
        const specs: readonly Container[] = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
        for (const { id, name, state } of this.#services.view.get(uid).containers) {
          const container = specs.find((each) => each.name === name);
          if (state !== 'running' || container === undefined) continue;
          const limits = nodeLimits(this.#services, pod, container);
          const wanted = JSON.stringify(limits.placement);
          seen.set(id, wanted);
          if (this.#applied.get(id) === wanted) continue;
          // One that has just ended is no reason to leave out the others.
          await this.#services.runtime
            .updateContainerResources(id, containerResources(pod, container, limits))
            .catch((error: unknown) => {
              seen.delete(id);
              this.#services.log.v(2, 'CPUs of a container not updated', { container: name, error: messageOf(error) });
            });
        }
      }
      this.#applied = seen;
    } while (this.#again);
  }
}
