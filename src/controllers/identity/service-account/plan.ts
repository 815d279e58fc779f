/** Default service account of every namespace. Source: upstream's serviceaccounts_controller. */
import type { Namespace, ServiceAccount } from '../../../api/generated/core/v1.ts';

export const DEFAULT_SERVICE_ACCOUNT = 'default';

/** Returns the account to create; undefined if it exists or the namespace is being deleted. */
export function planServiceAccount(
  namespace: Namespace | undefined,
  existing: ServiceAccount | undefined,
): ServiceAccount | undefined {
  if (namespace === undefined || existing !== undefined) return undefined;
  if (namespace.metadata?.deletionTimestamp !== undefined || namespace.status?.phase === 'Terminating')
    return undefined;
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: DEFAULT_SERVICE_ACCOUNT, namespace: namespace.metadata?.name ?? '' },
  };
}
