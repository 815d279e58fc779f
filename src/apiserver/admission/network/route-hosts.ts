/**
 * Hosts and certificates of routes. A route without a host gets a host in the cluster's domain. Setting a host or a
 * certificate requires permission on `routes/custom-host`. Source: openshift/library-go pkg/route/hostassignment.
 */

import { type FieldError, fieldError, invalid } from '../../../api/meta/field-error.ts';
import { reservation } from '../../../network/router/core/index.ts';
import type { Route } from '../../../network/router/kinds/routes/types.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { AccessSource } from '../authorizer.ts';
import { isFor } from '../subject.ts';

const GROUP = 'route.openshift.io';
const HOST_GENERATED = 'openshift.io/host.generated';
const CERTIFICATE_FIELDS = ['certificate', 'key', 'caCertificate', 'destinationCACertificate'] as const;
/** Equals the API server's default of `openshift.domain`. */
const DEFAULT_DOMAIN = 'apps.cluster.local';

export function routeHosts(access: AccessSource, domain = DEFAULT_DOMAIN): AdmissionPlugin {
  const mayChoose = async (request: AdmissionRequest, verb: string): Promise<boolean> => {
    const { namespace, name, user } = request;
    const action = { verb, group: GROUP, resource: 'routes', subresource: 'custom-host', namespace, name };
    return (await access.authorize(user, action)).allowed;
  };
  return {
    name: 'route.openshift.io/RouteHostAssignment',
    resources: ['routes.route.openshift.io'],
    async mutate(request, mutation) {
      if (request.operation !== 'CREATE' || !isRoute(request) || mutation.again) return;
      const route = request.object as Route;
      const hasHost = isSet(route.spec?.host) || isSet(route.spec?.subdomain);
      const hasCertificates = CERTIFICATE_FIELDS.some((field) => isSet(route.spec?.tls?.[field]));
      if ((hasHost || hasCertificates) && !(await mayChoose(request, 'create'))) {
        const errors: FieldError[] = [];
        if (hasHost)
          errors.push(
            fieldError.forbidden('spec.host', 'you do not have permission to set the host field of the route'),
          );
        if (hasCertificates)
          errors.push(
            fieldError.forbidden('spec.tls', 'you do not have permission to set certificate fields on the route'),
          );
        throw refusal(request, errors);
      }
      if (isSet(route.spec?.host)) return;
      const { subdomain } = route.spec ?? {};
      const name = route.metadata?.name ?? request.name;
      const first = isSet(subdomain) ? subdomain : `${name}-${request.namespace}`;
      if (name === '') return;
      route.spec = { ...route.spec, host: `${first}.${domain}` };
      if (isSet(subdomain)) return;
      route.metadata = {
        ...route.metadata,
        annotations: { ...route.metadata?.annotations, [HOST_GENERATED]: 'true' },
      };
    },
    async validate(request) {
      if (!isRoute(request) || (request.operation !== 'UPDATE' && request.operation !== 'CREATE')) return;
      const host = (request.object as Route).spec?.host ?? '';
      const held = (request.old as Route | undefined)?.spec?.host;
      if (host !== '' && host !== held) {
        const refused = reservation(host.toLowerCase(), request.namespace, { domain, wildcardRoutes: false });
        if (refused !== undefined) throw refusal(request, [fieldError.forbidden('spec.host', refused)]);
      }
      if (request.operation !== 'UPDATE') return;
      const [now, old] = [(request.object as Route).spec ?? {}, (request.old as Route).spec ?? {}];
      const isMoved = (now.host ?? '') !== (old.host ?? '') || (now.subdomain ?? '') !== (old.subdomain ?? '');
      const isResealed = CERTIFICATE_FIELDS.some((field) => (now.tls?.[field] ?? '') !== (old.tls?.[field] ?? ''));
      if (!isMoved && !isResealed) return;
      if (await mayChoose(request, 'update')) return;
      const errors: FieldError[] = [];
      if (isMoved) errors.push(fieldError.invalid('spec.host', now.host ?? '', 'field is immutable'));
      // A user who may create a route with certificates may also renew them.
      if (isResealed && !(await mayChoose(request, 'create')))
        errors.push(
          fieldError.forbidden('spec.tls', 'you do not have permission to update certificate fields on the route'),
        );
      if (errors.length > 0) throw refusal(request, errors);
    },
  };
}

const refusal = ({ kind, object, name }: AdmissionRequest, errors: readonly FieldError[]): Error =>
  invalid(kind.definition, object?.metadata?.name ?? name, errors);
const isRoute = (request: AdmissionRequest): boolean =>
  isFor(request, GROUP, 'routes') && request.subresource === '' && request.object !== undefined;
const isSet = (text: string | undefined): text is string => text !== undefined && text !== '';
