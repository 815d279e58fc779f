import type { Service, ServiceSpec } from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import { type ClusterAddresses, destinationsOf } from './destinations.ts';

/** A back end of a service port. */
export interface ProxyEndpoint {
  readonly ip: string;
  readonly port: number;
  /** On this node. */
  readonly local: boolean;
}

export type Protocol = ReservedPort['protocol'];

/** One port of one service as this node forwards it. */
export interface ServicePort {
  /** `namespace/name:port/protocol`. */
  readonly id: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly clusterIps: readonly string[];
  readonly externalIps: readonly string[];
  /** 0: none. */
  readonly nodePort: number;
  /** Seconds of ClientIP affinity; 0: none. */
  readonly affinitySeconds: number;
  /**
   * Keep the client's address and use only this node's back ends for traffic from outside (externalTrafficPolicy:
   * Local).
   */
  readonly externalLocal: boolean;
  /** For traffic to the cluster IP. */
  readonly endpoints: readonly ProxyEndpoint[];
  /** For traffic to external addresses and node ports; differs from `endpoints` under `Local` policies only. */
  readonly externalEndpoints: readonly ProxyEndpoint[];
}

const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
const DEFAULT_AFFINITY_SECONDS = 10_800;

/** An address or port of a service that is not forwarded. */
export interface RefusedAddress {
  /** The service port's id. */
  readonly service: string;
  /** `address:port`, or `*:port` for a node port. */
  readonly address: string;
  readonly why: string;
}

export interface DesiredPorts {
  readonly ports: readonly ServicePort[];
  readonly refused: readonly RefusedAddress[];
}

export interface DesiredInput extends Omit<ClusterAddresses, 'clusterIps'> {
  readonly services: readonly Service[];
  readonly nodeName: string;
}

/**
 * What this node must forward, from the API's view. IPv4 only. Follows kube-proxy: ready endpoints, or serving
 * terminating ones when no ready one is left (KEP-1669); headless, ExternalName and foreign-proxy services are not
 * forwarded. Addresses and ports that are not a service's to have (`destinationsOf`) are left out; of two services with
 * the same external address and port the older one has it.
 */
