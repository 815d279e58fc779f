/** Filter for resource claims, with upstream's messages. Source: pkg/scheduler/framework/plugins/dynamicresources. */

import { claimNameOf, generatedClaim, podClaims } from '../../../api/devices/pod-claims.ts';
import type { ResourceClaim } from '../../../api/devices/types.ts';
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import type { PodInfo } from '../../../api/podspec/scheduling/pod-info.ts';
import { fixtureDeviceName } from '../../../rigs/kinds/fixtures.ts';
import { FIXTURE_PREFIX, RIG_GROUP } from '../../../rigs/kinds/rig-types.ts';
import type { DeviceLister } from '../devices/device-lister.ts';
import { allocateDevices } from '../devices/devices.ts';
import { classedResources, extendedClaimOn } from '../devices/extended-claims.ts';
import { type Filter, type FilterFactory, rejectUnresolvable } from './filter.ts';

/** Maximum number of pods for which a claim is reserved. Source: ResourceClaimReservedForMaxSize of upstream. */
const MAX_RESERVED = 256;

export const dynamicResources: FilterFactory =
  ({ bindingTimeoutMs }) =>
  (pod, view) => {
    const lister = view.devices;
    const isConcerned =
      podClaims(pod.pod).length > 0 || (lister !== undefined && classedResources(pod, lister).length > 0);
    const claims = isConcerned ? claimsFilter(bindingTimeoutMs)(pod, view) : undefined;
    const fixtures = [...pod.requests.keys()].filter((name) => name.startsWith(FIXTURE_PREFIX));
    if (lister === undefined || fixtures.length === 0) return claims;
    return (node) => {
      // A fixture that is allocated as a device is rejected here, because the kubelet may not have updated the Node
      // yet.
      const exhausted = fixtures.find((name) => {
        return lister.isAllocated(RIG_GROUP, node.name, fixtureDeviceName(name.slice(FIXTURE_PREFIX.length)));
      });
      return exhausted === undefined
        ? claims?.(node)
        : rejectUnresolvable('DynamicResources', `Insufficient ${exhausted}`);
    };
  };

const claimsFilter =
  (bindingTimeoutMs: number): Filter =>
  (pod, view) => {
    const lister = view.devices;
    const found = lister === undefined ? 'the server has no resourceclaims' : claimsOf(pod, lister);
    if (typeof found === 'string' || lister === undefined) {
      const rejection = { ...rejectUnresolvable('DynamicResources', String(found)), isOfPod: true };
      return () => rejection;
    }
    const open = found.filter(({ status }) => status?.allocation === undefined);
    const allocated = found.filter(({ status }) => status?.allocation !== undefined);
    // The claim of an earlier attempt may contain devices that are no longer free, so the claim is deleted first.
    const isStale = lister.extendedClaimOf(pod.uid) !== undefined;
    return (info) => {
      const { node } = info;
      if (isStale) return rejectUnresolvable('DynamicResources', 'cannot schedule extended resource claim');
      for (const claim of allocated) {
        const terms = claim.status?.allocation?.nodeSelector?.nodeSelectorTerms;
        const reaches = terms === undefined || terms.some((term) => matchesTerm(term, node));
        if (!reaches || lister.hasFailedBinding(claim, bindingTimeoutMs))
          return rejectUnresolvable('DynamicResources', 'resourceclaim not available on the node');
      }
      const extended = extendedClaimOn(pod, info.allocatable, lister)?.claim;
      const wanted = extended === undefined ? open : [...open, extended];
      const result = wanted.length === 0 ? [] : allocateDevices(wanted, info, lister);
      return typeof result === 'string' ? rejectUnresolvable('DynamicResources', result) : undefined;
    };
  };

/** Claims of a pod, or the reason why the pod cannot be placed yet. */
export function claimsOf(
  pod: PodInfo,
  lister: Pick<DeviceLister, 'claim' | 'deviceClass' | 'isPending'>,
): readonly ResourceClaim[] | string {
  const claims: ResourceClaim[] = [];
  for (const each of podClaims(pod.pod)) {
    const name = claimNameOf(pod.pod, each);
    if (name === undefined) {
      // The resource claim controller has determined that the pod needs no such claim.
      if (generatedClaim(pod.pod, each) !== undefined) continue;
      return `waiting for dynamic resource controller to create the resourceclaim "${each.name}"`;
    }
    const claim = lister.claim(pod.namespace, name);
    if (claim === undefined) return `resourceclaim "${name}" not found`;
    if (claim.metadata?.deletionTimestamp !== undefined) return `resourceclaim "${name}" is being deleted`;
    const { allocation, reservedFor = [] } = claim.status ?? {};
    const missing = classesOf(claim).find((deviceClass) => lister.deviceClass(deviceClass) === undefined);
    if (allocation === undefined && missing !== undefined)
      return `resourceclaim "${name}": device class ${missing} does not exist`;
    if (allocation === undefined && lister.isPending(claim)) return `resourceclaim "${name}" is being allocated`;
    if (reservedFor.length >= MAX_RESERVED && !reservedFor.some(({ uid }) => uid === pod.uid))
      return 'resourceclaim in use';
    claims.push(claim);
  }
  return claims;
}

const classesOf = ({ spec }: ResourceClaim): string[] =>
  (spec?.devices?.requests ?? []).flatMap(({ exactly }) =>
    exactly === undefined ? [] : [exactly.deviceClassName ?? ''],
  );
