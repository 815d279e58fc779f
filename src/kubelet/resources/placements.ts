/**
 * Keeps running containers on their assigned CPUs. The shared CPUs change whenever a container gets exclusive ones.
 * Source: pkg/kubelet/cm/cpumanager reconcileState.
 */
import type { Container } from '../../api/generated/core/v1.ts';
import { messageOf } from '../../base/errors.ts';
import { containerResources } from '../pods/containers/container-config.ts';
import type { PodTable } from '../pods/pod-table.ts';
import type { PodServices } from '../pods/services.ts';
import { nodeLimits } from './node-limits.ts';

type PlacementServices = Pick<
  PodServices,
  'allocatable' | 'cgroups' | 'containers' | 'hostInfo' | 'log' | 'runtime' | 'settings' | 'view'
>;

export class Placements {
  readonly #services: PlacementServices;
  readonly #pods: Pick<PodTable, 'workers'>;
  /** Values last written, by container ID. */
  #applied = new Map<string, string>();
  #running: Promise<void> | undefined;
  #again = false;

  constructor(services: PlacementServices, pods: Pick<PodTable, 'workers'>) {
    this.#services = services;
    this.#pods = pods;
  }

  /** Starts a run in the background. A call during a run causes one more run. */
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
          // Ignore the failure of a container that has just ended and continue with the others.
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
