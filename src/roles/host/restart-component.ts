/** Containers of the control plane on this host, and their restart. */
import type { Kubelet } from '../../components/kubelet/index.ts';
import type { ContainerStatus } from '../../core/podplan/port.ts';
import { COMPONENTS } from '../component-names.ts';
import type { HostRuntime } from './runtime.ts';

const RESTART_GRACE_SECONDS = 15;

export async function controlPlaneContainers({ runtime }: HostRuntime): Promise<ContainerStatus[]> {
  return (await runtime.listContainers()).filter(
    (container) =>
      container.labels['io.kubernetes.pod.namespace'] === 'kube-system' &&
      COMPONENTS.some((name) => name === container.name) &&
      (container.labels['io.kubernetes.pod.name'] ?? '').startsWith(`master-${container.name}`),
  );
}

/** Ends the container, so that the kubelet starts another at once. */
export async function endContainer(
  { runtime }: HostRuntime,
  kubelet: Pick<Kubelet, 'forgetBackOff'>,
  container: ContainerStatus,
): Promise<void> {
  if (container.state === 'running') await runtime.stopContainer(container.id, RESTART_GRACE_SECONDS);
  // A requested restart is not a crash: it skips the back-off.
  kubelet.forgetBackOff(container.labels['io.kubernetes.pod.uid'] ?? '');
}
