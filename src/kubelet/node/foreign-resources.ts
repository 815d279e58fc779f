/**
 * Extended resources in a Node's capacity that this kubelet does not report, because an administrator patched them in.
 * Source: upstream's page "Advertise Extended Resources for a Node", pkg/kubelet/nodestatus/setters.go MachineInfo.
 */
import type { NodeStatus } from '../../api/generated/core/v1.ts';
import { FIXTURE_PREFIX } from '../../rigs/kinds/rig-types.ts';

/**
 * Returns the status with the foreign resources of `stored` in capacity and allocatable. `gone`: resources that the
 * kubelet no longer reports.
 */
export function keepForeignResources<S extends NodeStatus>(
  status: S,
  stored: NodeStatus,
): { readonly status: S; readonly gone: readonly string[] } {
  const own = status.capacity ?? {};
  // Only kubelets report fixtures, so an unreported fixture no longer exists.
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
