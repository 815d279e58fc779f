/** Duplicate owner references. Source: k8s.io/apiserver/pkg/endpoints/handlers/rest.go. */
import type { KubeObject } from '../../../api/meta/object.ts';

const LATE = ' after mutating admission happens';

/** Removes duplicate owner references and adds upstream's warning. */
export function dropDuplicateOwners(
  { metadata }: KubeObject,
  warnings: string[],
  { afterAdmission }: { readonly afterAdmission: boolean },
): void {
  const owners = metadata?.ownerReferences;
  if (metadata === undefined || owners === undefined || owners.length < 2) return;
  const kept = new Set<string>();
  const duplicates: string[] = [];
  const left = owners.filter((owner) => {
    const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner;
    const identity = JSON.stringify([apiVersion, kind, name, uid, controller, blockOwnerDeletion]);
    if (kept.has(identity)) duplicates.push(uid);
    else return kept.add(identity);
    return false;
  });
  if (duplicates.length === 0) return;
  metadata.ownerReferences = left;
  const warning = `.metadata.ownerReferences contains duplicate entries${afterAdmission ? LATE : ''}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: ${duplicates.join(', ')}`;
  // A retry after a conflict must not add the warning again.
  if (!warnings.includes(warning)) warnings.push(warning);
}
