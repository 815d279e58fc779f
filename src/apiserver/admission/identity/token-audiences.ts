/**
 * Audiences for which a kubelet may request a pod's tokens: the audiences of the pod's projected volumes and of the
 * drivers of its CSI volumes. Source: plugin/pkg/admission/noderestriction; KEP-4412.
 */
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../../api/generated/core/v1.ts';
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

export interface AudienceSources {
  claim(namespace: string, name: string): CachedObject | undefined;
  volume(name: string): CachedObject | undefined;
  driver(name: string): CachedObject | undefined;
}

/** Reports whether a volume of the pod needs tokens for `audience`. The empty audience means this API server. */
export function requestsAudience(pod: Pod, audience: string, sources: AudienceSources): boolean {
  return (pod.spec?.volumes ?? []).some(
    (volume) =>
      (volume.projected?.sources ?? []).some(
        ({ serviceAccountToken }) =>
          serviceAccountToken !== undefined && (serviceAccountToken.audience ?? '') === audience,
      ) || driverRequests(driverOf(pod, volume, sources), audience, sources),
  );
}

function driverRequests(name: string | undefined, audience: string, sources: AudienceSources): boolean {
  if (name === undefined) return false;
  const requests = sources.driver(name)?.shared<CSIDriver>().spec.tokenRequests ?? [];
  return requests.some((request) => (request.audience ?? '') === audience);
}

/** The CSI driver of an inline volume, or of the persistent volume to which the claim of the volume is bound. */
function driverOf(pod: Pod, volume: Volume, sources: AudienceSources): string | undefined {
  if (volume.csi !== undefined) return volume.csi.driver;
  const { name = '', namespace = '', uid } = pod.metadata ?? {};
  const claimName =
    volume.persistentVolumeClaim?.claimName ?? (volume.ephemeral === undefined ? '' : `${name}-${volume.name}`);
  if (claimName === '') return undefined;
  const claim = sources.claim(namespace, claimName)?.shared<PersistentVolumeClaim>();
  const isTheirs =
    volume.ephemeral === undefined ||
    (claim?.metadata?.ownerReferences ?? []).some((owner) => owner.controller === true && owner.uid === uid);
  if (!isTheirs) return undefined;
  return sources.volume(claim?.spec?.volumeName ?? '')?.shared<PersistentVolume>().spec?.csi?.driver;
}
