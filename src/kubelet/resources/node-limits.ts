/** Adds node-specific limits to a container: CPU placement, huge pages, swap and memory protection. */
import type { Container, Pod } from '../../api/generated/core/v1.ts';
import { toUid } from '../../base/brand.ts';
import { quantityValue } from '../../base/quantity.ts';
import type { NodeLimits } from '../pods/containers/container-config.ts';
import { isSystemCritical } from '../pods/critical.ts';
import type { PodServices } from '../pods/services.ts';

export type NodeLimitServices = Pick<PodServices, 'allocatable' | 'cgroups' | 'containers' | 'hostInfo' | 'settings'>;

export function nodeLimits(services: NodeLimitServices, pod: Pod, container: Pick<Container, 'name'>): NodeLimits {
  const { hostInfo, settings, containers, cgroups } = services;
  const { swapBehavior, memoryThrottlingFactor } = settings.resources;
  const allocatable = services.allocatable()['memory'];
  const placement = containers.placementOf(toUid(pod.metadata?.uid), container.name);
  return {
    memoryCapacityBytes: hostInfo.memoryBytes,
    oomScoreFloor: hostInfo.oomScoreFloor,
    cpuCfsQuota: settings.cpuCfsQuota,
    placement,
    hugePages: Object.keys(hostInfo.hugePages ?? {}).filter((name) => (hostInfo.hugePages?.[name] ?? 0) > 0),
    ...(cgroups.version === 'v2'
      ? {
          swapBytes: swapBehavior === 'LimitedSwap' && !isSystemCritical(pod) ? (hostInfo.swapBytes ?? 0) : 0,
          ...(memoryThrottlingFactor === undefined
            ? {}
            : {
                memoryQos: {
                  throttlingFactor: memoryThrottlingFactor,
                  allocatableBytes: allocatable === undefined ? hostInfo.memoryBytes : quantityValue(allocatable),
                },
              }),
        }
      : {}),
  };
}
