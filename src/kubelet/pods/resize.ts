/**
 * In-place resize of running pods (KEP-1287). Requested resources become allocated when the node has room and are then
 * written to the kernel. The pod's status records the allocation and survives a restart of this process.
 */
import type { Container, Pod, ResourceRequirements } from '../../api/generated/core/v1.ts';
import { ignore, messageOf } from '../../base/errors.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { ResizeState } from '../core/pod-plan/status.ts';
import { nodeLimits } from '../resources/node-limits.ts';
import { resourceShortage } from './admission.ts';
import { containerResources } from './containers/container-config.ts';
import type { PodServices } from './services.ts';

export type PodResizeServices = Pick<
  PodServices,
  'allocatable' | 'cgroups' | 'containers' | 'events' | 'hostInfo' | 'otherPods' | 'runtime' | 'settings'
>;

type Resources = Pick<ResourceRequirements, 'limits' | 'requests'>;

export interface ResizeHost {
  readonly services: PodResizeServices;
  /** Stops the container, so that it restarts with its allocated resources. */
  restart(container: Container, status: ContainerStatus): void;
}

export class PodResize {
  private readonly host: ResizeHost;
  private readonly allotted = new Map<string, Resources>();
  private current: ResizeState | undefined;
  /** Pods returned by `allottedPod` whose resources differ from the requested ones. */
  private readonly behind = new WeakSet<Pod>();

  constructor(pod: Pod, host: ResizeHost) {
    this.host = host;
    const reported = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
    for (const container of containersOf(pod)) {
      const known = reported.find((status) => status.name === container.name)?.resources;
      this.allotted.set(container.name, partOf(known ?? container.resources));
    }
  }

  /** State of the last attempt. Undefined when no resize is due or none was attempted. */
  get state(): ResizeState | undefined {
    return this.current;
  }

  /**
   * Resize state for a pod returned by `allottedPod`. Undefined when it has the requested resources. A status with the
   * new generation and old resources means that a resize is in progress.
   */
  stateOf(allotted: Pod): ResizeState | undefined {
    return this.current ?? (this.behind.has(allotted) ? { type: 'PodResizeInProgress' } : undefined);
  }

  /** Returns the pod with allocated resources in place of the requested ones. */
  allottedPod(pod: Pod): Pod {
    if (this.pending(pod).length === 0) return pod;
    const replaced = (container: Container): Container => {
      const own = this.allotted.get(container.name);
      return own === undefined ? container : { ...container, resources: { ...rest(container.resources), ...own } };
    };
    const spec = pod.spec ?? { containers: [] };
    const allotted: Pod = {
      ...pod,
      spec: {
        ...spec,
        containers: spec.containers.map(replaced),
        ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(replaced) }),
      },
    };
    this.behind.add(allotted);
    return allotted;
  }

  pending(pod: Pod): Container[] {
    return containersOf(pod).filter((container) => {
      const own = this.allotted.get(container.name);
      return own !== undefined && !same(own, partOf(container.resources));
    });
  }

  /**
   * Allocates and applies requested resources as far as possible. Rejects when the kernel refuses; the caller retries.
   */
  async advance(pod: Pod, running: readonly ContainerStatus[]): Promise<void> {
    const pending = this.pending(pod);
    if (pending.length === 0) {
      this.current = undefined;
      return;
    }
    const { services } = this.host;
    const allocatable = services.allocatable();
    const problem = services.containers.resizeProblem(pod);
    const shortage =
      problem === undefined ? resourceShortage(pod, services.otherPods(pod), allocatable) : { message: problem };
    if (shortage !== undefined) {
      const never = problem !== undefined || resourceShortage(pod, [], allocatable) !== undefined;
      const reason = never ? 'Infeasible' : 'Deferred';
      if (this.current?.reason !== reason)
        services.events.pod(pod, 'Warning', `Resize${reason}`, `Pod resize ${reason}: ${shortage.message}`);
      this.current = { type: 'PodResizePending', reason, message: shortage.message };
      return;
    }
    try {
      // The pod's limits must be raised before those of its containers. Limits that shrink can only be lowered after
      // those of the containers, so this first attempt may fail.
      await services.cgroups.ensurePod(pod).catch(ignore('limits that shrink are applied below'));
      for (const container of pending) await this.apply(pod, container, running);
      await services.cgroups.ensurePod(pod);
      this.current = undefined;
      services.events.pod(pod, 'Normal', 'ResizeCompleted', 'Pod resize completed');
    } catch (error) {
      this.current = { type: 'PodResizeInProgress', reason: 'Error', message: messageOf(error) };
      throw error;
    }
  }

  private async apply(pod: Pod, container: Container, running: readonly ContainerStatus[]): Promise<void> {
    const status = running.find((each) => each.name === container.name);
    const before = this.allotted.get(container.name) ?? {};
    const after = partOf(container.resources);
    if (status !== undefined && needsRestart(container, before, after)) {
      this.allotted.set(container.name, after);
      this.host.restart(container, status);
      return;
    }
    if (status !== undefined) {
      const { services } = this.host;
      const resources = containerResources(pod, container, nodeLimits(services, pod, container));
      await services.runtime.updateContainerResources(status.id, resources);
    }
    this.allotted.set(container.name, after);
  }
}

/** Requirements that cannot be resized in place. */
function rest(resources: ResourceRequirements | undefined): ResourceRequirements {
  return resources?.claims === undefined ? {} : { claims: resources.claims };
}

const containersOf = (pod: Pod): readonly Container[] => [
  ...(pod.spec?.containers ?? []),
  ...(pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always'),
];

function partOf(resources: ResourceRequirements | undefined): Resources {
  return {
    ...(resources?.limits === undefined ? {} : { limits: resources.limits }),
    ...(resources?.requests === undefined ? {} : { requests: resources.requests }),
  };
}

const same = (a: Resources, b: Resources): boolean => canonicalJson(a) === canonicalJson(b);

function needsRestart(container: Container, before: Resources, after: Resources): boolean {
  const changed = (name: string): boolean =>
    before.limits?.[name] !== after.limits?.[name] || before.requests?.[name] !== after.requests?.[name];
  return (container.resizePolicy ?? []).some(
    (policy) => policy.restartPolicy === 'RestartContainer' && changed(policy.resourceName),
  );
}
