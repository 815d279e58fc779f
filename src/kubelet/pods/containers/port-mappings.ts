import type { Pod } from '../../../api/generated/core/v1.ts';
import type { PortMapping } from '../../../runtime/port.ts';

/**
 * Mappings of host ports. A container port without a host port needs none. Uses the same containers as the scheduler
 * and the node's admission.
 */
export function portMappings(pod: Pod): PortMapping[] {
  if (pod.spec?.hostNetwork === true) return [];
  const sidecars = (pod.spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...sidecars, ...(pod.spec?.containers ?? [])].flatMap((container) =>
    (container.ports ?? [])
      .filter((port) => (port.hostPort ?? 0) > 0)
      .map(
        (port): PortMapping => ({
          protocol: port.protocol === 'UDP' || port.protocol === 'SCTP' ? port.protocol : 'TCP',
          containerPort: port.containerPort,
          hostPort: port.hostPort ?? 0,
          hostIp: port.hostIP ?? '',
        }),
      ),
  );
}
