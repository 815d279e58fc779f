/**
 * Permits adminAccess to devices only in namespaces that an administrator has labelled. Source: KEP-5018,
 * k8s.io/kubernetes/pkg/registry/resource, where the check is part of the strategies of the kinds.
 */

import type { ClaimSpec, DeviceRequest, ResourceClaim, ResourceClaimTemplate } from '../../../api/devices/types.ts';
import { type FieldError, fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { NamespaceSource } from '../namespaces/namespace-lifecycle.ts';
import { isFor } from '../subject.ts';

const LABEL = 'resource.kubernetes.io/admin-access';

/** Field paths of the requests for administrative access in a claim specification. */
function* requestsAt({ devices }: ClaimSpec, path: string): Generator<string> {
  const requestsAdminAccess = (
    request: Pick<NonNullable<DeviceRequest['exactly']>, 'adminAccess'> | undefined,
  ): boolean => request?.adminAccess === true;
  for (const [index, { exactly }] of (devices?.requests ?? []).entries())
    if (requestsAdminAccess(exactly)) yield `${path}.devices.requests[${index}].exactly.adminAccess`;
}

/** Field paths at which an object requests administrative access or has been granted it. */
function places(request: AdmissionRequest, object: KubeObject | undefined): string[] {
  if (object === undefined) return [];
  if (isFor(request, 'resource.k8s.io', 'resourceclaimtemplates'))
    return [...requestsAt((object as ResourceClaimTemplate).spec?.spec ?? {}, 'spec.spec')];
  if (!isFor(request, 'resource.k8s.io', 'resourceclaims')) return [];
  const { spec = {}, status } = object as ResourceClaim;
  const given = (status?.allocation?.devices?.results ?? []).flatMap(({ adminAccess }, index) =>
    adminAccess === true ? [`status.allocation.devices.results[${index}].adminAccess`] : [],
  );
  return [...requestsAt(spec, 'spec'), ...given];
}

export function deviceAdminAccess(namespaces: NamespaceSource): AdmissionPlugin {
  return {
    name: 'DeviceAdminAccess',
    resources: ['resourceclaims.resource.k8s.io', 'resourceclaimtemplates.resource.k8s.io'],
    validate(request) {
      if (request.operation === 'DELETE') return;
      const requested = places(request, request.object);
      if (requested.length === 0) return;
      // Existing requests and grants stay valid. Only new requests and grants are checked.
      const before = new Set(places(request, request.old));
      const fresh = requested.filter((place) => !before.has(place));
      if (fresh.length === 0) return;
      const check = (labels: Readonly<Record<string, string>> | undefined): void => {
        if (labels?.[LABEL] !== 'true') throw refusal(request, fresh);
      };
      const cached = namespaces.cached(request.namespace);
      if (cached !== undefined) return check(cached.shared<KubeObject>().metadata?.labels);
      return namespaces
        .stored(request.namespace)
        .then((stored) => check(stored?.shared<KubeObject>().metadata?.labels));
    },
  };
}

function refusal(request: AdmissionRequest, places: readonly string[]): Error {
  const words = `admin access to devices requires the \`${LABEL}: true\` label on the containing namespace`;
  const failures: FieldError[] = places.map((place) => fieldError.forbidden(place, words));
  return invalid(request.kind.definition, request.object?.metadata?.name ?? request.name, failures);
}
