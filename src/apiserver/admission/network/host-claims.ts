/**
 * Records the time at which a route or ingress claims a host. If two namespaces claim the same host, the earlier claim
 * wins, whichever object is older. Therefore an update that adds a host records the time of the update.
 */

import type { KubeObject } from '../../../api/meta/object.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { CLAIMS_BY_KIND, HOST_CLAIMS, recordedClaims } from '../../../network/router/core/index.ts';
import type { AdmissionPlugin } from '../admission.ts';

/** `nowMs`: wall clock, the same clock as for creation timestamps. */
export function hostClaims(nowMs: () => number): AdmissionPlugin {
  return {
    name: 'HostClaims',
    resources: [...CLAIMS_BY_KIND.keys()],
    mutate(request) {
      const { object, old, kind, operation } = request;
      if (object === undefined || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
      const claims = CLAIMS_BY_KIND.get(`${kind.plural}.${kind.definition.group}`);
      if (claims === undefined) return;
      const now = timestamp(Math.ceil(nowMs() / 1000) * 1000);
      setAnnotation(object, old === undefined ? undefined : recordedClaims(claims, object, old, now));
    },
  };
}

function setAnnotation(object: KubeObject, value: string | undefined): void {
  const { [HOST_CLAIMS]: present, ...annotations } = object.metadata?.annotations ?? {};
  if (present === value) return;
  const all = value === undefined ? annotations : { ...annotations, [HOST_CLAIMS]: value };
  const { annotations: _annotations, ...metadata } = object.metadata ?? {};
  object.metadata = Object.keys(all).length === 0 ? metadata : { ...metadata, annotations: all };
}
