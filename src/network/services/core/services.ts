import type { ServicePort as ApiServicePort, Service, ServiceSpec } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { canonicalAddress, groupsOf, ipFamilyOf, textOf } from '../../../base/addresses/addresses.ts';
import type { Steps } from '../../../base/concurrency/steps.ts';
import type { Destinations } from './destinations.ts';
import { type Place, ServiceEndpoints, shareOfPort } from './endpoints.ts';
import type { Family, Protocol, ServicePort } from './service-port.ts';

const FAMILIES: readonly Family[] = [4, 6];
const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
const DEFAULT_AFFINITY_SECONDS = 10_800;

/** An address or port of a service that is not forwarded, with the reason. */
export interface RefusedAddress {
  /** ID of the service port. */
  readonly service: string;
  /** `address:port`, or `*:port` for a node port. */
  readonly address: string;
  readonly why: string;
}

/** Health check by load balancers of whether this node has endpoints of the service (externalTrafficPolicy: Local). */
export interface HealthCheck {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  readonly localEndpoints: number;
}

/** Forwarding plan of one service on this node. */
export interface ServicePlan {
  readonly ports: readonly ServicePort[];
  readonly refused: readonly RefusedAddress[];
  readonly healthCheck: HealthCheck | undefined;
  /** Addresses that the plan depends on, besides the service and its slices. */
  readonly requestedAddresses: readonly string[];
}

export interface PlanContext {
  readonly destinations: Destinations;
  readonly place: Place;
  /** Cluster IPs that the host serves itself, so they are not forwarded. */
  readonly hostServices: readonly string[];
  /** ID of the service port that owns this external address and port; undefined if none does. */
  claimant(ip: string, protocol: Protocol, port: number): string | undefined;
}

/** External addresses of a port that are planned in one step. */
const ADDRESSES_AT_ONCE = 500;

/**
 * Plans a service like kube-proxy: `isForwarded` excludes services, and `ServiceEndpoints` selects endpoints. Addresses
 * and ports that the service may not have (`destinationsOf`) are excluded. If two services have the same external
 * address and port, the older one gets it.
 */
export function* planService(
  service: Service,
  slices: readonly EndpointSlice[],
  context: PlanContext,
): Steps<ServicePlan> {
  const { spec } = service;
  if (spec === undefined || !isForwarded(service))
    return { ports: [], refused: [], healthCheck: undefined, requestedAddresses: [] };
  const { destinations, place } = context;
  const refused: RefusedAddress[] = [];
  const requested = new Set<string>();
  const name = objectKey(service);
  const balancers = new Set(balancerIps(service));
  const specPorts = spec.ports ?? [];
  const most = shareOfPort(specPorts.length);
  const external = externalIpsOf(service).slice(0, most);
  const clusterIps = clusterIpsOf(spec);
  const ranges = addressRanges(spec.loadBalancerSourceRanges ?? [])?.slice(0, most);
  const localReady = new Set<string>();
  const ports: ServicePort[] = [];
  const endpoints: Record<Family, ServiceEndpoints> = {
    4: new ServiceEndpoints(slices, 4, place, specPorts.length),
    6: new ServiceEndpoints(slices, 6, place, specPorts.length),
  };
  for (const [index, port] of specPorts.entries()) {
    yield;
    const protocol = protocolOf(port);
    const id = portId(name, port);
    const allowed = (at: string, why: string | undefined): boolean => {
      if (why !== undefined) refused.push({ service: id, address: at, why });
      return why === undefined;
    };
    const allowedIp = (ip: string, number: number, why: string | undefined): boolean => {
      requested.add(ip);
      return why === undefined || allowed(ip.includes(':') ? `[${ip}]:${number}` : `${ip}:${number}`, why);
    };
    const claimed = (ip: string): string | undefined => {
      const owner = context.claimant(ip, protocol, port.port);
      return owner === undefined || owner === id ? undefined : `in use by ${owner}`;
    };
    const given = port.nodePort ?? 0;
    const nodePort = given > 0 && allowed(`*:${given}`, destinations.nodePort(protocol, given)) ? given : 0;
    const externalLocal = spec.externalTrafficPolicy === 'Local';
    for (const family of FAMILIES) {
      const ownIps = clusterIps.filter((ip) => ipFamilyOf(ip) === family);
      const externalIps = external.filter((ip) => ipFamilyOf(ip) === family);
      // A family in which the service has no address is not forwarded, including its node ports.
      if (ownIps.length === 0 && externalIps.length === 0) continue;
      const chosen = endpoints[family].choose({ name: port.name ?? '', protocol, index }, (ip, to) =>
        allowedIp(ip, to, destinations.endpoint(ip, protocol, to, name)),
      );
      for (const ip of chosen.localReady) localReady.add(ip);
      const usable: string[] = [];
      for (const [at, ip] of externalIps.entries()) {
        if (at % ADDRESSES_AT_ONCE === ADDRESSES_AT_ONCE - 1) yield;
        const why = destinations.externalIp(ip, protocol, port.port, balancers.has(ip)) ?? claimed(ip);
        if (allowedIp(ip, port.port, why)) usable.push(ip);
      }
      ports.push({
        id,
        family,
        protocol,
        port: port.port,
        clusterIps: ownIps.filter(
          (ip) =>
            !context.hostServices.includes(ip) &&
            allowedIp(ip, port.port, destinations.clusterIp(ip, protocol, port.port)),
        ),
        externalIps: usable,
        restrictedIps: ranges === undefined ? [] : usable.filter((ip) => balancers.has(ip)),
        sourceRanges: (ranges ?? []).filter((range) => range.includes(':') === (family === 6)),
        nodePort,
        affinitySeconds:
          spec.sessionAffinity === 'ClientIP'
            ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS)
            : 0,
        externalLocal,
        endpoints: spec.internalTrafficPolicy === 'Local' ? chosen.local : chosen.all,
        externalEndpoints: externalLocal ? chosen.local : chosen.all,
      });
    }
  }
  let healthCheck: HealthCheck | undefined;
  const check = spec.healthCheckNodePort ?? 0;
  if (check > 0 && spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local') {
    const why = destinations.nodePort('TCP', check);
    if (why !== undefined) refused.push({ service: name, address: `*:${check}`, why });
    else {
      const { namespace = '', name: own = '' } = service.metadata ?? {};
      healthCheck = { namespace, name: own, port: check, localEndpoints: localReady.size };
    }
  }
  return { ports, refused, healthCheck, requestedAddresses: [...requested] };
}

