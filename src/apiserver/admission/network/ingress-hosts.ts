/**
 * Requires permissions on `routes/custom-host` for hosts of Ingresses: `create` to set them, `update` to change them.
 * Source: openshift/kubernetes openshift-kube-apiserver/admission/route/ingress (route.openshift.io/IngressAdmission).
 */
import type { Ingress } from '../../../api/generated/networking/v1.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { AccessSource } from '../authorizer.ts';
import { forbid, isFor } from '../subject.ts';

export const INGRESS_PLUGIN = 'route.openshift.io/IngressAdmission';
const ROUTE_GROUP = 'route.openshift.io';

export function ingressHosts(access: AccessSource): AdmissionPlugin {
  const mayChoose = async ({ user, namespace }: AdmissionRequest, verb: string): Promise<boolean> => {
    const action = { verb, group: ROUTE_GROUP, resource: 'routes', subresource: 'custom-host', namespace, name: '' };
    return (await access.authorize(user, action)).allowed;
  };
  return {
    name: INGRESS_PLUGIN,
    resources: ['ingresses.networking.k8s.io'],
    async validate(request) {
      const { operation, object, old, subresource } = request;
      if (!isFor(request, 'networking.k8s.io', 'ingresses') || subresource !== '' || object === undefined) return;
      const hosts = hostsOf(object as Ingress);
      if (operation === 'CREATE') {
        const first = hosts.findIndex((host) => host !== '');
        if (first < 0 || (await mayChoose(request, 'create'))) return;
        throw invalid(request.kind.definition, object.metadata?.name ?? request.name, [
          fieldError.forbidden(
            `spec.rules[${first}]`,
            'you do not have permission to set host fields in ingress rules',
          ),
        ]);
      }
      if (operation !== 'UPDATE' || old === undefined) return;
      const before = new Set(hostsOf(old as Ingress));
      const isSame = hosts.every((host) => before.has(host)) && before.size === new Set(hosts).size;
      if (isSame || (await mayChoose(request, 'update'))) return;
      throw forbid(request, 'cannot change hostname');
    },
  };
}

const hostsOf = ({ spec }: Ingress): string[] => (spec?.rules ?? []).map(({ host = '' }) => host);
