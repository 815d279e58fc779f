/**
 * Resolves the service of a webhook or APIService to its ready endpoints, because the API server's host may not route
 * cluster IPs.
 */
import type { Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { CodedError } from '../../base/errors.ts';
import type { WatchCache } from '../watch-cache/watch-cache.ts';

export const SERVICE_NAME_LABEL = 'kubernetes.io/service-name';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Returns at least one endpoint. Throws CodedErrors 'no-service', 'no-port' and 'no-endpoints'. */
export function serviceEndpoints(cache: WatchCache, namespace: string, name: string, port: number): HostPort[] {
  const service = cache.kind('services/specs').get(namespace, name)?.shared<Service>();
  if (service === undefined)
    throw new CodedError('no-service', `service ${JSON.stringify(`${namespace}/${name}`)} not found`);
  if (service.spec?.type === 'ExternalName') return [{ host: service.spec.externalName ?? '', port }];
  const declared = service.spec?.ports?.find((each) => each.port === port);
  if (declared === undefined)
    throw new CodedError('no-port', `no service port ${port} found for service ${JSON.stringify(name)}`);
  const found: HostPort[] = [];
  for (const slice of slicesOf(cache, namespace, name)) {
    const number = slice.ports?.find((each) => (each.name ?? '') === (declared.name ?? ''))?.port;
    for (const endpoint of slice.endpoints ?? []) {
      const [host] = endpoint.addresses;
      if (number !== undefined && host !== undefined && endpoint.conditions?.ready !== false)
        found.push({ host, port: number });
    }
  }
  if (found.length === 0)
    throw new CodedError('no-endpoints', `no endpoints available for service ${JSON.stringify(name)}`);
  return found;
}

export function slicesOf(cache: WatchCache, namespace: string, name: string): Readonly<EndpointSlice>[] {
  return cache
    .kind('endpointslices')
    .list(namespace)
    .filter((object) => object.shared<EndpointSlice>().metadata?.labels?.[SERVICE_NAME_LABEL] === name)
    .map((object) => object.shared<EndpointSlice>());
}
