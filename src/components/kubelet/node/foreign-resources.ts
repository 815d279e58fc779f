/**
 * Resources in a Node's capacity that no part of this kubelet reports: administrators patch them in. Source: upstream's
 * page "Advertise Extended Resources for a Node", pkg/kubelet/nodestatus/setters.go MachineInfo.
 */
import type { NodeStatus } from 'kubernetes-types/core/v1';
import { FIXTURE_PREFIX } from '../../../api/rigs/types.ts';

/**
 * The status with foreign resources of `stored` in capacity and allocatable. `gone`: resources that are
 * reported no longer.
 */
export function keepForeignResources<S extends NodeStatus>(
  status: S,
  stored: NodeStatus,
): { readonly status: S; readonly gone: readonly string[] } {
  const own = status.capacity ?? {};
  // Fixtures are reported by kubelets alone: one that is not reported is gone.
  const foreign = Object.fromEntries(
    Object.entries(stored.capacity ?? {}).filter(
      ([name]) => !Object.hasOwn(own, name) && !name.startsWith(FIXTURE_PREFIX),
    ),
  );
  const gone = [...new Set([...Object.keys(stored.capacity ?? {}), ...Object.keys(stored.allocatable ?? {})])].filter(
    (name) => !Object.hasOwn(own, name) && !Object.hasOwn(foreign, name),
  );
  return {
    status: {
      ...status,
      capacity: { ...own, ...foreign },
      allocatable: { ...status.allocatable, ...foreign },
    },
    gone,
  };
}
