/**
 * Extended resources that device classes provide: a claim that the scheduler makes stands for a pod's requests. Source:
 * KEP-5004; k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache; core/v1 PodStatus.
 */
import type { Pod } from 'kubernetes-types/core/v1';
import { isExtended } from '../podspec/resources.ts';
import type { DeviceClass } from './types.ts';

/** Before the name of a class: a resource that every class provides. */
export const DEVICE_CLASS_PREFIX = 'deviceclass.resource.kubernetes.io/';
/** `true` on the claim that the scheduler made for a pod's extended resources. */
export const EXTENDED_CLAIM_ANNOTATION = 'resource.kubernetes.io/extended-resource-claim';

export interface RequestMapping {
  readonly containerName: string;
  readonly resourceName: string;
  /** Of the claim. */
  readonly requestName: string;
}

export interface ExtendedClaimStatus {
  readonly requestMappings: readonly RequestMapping[];
  readonly resourceClaimName: string;
}

/** Undefined: none of the pod's resources is backed by devices. kubernetes-types stops before the field. */
export const extendedClaimStatus = ({ status }: Pod): ExtendedClaimStatus | undefined =>
  (status as { readonly extendedResourceClaimStatus?: ExtendedClaimStatus } | undefined)?.extendedResourceClaimStatus;

/** Whether the claim provides the resource, to any container of the pod; otherwise a device plug-in does. */
export const isBackedByDevices = (pod: Pod, resource: string): boolean =>
  extendedClaimStatus(pod)?.requestMappings.some(({ resourceName }) => resourceName === resource) === true;

/** The name may be that of a resource of a device class. */
export const mayBeDevices = (resource: string): boolean =>
  resource.startsWith(DEVICE_CLASS_PREFIX) || isExtended(resource);

/** Classes by the resources that they provide; of several of one name the newest, then the first by its own name. */
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
