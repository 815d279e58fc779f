/** Containers of the control plane on this host, and their restart. */
import { toUid } from '../../base/brand.ts';
import type { Kubelet } from '../../kubelet/index.ts';
import type { ContainerStatus } from '../../runtime/port.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { COMPONENTS } from '../process/component-names.ts';

const RESTART_GRACE_SECONDS = 15;

export async function controlPlaneContainers({ runtime }: Pick<HostRuntime, 'runtime'>): Promise<ContainerStatus[]> {
  return (await runtime.listContainers()).filter(
    (container) =>
      container.labels['io.kubernetes.pod.namespace'] === 'kube-system' &&
      COMPONENTS.some((name) => name === container.name) &&
      (container.labels['io.kubernetes.pod.name'] ?? '').startsWith(`master-${container.name}`),
  );
}

/**
 * Containers of one component, newest first. The containers of a pod are ordered by attempt instead of time, because
 * the clock may have been set back. A pod with a running container comes first. A creation time in the future counts as
 * the oldest.
 */
export function newestRunsFirst(containers: readonly ContainerStatus[], nowMs: number): ContainerStatus[] {
  const pods = Map.groupBy(containers, ({ labels }) => labels['io.kubernetes.pod.uid'] ?? '');
  const rank = (runs: readonly ContainerStatus[]): number => {
    if (runs.some(({ state }) => state === 'running')) return Number.POSITIVE_INFINITY;
    const createdMs = Math.max(...runs.map(({ createdAtMs }) => createdAtMs));
    return createdMs > nowMs ? 0 : createdMs;
  };
  return [...pods.values()]
    .sort((left, right) => rank(right) - rank(left))
    .flatMap((runs) => runs.sort((left, right) => right.attempt - left.attempt));
}

/** Stops the container. The kubelet starts the next one immediately. */
export async function endContainer(
  { runtime }: HostRuntime,
  kubelet: Pick<Kubelet, 'forgetBackOff'>,
  container: ContainerStatus,
): Promise<void> {
  if (container.state === 'running') await runtime.stopContainer(container.id, RESTART_GRACE_SECONDS);
  // A requested restart is not a crash, so the kubelet must not delay it by the back-off.
  kubelet.forgetBackOff(toUid(container.labels['io.kubernetes.pod.uid']));
}
