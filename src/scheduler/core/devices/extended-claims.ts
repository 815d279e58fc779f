/**
 * Builds the claim for a pod's extended resources on a node. It contains resources that a device class provides and the
 * node itself does not. Source: KEP-5004; pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
 */

import { EXTENDED_CLAIM_ANNOTATION, mayBeDevices } from '../../../api/devices/extended-resources.ts';
import type { DeviceRequest, ResourceClaim } from '../../../api/devices/types.ts';
import type { Container, ContainerExtendedResourceRequest, Pod } from '../../../api/generated/core/v1.ts';
import { type Amounts, amountsOf } from '../../../api/podspec/scheduling/node-resources.ts';
import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import type { DeviceLister } from './device-lister.ts';

export interface ExtendedClaim {
  /** Claim to create. The API server generates its name. */
  readonly claim: ResourceClaim;
  readonly mappings: readonly ContainerExtendedResourceRequest[];
}

/**
 * Whether devices provide the resource on this node. If a device plug-in on the node provides it, the plug-in has
 * precedence.
 */
export const isFromDevices = (resource: string, allocatable: Amounts, lister: DeviceLister | undefined): boolean =>
  lister !== undefined &&
  mayBeDevices(resource) &&
  (allocatable.get(resource) ?? 0) === 0 &&
  lister.classOfResource(resource) !== undefined;

/** Extended resources of the pod that a device class provides, sorted by name. */
export function classedResources({ requests }: PodInfo, lister: DeviceLister): string[] {
  const wanted = [...requests].filter(([name, amount]) => amount > 0 && mayBeDevices(name)).map(([name]) => name);
  return wanted.filter((name) => lister.classOfResource(name) !== undefined).sort();
}

/** Builds the claim; undefined if the pod needs no such claim on this node. */
export function extendedClaimOn(pod: PodInfo, allocatable: Amounts, lister: DeviceLister): ExtendedClaim | undefined {
  const names = classedResources(pod, lister).filter((name) => isFromDevices(name, allocatable, lister));
  if (names.length === 0) return undefined;
  const requests: DeviceRequest[] = [];
  const mappings: ContainerExtendedResourceRequest[] = [];
  for (const name of names) {
    const shares = sharesOf(pod.pod, name, lister.classOfResource(name)?.metadata?.name ?? '');
    requests.push(...shares.requests);
    mappings.push(...shares.mappings);
  }
  requests.sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
  const { name = '', namespace = '', uid = '' } = pod.pod.metadata ?? {};
  const claim: ResourceClaim = {
    metadata: {
      namespace,
      generateName: `${name}-extended-resources-`,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid, controller: true }],
      annotations: { [EXTENDED_CLAIM_ANNOTATION]: 'true' },
    },
    spec: { devices: { requests } },
  };
  return { claim, mappings };
}

interface Share {
  readonly request: string;
  readonly count: number;
}

interface Member {
  readonly container: Container;
  /** Index among all containers of the pod, where init containers come first. */
  readonly index: number;
  /** Whether the container exits before later containers start. */
  readonly isShortLived: boolean;
}

/**
 * Requests for one resource. Init containers that exit use the devices of later containers. If these do not suffice,
 * all such init containers share one additional request.
 */
function sharesOf(
  pod: Pod,
  resource: string,
  deviceClassName: string,
): { readonly requests: DeviceRequest[]; readonly mappings: ContainerExtendedResourceRequest[] } {
  const members = membersOf(pod);
  const mappings: ContainerExtendedResourceRequest[] = [];
  const map = ({ container }: Member, requestName: string): void => {
    mappings.push({ containerName: container.name, resourceName: resource, requestName });
  };
  const wantedBy = ({ container }: Member): number => amountsOf(container.resources?.requests).get(resource) ?? 0;
  const lasting = new Map<number, Share>();
  for (const member of members) {
    const count = wantedBy(member);
    if (member.isShortLived || count === 0) continue;
    const share = { request: requestName(member, resource), count };
    lasting.set(member.index, share);
    map(member, share.request);
  }
  let extra: Share | undefined;
  const sharing: Member[] = [];
  for (const member of members) {
    let missing = wantedBy(member);
    if (!member.isShortLived || missing === 0) continue;
    for (const [index, share] of lasting) {
      if (index < member.index || missing <= 0) continue;
      missing -= share.count;
      map(member, share.request);
    }
    if (missing <= 0) continue;
    sharing.push(member);
    if (extra === undefined || extra.count < missing) {
      extra = { request: requestName(member, resource), count: missing };
    }
  }
  for (const member of sharing) map(member, extra?.request ?? '');
  const shares = [...(extra === undefined ? [] : [extra]), ...lasting.values()];
  const requests = shares.map(({ request, count }) => ({
    name: request,
    exactly: { deviceClassName, allocationMode: 'ExactCount', count },
  }));
  return { requests, mappings };
}

function membersOf({ spec }: Pod): Member[] {
  const init = spec?.initContainers ?? [];
  return [...init, ...(spec?.containers ?? [])].map((container, index) => ({
    container,
    index,
    isShortLived: index < init.length && container.restartPolicy !== 'Always',
  }));
}

/** Name of a request: index of the container, and index of the resource among the sorted requests of the container. */
function requestName({ container, index }: Member, resource: string): string {
  const names = Object.keys(container.resources?.requests ?? {}).sort();
  return `container-${index}-request-${names.indexOf(resource)}`;
}
