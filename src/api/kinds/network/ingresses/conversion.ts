/**
 * Conversion of v1beta1 ingresses of the groups extensions and networking.k8s.io. Source:
 * k8s.io/kubernetes/pkg/apis/{networking,extensions}/v1beta1 conversion and defaults.
 */
import type { Ingress, IngressBackend, IngressSpec } from '../../../generated/networking/v1.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { isSet } from '../../../meta/validation.ts';
import type { KindAlias } from '../../../registry/definition.ts';

interface OlderBackend {
  serviceName?: string;
  servicePort?: number | string;
  resource?: NonNullable<IngressBackend['resource']>;
}

interface OlderPath {
  path?: string;
  pathType?: string;
  backend?: OlderBackend;
}

interface OlderSpec extends Pick<IngressSpec, 'ingressClassName' | 'tls'> {
  backend?: OlderBackend;
  rules?: { host?: string; http?: { paths?: OlderPath[] } }[];
}

function backendTo({ serviceName, servicePort, resource }: OlderBackend): IngressBackend {
  const backend: IngressBackend = {};
  if (resource !== undefined) backend.resource = resource;
  if (!isSet(serviceName) && servicePort === undefined) return backend;
  const port = typeof servicePort === 'string' ? { name: servicePort } : { number: servicePort ?? 0 };
  backend.service = { name: serviceName ?? '', ...(servicePort === undefined ? {} : { port }) };
  return backend;
}

function backendFrom({ service, resource }: IngressBackend): OlderBackend {
  const backend: OlderBackend = {};
  if (resource !== undefined) backend.resource = resource;
  if (service === undefined) return backend;
  backend.serviceName = service.name;
  const port = isSet(service.port?.name) ? service.port.name : service.port?.number;
  if (port !== undefined) backend.servicePort = port;
  return backend;
}

function specTo({ backend, rules, ...rest }: OlderSpec): IngressSpec {
  return {
    ...rest,
    ...(backend === undefined ? {} : { defaultBackend: backendTo(backend) }),
    ...(rules === undefined
      ? {}
      : {
          rules: rules.map((rule) => {
            if (rule.http?.paths === undefined) return rule as { host: string };
            const paths = rule.http.paths.map((path) => ({
              ...path,
              pathType: path.pathType ?? 'ImplementationSpecific',
              backend: backendTo(path.backend ?? {}),
            }));
            return { ...rule, http: { ...rule.http, paths } };
          }),
        }),
  };
}

function specFrom({ defaultBackend, rules, ...rest }: IngressSpec): OlderSpec {
  return {
    ...rest,
    ...(defaultBackend === undefined ? {} : { backend: backendFrom(defaultBackend) }),
    ...(rules === undefined
      ? {}
      : {
          rules: rules.map((rule) => {
            if (rule.http?.paths === undefined) return rule as { host: string };
            const paths = rule.http.paths.map((path) => ({ ...path, backend: backendFrom(path.backend ?? {}) }));
            return { ...rule, http: { ...rule.http, paths } };
          }),
        }),
  };
}

export function olderIngress(group: 'extensions' | 'networking.k8s.io', since: string): KindAlias<Ingress> {
  return {
    group,
    version: 'v1beta1',
    deprecated: { since, removed: '1.22' },
    convertTo(object) {
      const { spec } = object as { spec?: OlderSpec };
      return (spec === undefined ? object : { ...object, spec: specTo(spec) }) as Ingress;
    },
    convertFrom(object) {
      return (object.spec === undefined ? object : { ...object, spec: specFrom(object.spec) }) as KubeObject;
    },
  };
}
