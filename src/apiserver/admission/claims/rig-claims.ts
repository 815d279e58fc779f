/**
 * Reserves the fixtures of a rig for the pods of the RigClaim that has been granted the rig. A pod that names a
 * RigClaim gets a scheduling gate until the claim is granted, so the pod may be created earlier.
 */

import type { ResourceClaim } from '../../../api/devices/types.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { dns1123LabelErrors } from '../../../base/names.ts';
import { claimNameOf, foreignFixtures, gateOf, isGated, rigsByFixture } from '../../../rigs/core/pods.ts';
import { claimedFixtures, rigOfDevice } from '../../../rigs/kinds/fixtures.ts';
import { CLAIM_ANNOTATION, type Rig, type RigClaim } from '../../../rigs/kinds/rig-types.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor, isMirrorPod } from '../subject.ts';

export interface RigSources {
  rigs(): readonly CachedObject[];
  claim(namespace: string, name: string): CachedObject | undefined;
}

export function rigClaimGates({ rigs, claim }: RigSources): AdmissionPlugin {
  const owners = () => rigsByFixture(rigs().map((each) => each.shared<Rig>() as Rig));
  const refuseForeign = (request: AdmissionRequest, pod: Pod, rig: string | undefined): void => {
    const of = owners();
    const [fixture] = foreignFixtures(pod, rig, of);
    if (fixture === undefined) return;
    const names = [...(of.get(fixture) ?? [])].join(', ');
    throw forbid(
      request,
      `fixture "${fixture}" belongs to rig "${names}"; claim the rig with a RigClaim and name it in the annotation ${CLAIM_ANNOTATION}`,
    );
  };
  /** Rejects a new allocation of a fixture that belongs to a rig. Older allocations stay until they are released. */
  const refuseAllocation = (request: AdmissionRequest): void => {
    if (request.operation !== 'UPDATE' || request.subresource !== 'status' || rigs().length === 0) return;
    if ((request.old as ResourceClaim).status?.allocation !== undefined) return;
    const all = rigs().map((each) => each.shared<Rig>() as Rig);
    for (const { device } of claimedFixtures(request.object as ResourceClaim)) {
      const rig = rigOfDevice(all, device);
      if (rig === undefined) continue;
      throw forbid(request, `fixture "${device}" belongs to rig "${rig}"; claim the rig with a RigClaim`);
    }
  };
  return {
    name: 'RigClaims',
    resources: ['pods', 'resourceclaims.resource.k8s.io'],
    mutate(request) {
      if (request.operation !== 'CREATE' || !isFor(request, '', 'pods') || request.subresource !== '') return;
      const pod = request.object as Pod;
      const name = claimNameOf(pod);
      if (name === undefined || isMirrorPod(pod) || pod.spec === undefined || isGated(pod, name)) return;
      pod.spec.schedulingGates = [...(pod.spec.schedulingGates ?? []), { name: gateOf(name) }];
    },
    validate(request) {
      if (isFor(request, 'resource.k8s.io', 'resourceclaims')) refuseAllocation(request);
      if (!isFor(request, '', 'pods') || request.subresource !== '') return;
      if (request.operation !== 'CREATE' && request.operation !== 'UPDATE') return;
      const pod = request.object as Pod;
      const name = claimNameOf(pod);
      if (request.operation === 'CREATE') {
        if (isMirrorPod(pod)) return;
        if (name === undefined) {
          if (rigs().length > 0) refuseForeign(request, pod, undefined);
          return;
        }
        if (dns1123LabelErrors(name).length > 0)
          throw forbid(request, `annotation ${CLAIM_ANNOTATION}: "${name.slice(0, 253)}" is not a valid RigClaim name`);
        if ((pod.spec?.nodeName ?? '') !== '')
          throw forbid(request, 'spec.nodeName: a pod of a RigClaim is placed by the scheduler; remove the field');
        return;
      }
      const old = request.old as Pod;
      const before = claimNameOf(old);
      if (name !== before)
        throw forbid(request, `annotation ${CLAIM_ANNOTATION} cannot be changed; create another pod`);
      if (name === undefined || !isGated(old, name) || isGated(pod, name)) return;
      const found = claim(pod.metadata?.namespace ?? '', name)?.shared<RigClaim>() as RigClaim | undefined;
      if (found?.status?.phase !== 'Granted')
        throw forbid(request, `scheduling gate ${gateOf(name)}: RigClaim "${name}" is not granted; wait for its turn`);
      refuseForeign(request, pod, found.status.rig);
    },
  };
}