export function desiredServicePorts(input: DesiredInput): DesiredPorts {
  const { services, slices, nodeName } = input;
  const refused: RefusedAddress[] = [];
  const clusterIps = new Set(services.flatMap(({ spec }) => (spec === undefined ? [] : clusterIpsOf(spec))));
  const destinations = destinationsOf({ ...input, clusterIps });
  const claims = new Map<string, string>();
  const slicesOf = new Map<string, EndpointSlice[]>();
  for (const slice of slices) {
    if (slice.addressType !== 'IPv4') continue;
    const service = slice.metadata?.labels?.['kubernetes.io/service-name'];
    if (service === undefined) continue;
    const key = `${slice.metadata?.namespace ?? ''}/${service}`;
    const list = slicesOf.get(key);
    if (list === undefined) slicesOf.set(key, [slice]);
    else list.push(slice);
  }
  const ports: ServicePort[] = [];
  for (const service of [...services].sort(byAge)) {
    const spec = service.spec;
    if (spec === undefined || spec.type === 'ExternalName' || spec.clusterIP === undefined || spec.clusterIP === 'None')
      continue;
    if (service.metadata?.labels?.[PROXY_NAME_LABEL] !== undefined) continue;
    const name = `${service.metadata?.namespace ?? ''}/${service.metadata?.name ?? ''}`;
    const external = [
      ...(spec.externalIPs ?? []),
      // KEP-1860: with mode Proxy the load balancer sends to node ports or pods, and its own address is not captured.
      ...(service.status?.loadBalancer?.ingress ?? []).flatMap(({ ip, ipMode }) =>
        ip === undefined || ipMode === 'Proxy' ? [] : [ip],
      ),
    ].filter(isIpv4);
    for (const port of spec.ports ?? []) {
      const protocol = (port.protocol ?? 'TCP') as Protocol;
      const id = `${name}:${port.name ?? String(port.port)}/${protocol}`;
      const allowed = (at: string, why: string | undefined): boolean => {
        if (why !== undefined) refused.push({ service: id, address: at, why });
        return why === undefined;
      };
      const isFree = (ip: string): boolean => {
        const key = `${ip} ${protocol} ${port.port}`;
        const owner = claims.get(key) ?? id;
        claims.set(key, owner);
        return allowed(`${ip}:${port.port}`, owner === id ? undefined : `taken by ${owner}`);
      };
      const nodePort = port.nodePort ?? 0;
      const found = endpointsOf(slicesOf.get(name) ?? [], port.name ?? '', protocol, nodeName);
      const all = found.filter(({ ip, port: to }) =>
        allowed(`${ip}:${to}`, destinations.endpoint(ip, protocol, to, name)),
      );
      const local = all.filter((each) => each.local);
      const externalLocal = spec.externalTrafficPolicy === 'Local';
      ports.push({
        id,
        protocol,
        port: port.port,
        clusterIps: clusterIpsOf(spec).filter((ip) =>
          allowed(`${ip}:${port.port}`, destinations.clusterIp(ip, protocol, port.port)),
        ),
        externalIps: external.filter(
          (ip) => allowed(`${ip}:${port.port}`, destinations.externalIp(ip, protocol, port.port)) && isFree(ip),
        ),
        nodePort: nodePort > 0 && allowed(`*:${nodePort}`, destinations.nodePort(protocol, nodePort)) ? nodePort : 0,
        affinitySeconds:
          spec.sessionAffinity === 'ClientIP'
            ? (spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS)
            : 0,
        externalLocal,
        endpoints: spec.internalTrafficPolicy === 'Local' ? local : all,
        externalEndpoints: externalLocal ? local : all,
      });
    }
  }
  ports.sort((left, right) => (left.id < right.id ? -1 : left.id > right.id ? 1 : 0));
  return { ports, refused };
}

function clusterIpsOf({ clusterIP, clusterIPs }: ServiceSpec): string[] {
  return (clusterIPs ?? [clusterIP ?? '']).filter(isIpv4);
}

function byAge({ metadata: left }: Service, { metadata: right }: Service): number {
  const key = (each: Service['metadata']): string =>
    `${each?.creationTimestamp ?? ''} ${each?.namespace ?? ''}/${each?.name ?? ''}`;
  return key(left) < key(right) ? -1 : 1;
}

function endpointsOf(
  slices: readonly EndpointSlice[],
  portName: string,
  protocol: Protocol,
  nodeName: string,
): ProxyEndpoint[] {
  const ready = new Map<string, ProxyEndpoint>();
  const terminating = new Map<string, ProxyEndpoint>();
  for (const slice of slices) {
    const port = slice.ports?.find((each) => (each.name ?? '') === portName && (each.protocol ?? 'TCP') === protocol);
    if (port?.port === undefined) continue;
    for (const endpoint of slice.endpoints) {
      const into =
        endpoint.conditions?.ready !== false
          ? ready
          : endpoint.conditions.serving === true && endpoint.conditions.terminating === true
            ? terminating
            : undefined;
      if (into === undefined) continue;
      for (const ip of endpoint.addresses) {
        if (isIpv4(ip)) into.set(`${ip}:${port.port}`, { ip, port: port.port, local: endpoint.nodeName === nodeName });
      }
    }
  }
  const chosen = ready.size > 0 ? ready : terminating;
  return [...chosen.values()].sort((left, right) =>
    left.ip === right.ip ? left.port - right.port : left.ip < right.ip ? -1 : 1,
  );
}

const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)$/;
/** Only well-formed addresses ever reach the packet filter's language. */
function isIpv4(text: string): boolean {
  return IPV4.test(text);
}
