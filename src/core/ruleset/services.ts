import type { Service, ServiceSpec } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import { canonicalAddress, groupsOf, ipFamilyOf, textOf } from '../../base/addresses.ts';
import { type ClusterAddresses, destinationsOf } from './destinations.ts';
import { chooseEndpoints, type Place } from './endpoints.ts';
import type { Family, Protocol, ServicePort } from './service-port.ts';

const FAMILIES: readonly Family[] = [4, 6];
const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
const ZONE_LABEL = 'topology.kubernetes.io/zone';
const DEFAULT_AFFINITY_SECONDS = 10_800;

/** An address or port of a service that is not forwarded. */
export interface RefusedAddress {
  /** The service port's id. */
  readonly service: string;
  /** `address:port`, or `*:port` for a node port. */
  readonly address: string;
  readonly why: string;
}

/** What a load balancer asks a node: has it endpoints of its own (externalTrafficPolicy: Local)? */
export interface HealthCheck {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  readonly localEndpoints: number;
}

export interface DesiredPorts {
  readonly ports: readonly ServicePort[];
  readonly healthChecks: readonly HealthCheck[];
  readonly refused: readonly RefusedAddress[];
}

export interface DesiredInput extends Omit<ClusterAddresses, 'clusterIps'> {
  readonly services: readonly Service[];
  readonly nodeName: string;
  /** Cluster IPs that the host answers itself: nothing is forwarded there. */
  readonly hostServices?: readonly string[];
}

/**
 * What this node must forward, from the API's view. Follows kube-proxy: headless, ExternalName and foreign-proxy
 * services are not forwarded; `chooseEndpoints` has the rules for endpoints. Addresses and ports that are not a
 * service's to have (`destinationsOf`) are left out; of two services with the same external address and port the older
 * one has it.
 */
export function desiredServicePorts(input: DesiredInput): DesiredPorts {
  const { services, slices, nodeName } = input;
  const refused: RefusedAddress[] = [];
  const clusterIps = new Set(services.flatMap(({ spec }) => (spec === undefined ? [] : clusterIpsOf(spec))));
  const destinations = destinationsOf({ ...input, clusterIps });
  const node = input.nodes.find(({ metadata }) => metadata?.name === nodeName);
  const place: Place = { nodeName, zone: node?.metadata?.labels?.[ZONE_LABEL] };
  const claims = new Map<string, string>();
  const slicesOf = byService(slices);
  const ports: ServicePort[] = [];
  const healthChecks: HealthCheck[] = [];
  for (const service of [...services].sort(byAge)) {
    const { spec, metadata } = service;
    if (spec === undefined || spec.type === 'ExternalName' || spec.clusterIP === undefined || spec.clusterIP === 'None')
      continue;
    if (metadata?.labels?.[PROXY_NAME_LABEL] !== undefined) continue;
    const name = `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
    const balancers = balancerIps(service);
    const external = [...new Set([...addressesOf(spec.externalIPs ?? []), ...balancers])];
    const ranges = addressRanges(spec.loadBalancerSourceRanges ?? []);
    const localReady = new Set<string>();
    for (const port of spec.ports ?? []) {
      const protocol = (port.protocol ?? 'TCP') as Protocol;
      const id = `${name}:${port.name ?? String(port.port)}/${protocol}`;
      const allowed = (at: string, why: string | undefined): boolean => {
        if (why !== undefined) refused.push({ service: id, address: at, why });
        return why === undefined;
      };
      const at = (ip: string, number: number): string => (ip.includes(':') ? `[${ip}]:${number}` : `${ip}:${number}`);
      const isFree = (ip: string): boolean => {
        const key = `${ip} ${protocol} ${port.port}`;
        const owner = claims.get(key) ?? id;
        claims.set(key, owner);
        return allowed(at(ip, port.port), owner === id ? undefined : `taken by ${owner}`);
      };
      const given = port.nodePort ?? 0;
      const nodePort = given > 0 && allowed(`*:${given}`, destinations.nodePort(protocol, given)) ? given : 0;
      const externalLocal = spec.externalTrafficPolicy === 'Local';
      for (const family of FAMILIES) {
        const ownIps = clusterIpsOf(spec).filter((ip) => ipFamilyOf(ip) === family);
        const externalIps = external.filter((ip) => ipFamilyOf(ip) === family);
        // Of a family that the service does not have, nothing is forwarded, node ports included.
        if (ownIps.length === 0 && externalIps.length === 0) continue;
        const chosen = chooseEndpoints(
          slicesOf.get(name) ?? [],
          { name: port.name ?? '', protocol, family },
          place,
          (ip, to) => allowed(at(ip, to), destinations.endpoint(ip, protocol, to, name)),
        );
        for (const ip of chosen.localReady) localReady.add(ip);
        const usable = externalIps.filter(
          (ip) => allowed(at(ip, port.port), destinations.externalIp(ip, protocol, port.port)) && isFree(ip),
        );
        ports.push({
          id,
          family,
          protocol,
          port: port.port,
          clusterIps: ownIps.filter(
            (ip) =>
              input.hostServices?.includes(ip) !== true &&
              allowed(at(ip, port.port), destinations.clusterIp(ip, protocol, port.port)),
          ),
          externalIps: usable,
          restrictedIps: ranges === undefined ? [] : usable.filter((ip) => balancers.includes(ip)),
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
    const check = spec.healthCheckNodePort ?? 0;
    if (check > 0 && spec.type === 'LoadBalancer' && spec.externalTrafficPolicy === 'Local') {
      const why = destinations.nodePort('TCP', check);
      if (why !== undefined) refused.push({ service: name, address: `*:${check}`, why });
      else {
        const [namespace = '', own = ''] = name.split('/');
        healthChecks.push({ namespace, name: own, port: check, localEndpoints: localReady.size });
      }
    }
  }
  ports.sort((left, right) => (left.id === right.id ? left.family - right.family : left.id < right.id ? -1 : 1));
  return { ports, refused, healthChecks };
}

function byService(slices: readonly EndpointSlice[]): Map<string, EndpointSlice[]> {
  const found = new Map<string, EndpointSlice[]>();
  for (const slice of slices) {
    const service = slice.metadata?.labels?.['kubernetes.io/service-name'];
    if (service === undefined) continue;
    const key = `${slice.metadata?.namespace ?? ''}/${service}`;
    const list = found.get(key);
    if (list === undefined) found.set(key, [slice]);
    else list.push(slice);
  }
  return found;
}

/** KEP-1860: with mode Proxy the load balancer sends to node ports or pods, and its own address is not captured. */
function balancerIps({ status }: Service): string[] {
  const ingress = status?.loadBalancer?.ingress ?? [];
  return addressesOf(ingress.flatMap(({ ip, ipMode }) => (ip === undefined || ipMode === 'Proxy' ? [] : [ip])));
}

const addressesOf = (texts: readonly string[]): string[] => texts.flatMap((text) => canonicalAddress(text) ?? []);

const clusterIpsOf = ({ clusterIP, clusterIPs }: ServiceSpec): string[] => addressesOf(clusterIPs ?? [clusterIP ?? '']);

/** Undefined: every source. What cannot be read is no source. */
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

function byAge({ metadata: left }: Service, { metadata: right }: Service): number {
  const key = (each: Service['metadata']): string =>
    `${each?.creationTimestamp ?? ''} ${each?.namespace ?? ''}/${each?.name ?? ''}`;
  return key(left) < key(right) ? -1 : 1;
}
