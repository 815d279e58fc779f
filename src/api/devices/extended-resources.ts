/**
 * Extended resources that device classes provide. The scheduler creates a claim for a pod's requests. Source: KEP-5004;
 * k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache; core/v1 PodStatus.
 */
import type { Pod, PodExtendedResourceClaimStatus } from '../generated/core/v1.ts';
import { isExtended } from '../podspec/containers/resources.ts';
import type { DeviceClass } from './types.ts';

/** Prefix of the implicit extended resource that every class provides; the class name follows. */
export const DEVICE_CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/';
/** Annotation with the value `true` on claims that the scheduler created for extended resources of a pod. */
export const EXTENDED_CLAIM_ANNOTATION = 'resource.kubernetes.io/extended-resource-claim';

/**
 * Reference to the claim for the pod's extended resources. Undefined if no resource of the pod is backed by devices.
 */
export const extendedClaimStatus = ({ status }: Pod): PodExtendedResourceClaimStatus | undefined =>
  status?.extendedResourceClaimStatus;

/** Whether a claim provides the resource to a container of the pod. Otherwise a device plugin does. */
export const isBackedByDevices = (pod: Pod, resource: string): boolean =>
  extendedClaimStatus(pod)?.requestMappings.some(({ resourceName }) => resourceName === resource) === true;

/** Whether the resource could be provided by a device class. */
export const mayBeDevices = (resource: string): boolean =>
  resource.startsWith(DEVICE_CLASS_PREFIX) || isExtended(resource);

/**
 * Device classes by extended resource. Of several classes for one resource, the newest is used, then the first by name.
 */
export function classesByResource(classes: readonly DeviceClass[]): ReadonlyMap<string, DeviceClass> {
  const found = new Map<string, DeviceClass>();
  const createdAt = ({ metadata }: DeviceClass): string => metadata?.creationTimestamp ?? '';
  const nameOf = ({ metadata }: DeviceClass): string => metadata?.name ?? '';
  for (const each of classes) {
    found.set(`${DEVICE_CLASS_PREFIX}${nameOf(each)}`, each);
    const explicit = each.spec?.extendedResourceName;
    if (explicit === undefined) continue;
    const other = found.get(explicit);
    const wins =
      other === undefined ||
      createdAt(each) > createdAt(other) ||
      (createdAt(each) === createdAt(other) && nameOf(each) < nameOf(other));
    if (wins) found.set(explicit, each);
  }
  return found;
}
