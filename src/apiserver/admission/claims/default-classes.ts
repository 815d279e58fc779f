/**
 * Sets the default storage class of claims and the default ingress class of ingresses that name no class. Sources:
 * plugin/pkg/admission/storage/storageclass/setdefault, network/defaultingressclass.
 */
import type { PersistentVolumeClaim } from '../../../api/generated/core/v1.ts';
import type { Ingress } from '../../../api/generated/networking/v1.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { isFor } from '../subject.ts';

const STORAGE_DEFAULT = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];
const STORAGE_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
const INGRESS_DEFAULT = ['ingressclass.kubernetes.io/is-default-class'];
const INGRESS_ANNOTATION = 'kubernetes.io/ingress.class';

/** Classes marked as default, newest first. Classes of the same age are sorted by name. */
function defaults(classes: Iterable<CachedObject>, marks: readonly string[]): Readonly<KubeObject>[] {
  const created = (object: Readonly<KubeObject>): string => object.metadata?.creationTimestamp ?? '';
  const name = (object: Readonly<KubeObject>): string => object.metadata?.name ?? '';
  return [...classes]
    .map((object) => object.shared())
    .filter((object) => marks.some((mark) => object.metadata?.annotations?.[mark] === 'true'))
    .sort((a, b) => {
      if (created(a) === created(b)) return name(a) < name(b) ? -1 : 1;
      return created(a) > created(b) ? -1 : 1;
    });
}

export function defaultStorageClass(classes: () => Iterable<CachedObject>): AdmissionPlugin {
  return {
    name: 'DefaultStorageClass',
    resources: ['persistentvolumeclaims'],
    mutate(request) {
      if (request.operation !== 'CREATE' || !isFor(request, '', 'persistentvolumeclaims')) return;
      const claim = request.object as PersistentVolumeClaim;
      // An empty class name means that no volume is provisioned, so no default is set.
      const chosen =
        claim.spec?.storageClassName !== undefined || claim.metadata?.annotations?.[STORAGE_ANNOTATION] !== undefined;
      if (claim.spec === undefined || chosen) return;
      const [found] = defaults(classes(), STORAGE_DEFAULT);
      if (found?.metadata?.name !== undefined) claim.spec.storageClassName = found.metadata.name;
    },
  };
}

export function defaultIngressClass(classes: () => Iterable<CachedObject>): AdmissionPlugin {
  return {
    name: 'DefaultIngressClass',
    resources: ['ingresses.networking.k8s.io'],
    mutate(request) {
      if (request.operation !== 'CREATE' || !isFor(request, 'networking.k8s.io', 'ingresses')) return;
      const ingress = request.object as Ingress;
      if (ingress.spec?.ingressClassName !== undefined) return;
      if (ingress.metadata?.annotations?.[INGRESS_ANNOTATION] !== undefined) return;
      const name = defaults(classes(), INGRESS_DEFAULT)[0]?.metadata?.name;
      if (name !== undefined) ingress.spec = { ...ingress.spec, ingressClassName: name };
    },
  };
}
