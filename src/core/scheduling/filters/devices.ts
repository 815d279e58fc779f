/** Claims on devices. Source: pkg/scheduler/framework/plugins/dynamicresources; its texts. */

import { claimNameOf, generatedClaim, podClaims } from '../../../api/devices/pod-claims.ts';
import type { ResourceClaim } from '../../../api/devices/types.ts';
import { matchesTerm } from '../../../api/podspec/node-terms.ts';
import { fixtureDeviceName } from '../../../api/rigs/fixtures.ts';
import { FIXTURE_PREFIX, RIG_GROUP } from '../../../api/rigs/types.ts';
import type { DeviceLister } from '../device-lister.ts';
import { allocateDevices } from '../devices.ts';
import type { PodInfo } from '../pod-info.ts';
import { type Filter, reject } from './filter.ts';

/** Upstream's ResourceClaimReservedForMaxSize. */
const MAX_RESERVED = 256;

export const dynamicResources: Filter = (pod, view) => {
  const lister = view.devices;
  const claims = podClaims(pod.pod).length === 0 ? undefined : claimsFilter(pod, view);
  const fixtures = [...pod.requests.keys()].filter((name) => name.startsWith(FIXTURE_PREFIX));
  if (lister === undefined || fixtures.length === 0) return claims;
  return (node) => {
    // Its kubelet may not have reported yet that the fixture is not allocatable.
    const taken = fixtures.find((name) => {
      return lister.isTaken(RIG_GROUP, node.name, fixtureDeviceName(name.slice(FIXTURE_PREFIX.length)));
    });
    return taken === undefined ? claims?.(node) : reject('DynamicResources', `Insufficient ${taken}`, true);
  };
};

const claimsFilter: Filter = (pod, view) => {
  const lister = view.devices;
  const found = lister === undefined ? 'the server has no resourceclaims' : claimsOf(pod, lister);
  if (typeof found === 'string' || lister === undefined) {
    const rejection = { ...reject('DynamicResources', String(found), true), isOfPod: true };
    return () => rejection;
  }
  const open = found.filter(({ status }) => status?.allocation === undefined);
  const allocated = found.filter(({ status }) => status?.allocation !== undefined);
  return (info) => {
    const { node } = info;
    for (const { status } of allocated) {
      const terms = status?.allocation?.nodeSelector?.nodeSelectorTerms;
      if (terms !== undefined && !terms.some((term) => matchesTerm(term, node)))
        return reject('DynamicResources', 'resourceclaim not available on the node', true);
    }
    const result = open.length === 0 ? [] : allocateDevices(open, info, lister);
    return typeof result === 'string' ? reject('DynamicResources', result, true) : undefined;
  };
};

/** The claims of a pod, or why it cannot be placed anywhere yet. */
export function claimsOf(pod: PodInfo, lister: DeviceLister): readonly ResourceClaim[] | string {
  const claims: ResourceClaim[] = [];
  for (const each of podClaims(pod.pod)) {
    const name = claimNameOf(pod.pod, each);
    if (name === undefined) {
      // The controller found that the pod needs none.
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
