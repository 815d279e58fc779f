/** The claims of a pod's generic ephemeral volumes. Source: pkg/controller/volume/ephemeral. */
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import { controllerReference, isControlledBy } from '../../framework/core/ownership.ts';

export interface EphemeralPlan {
  readonly create: readonly PersistentVolumeClaim[];
  /** Names of existing claims that belong to another owner. */
  readonly foreign: readonly string[];
}

/** @param claim Looks up a claim by name in the pod's namespace. */
export function planEphemeralClaims(
  pod: Pod,
  claim: (name: string) => PersistentVolumeClaim | undefined,
): EphemeralPlan {
  const create: PersistentVolumeClaim[] = [];
  const foreign: string[] = [];
  const { name: podName = '', namespace, uid, deletionTimestamp } = pod.metadata ?? {};
  if (deletionTimestamp !== undefined) return { create, foreign };
  for (const { name, ephemeral } of pod.spec?.volumes ?? []) {
    const template = ephemeral?.volumeClaimTemplate;
    if (template === undefined) continue;
    const claimName = `${podName}-${name}`;
    const known = claim(claimName);
    if (known !== undefined) {
      if (!isControlledBy(known, uid)) foreign.push(claimName);
      continue;
    }
    const { labels, annotations } = template.metadata ?? {};
    create.push({
      metadata: {
        name: claimName,
        ...(namespace === undefined ? {} : { namespace }),
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
        ownerReferences: [controllerReference(pod, { group: '', version: 'v1', kind: 'Pod' })],
      },
      spec: template.spec,
    });
  }
  return { create, foreign };
}
