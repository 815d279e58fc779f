/** API objects that a pod refers to. Source: pkg/api/v1/pod, HasAPIObjectReference. */

import type { Container, Pod, Volume, VolumeProjection } from '../generated/core/v1.ts';

/**
 * Kind of an API object, other than its node and namespace, without which the pod cannot run; undefined if there is
 * none. Static pods and mirror pods must not have such references: otherwise a node
 * would get access to an object by running a pod that no user created at the API.
 */
export function apiReference({ spec }: Pod): string | undefined {
  if (spec === undefined) return undefined;
  if ((spec.serviceAccountName ?? spec.serviceAccount ?? '') !== '') return 'a service account';
  if ((spec.imagePullSecrets ?? []).length > 0) return 'secrets';
  if ((spec.resourceClaims ?? []).length > 0) return 'resourceclaims';
  const containers = [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
  for (const container of containers) {
    const found = referenceOfContainer(container);
    if (found !== undefined) return found;
  }
  for (const volume of spec.volumes ?? []) {
    const found = referenceOfVolume(volume);
    if (found !== undefined) return found;
  }
  return undefined;
}

function referenceOfContainer({ envFrom = [], env = [] }: Pick<Container, 'env' | 'envFrom'>): string | undefined {
  for (const source of envFrom) {
    if (source.secretRef !== undefined) return 'secrets';
    if (source.configMapRef !== undefined) return 'configmaps';
  }
  for (const { valueFrom } of env) {
    if (valueFrom?.secretKeyRef !== undefined) return 'secrets';
    if (valueFrom?.configMapKeyRef !== undefined) return 'configmaps';
  }
  return undefined;
}

function referenceOfVolume(volume: Volume): string | undefined {
  if (volume.secret !== undefined || hasSecret(volume)) return 'secrets';
  if (volume.configMap !== undefined) return 'configmaps';
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return 'persistentvolumeclaims';
  if (volume.csi !== undefined) return 'a CSI volume';
  for (const source of volume.projected?.sources ?? []) {
    const found = referenceOfProjection(source);
    if (found !== undefined) return found;
  }
  return undefined;
}

function referenceOfProjection(source: VolumeProjection): string | undefined {
  if (source.secret !== undefined) return 'secrets';
  if (source.configMap !== undefined) return 'configmaps';
  if (source.serviceAccountToken !== undefined) return 'a service account token';
  if (source.clusterTrustBundle !== undefined) return 'clustertrustbundles';
  return source.podCertificate === undefined ? undefined : 'a pod certificate';
}

/** Whether a volume of one of these types refers to a secret. */
function hasSecret({ azureFile, cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos }: Volume): boolean {
  if ((azureFile?.secretName ?? '') !== '') return true;
  return [cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos].some((each) => each?.secretRef !== undefined);
}
