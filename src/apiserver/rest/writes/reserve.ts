/**
 * Decides which updates may use the disk reserve of a full store: updates that free space or keep a node in the
 * cluster.
 */
import type { KubeObject } from '../../../api/meta/object.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';

/** Identities of cluster components. Other users could exhaust the reserve with objects of their own. */
const SYSTEM_GROUPS = new Set(['system:nodes', 'system:masters', 'system:serviceaccounts:kube-system']);
const SYSTEM_USERS = new Set(['system:kube-controller-manager', 'system:kube-scheduler']);

/**
 * Reports whether an update may use the reserve. Cluster components may update what the kind declares essential
 * (statuses of pods and nodes, taints of nodes, leases), and the finalizers of objects that are being deleted.
 * `delete.ts` permits any user to mark an object as deleted, once per object.
 */
export function mayUseReserve({ user, kind, subresource }: WriteRequest, next: KubeObject): boolean {
  if (!SYSTEM_USERS.has(user.name) && !user.groups.some((group) => SYSTEM_GROUPS.has(group))) return false;
  if (next.metadata?.deletionTimestamp !== undefined) return true;
  const { essentialUpdates = [] } = kind.definition;
  return essentialUpdates.includes(subresource === 'status' ? 'status' : 'object');
}
