/** Identity, storage and template of a stateful set's pods. Source: upstream's stateful_set_utils.go. */
import type { StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { PersistentVolumeClaim, Pod, PodTemplateSpec, Volume } from '../../../api/generated/core/v1.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import { podFromTemplate } from '../replica-set/plan.ts';

export const STATEFUL_SET = { group: 'apps', version: 'v1', kind: 'StatefulSet' } as const;
export const REVISION_LABEL = 'controller-revision-hash';
const POD_NAME_LABEL = 'statefulset.kubernetes.io/pod-name';
const POD_INDEX_LABEL = 'apps.kubernetes.io/pod-index';

/** Ordinal in a pod's name; undefined for names that are not `<set>-<ordinal>`. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const match = /^(.*)-(0|[1-9]\d{0,9})$/.exec(pod.metadata?.name ?? '');
  return match?.[1] === set.metadata?.name ? Number(match?.[2]) : undefined;
}

export const podName = (set: StatefulSet, ordinal: number): string => `${set.metadata?.name ?? ''}-${ordinal}`;

/** The pod to create. Its hostname and subdomain are its stable network identity. */
export function statefulPod(
  set: StatefulSet,
  template: PodTemplateSpec | undefined,
  ordinal: number,
  revision: string,
): Pod {
  const pod = podFromTemplate(set, template, controllerReference(set, STATEFUL_SET));
  const name = podName(set, ordinal);
  const claims = new Map<string, Volume>(
    (set.spec?.volumeClaimTemplates ?? []).map((claim) => {
      const volume = claim.metadata?.name ?? '';
      const claimName = claimNameOf(set, volume, ordinal);
      return [volume, { name: volume, persistentVolumeClaim: { claimName, readOnly: false } }];
    }),
  );
  const volumes = [...claims.values(), ...(pod.spec?.volumes ?? []).filter((volume) => !claims.has(volume.name))];
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      name,
      labels: { ...pod.metadata?.labels, ...identityLabels(set, ordinal), [REVISION_LABEL]: revision },
    },
    spec: {
      ...(pod.spec ?? { containers: [] }),
      hostname: name,
      subdomain: set.spec?.serviceName ?? '',
      ...(volumes.length === 0 ? {} : { volumes }),
    },
  };
}

function identityLabels(set: StatefulSet, ordinal: number): Record<string, string> {
  return { [POD_NAME_LABEL]: podName(set, ordinal), [POD_INDEX_LABEL]: String(ordinal) };
}

/** Labels that an adopted pod lacks; undefined if its identity is complete. */
export function missingIdentity(set: StatefulSet, pod: Pod, ordinal: number): Record<string, string> | undefined {
  const labels = identityLabels(set, ordinal);
  const isRight = Object.entries(labels).every(([key, value]) => pod.metadata?.labels?.[key] === value);
  return isRight ? undefined : labels;
}

const claimNameOf = (set: StatefulSet, template: string, ordinal: number): string =>
  `${template}-${podName(set, ordinal)}`;

/** Whether a claim of this name belongs to an ordinal of the set. */
export const isClaimOf = (set: StatefulSet, name: string): boolean =>
  (set.spec?.volumeClaimTemplates ?? []).some(({ metadata }) => {
    const prefix = `${metadata?.name ?? ''}-${set.metadata?.name ?? ''}-`;
    return name.startsWith(prefix) && /^\d{1,10}$/.test(name.slice(prefix.length));
  });

/** Claims to create for one ordinal. */
export function claimsOf(set: StatefulSet, ordinal: number): PersistentVolumeClaim[] {
  return (set.spec?.volumeClaimTemplates ?? []).map((template) => ({
    ...template,
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...template.metadata,
      name: claimNameOf(set, template.metadata?.name ?? '', ordinal),
      namespace: set.metadata?.namespace ?? '',
      labels: { ...template.metadata?.labels, ...set.spec?.selector?.matchLabels },
    },
  }));
}
