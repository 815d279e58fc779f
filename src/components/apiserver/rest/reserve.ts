/** Which updates the store takes although its disk is full: those that free it or keep a node in the cluster. */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { WriteRequest } from '../pipeline/write-request.ts';

/** Of the cluster's components: other users could use the reserve up with objects of their own. */
const SYSTEM_GROUPS = new Set(['system:nodes', 'system:masters', 'system:serviceaccounts:kube-system']);
const SYSTEM_USERS = new Set(['system:kube-controller-manager', 'system:kube-scheduler']);

/**
 * What the kind calls essential (statuses of pods and nodes, taints of nodes, leases) and finalizers of objects that
 * are being deleted, when a component of the cluster writes them. Marking an object as deleted is in `delete.ts`: any
 * user may, once for each object.
 */
export function mayUseReserve({ user, kind, subresource }: WriteRequest, next: KubeObject): boolean {
  if (!SYSTEM_USERS.has(user.name) && !user.groups.some((group) => SYSTEM_GROUPS.has(group))) return false;
  if (next.metadata?.deletionTimestamp !== undefined) return true;
  const { essentialUpdates = [] } = kind.definition;
  return essentialUpdates.includes(subresource === 'status' ? 'status' : 'object');
}