/**
 * Whether this proxy forwards the service. Headless services, ExternalName services and services of another proxy are
 * not forwarded.
 */
export function isForwarded({ spec, metadata }: Service): boolean {
  if (spec === undefined || spec.type === 'ExternalName') return false;
  if (spec.clusterIP === undefined || spec.clusterIP === 'None') return false;
  return metadata?.labels?.[PROXY_NAME_LABEL] === undefined;
}

/** External addresses, including those of load balancers. */
export const externalIpsOf = (service: Service): string[] => [
  ...new Set([...addressesOf(service.spec?.externalIPs ?? []), ...balancerIps(service)]),
];

/** @param key `namespace/name` of the service. */
export const portId = (key: string, port: ApiServicePort): string =>
  `${key}:${port.name ?? String(port.port)}/${protocolOf(port)}`;

export const protocolOf = ({ protocol = 'TCP' }: ApiServicePort): Protocol => protocol as Protocol;

/**
 * Load balancer addresses to capture. With ipMode Proxy (KEP-1860) the load balancer sends to node ports or pods, so
 * its address is not captured.
 */
function balancerIps({ status }: Service): string[] {
  const ingress = status?.loadBalancer?.ingress ?? [];
  return addressesOf(ingress.flatMap(({ ip, ipMode }) => (ip === undefined || ipMode === 'Proxy' ? [] : [ip])));
}

const addressesOf = (texts: readonly string[]): string[] => texts.flatMap((text) => canonicalAddress(text) ?? []);

export const clusterIpsOf = ({ clusterIP, clusterIPs }: ServiceSpec): string[] =>
  addressesOf(clusterIPs ?? [clusterIP ?? '']);

/** Canonical ranges; undefined if every source is permitted. Invalid ranges are omitted. */
function addressRanges(texts: readonly string[]): string[] | undefined {
  if (texts.length === 0) return undefined;
  return texts.flatMap((text) => {
    const [address = '', bits = ''] = text.trim().split('/');
    const family = ipFamilyOf(address);
    if (family === 0 || !/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return [];
    const groups = groupsOf(address).map((group, index) => {
      const zeros = 16 - Math.min(16, Math.max(0, Number(bits) - index * 16));
      return (group >> zeros) << zeros;
    });
    return [`${textOf(groups)}/${Number(bits)}`];
  });
}

/** Sort key that orders older services first. */
export const ageText = ({ metadata: { creationTimestamp, namespace, name } = {} }: Service): string =>
  `${creationTimestamp ?? ''} ${namespace ?? ''}/${name ?? ''}`;
