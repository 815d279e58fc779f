/**
 * Addresses of services of type LoadBalancer: one address of a pool per service or, without a pool, the addresses of
 * the nodes, where services share an address as long as their ports differ. Source: the page "Service", "type:
 * LoadBalancer"; k8s.io/cloud-provider/controllers/service; KEP-1860 (ipMode).
 */
import type { LoadBalancerIngress, Node, Service } from '../../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import {
  isHostPort,
  type ReservedPort,
  reservedPortsOf,
  SERVICE_PORTS,
} from '../../../api/kinds/nodes/nodes/host-ports.ts';
import { ownAddressesOf } from '../../../api/kinds/nodes/nodes/own-addresses.ts';
import { type KubeObject, objectKey } from '../../../api/meta/object.ts';
import { type AddressRange, freeAddresses, isInPool } from '../../../base/addresses/address-pool.ts';
import { canonicalAddress, ipFamilyOf, isInNetwork } from '../../../base/addresses/addresses.ts';

export const LOAD_BALANCER_CLASS = 'hyperedge.dev/service-lb';
const EXCLUDED_NODE = 'node.kubernetes.io/exclude-from-external-load-balancers';

export interface LoadBalancerInput {
  readonly services: readonly Service[];
  readonly nodes: readonly Node[];
  /** Address ranges of the pool; empty if services get the addresses of the nodes. */
  readonly pool: readonly AddressRange[];
  /** Networks of services and pods, which cannot contain addresses of nodes. */
  readonly clusterRanges?: readonly string[];
  slices(service: Service): readonly EndpointSlice[];
}

export interface LoadBalancerPlan {
  /** Addresses in canonical form; undefined if the status does not change. */
  readonly addresses: readonly string[] | undefined;
  /** Reason why the service has no address. */
  readonly problem: string | undefined;
}

export function isBalanced({ metadata, spec }: Service): boolean {
  if (spec?.type !== 'LoadBalancer' || metadata?.deletionTimestamp !== undefined) return false;
  return spec.loadBalancerClass === undefined || spec.loadBalancerClass === LOAD_BALANCER_CLASS;
}

/** Plans by key of the service. In a conflict, the older service keeps its address or port. */
export function planLoadBalancers(input: LoadBalancerInput): Map<string, LoadBalancerPlan> {
  const services = input.services.filter(isBalanced).sort(byAge);
  return input.pool.length > 0 ? fromPool(services, input.pool) : fromNodes(services, input);
}

function fromPool(services: readonly Service[], pool: readonly AddressRange[]): Map<string, LoadBalancerPlan> {
  const used = new Set<string>();
  const kept = new Map<string, string[]>();
  // Addresses in use are kept before free addresses are allocated, so that no service gets the address of another
  // service.
  for (const service of services) {
    const wanted = requested(service);
    const own = currentAddresses(service).filter(
      (address) =>
        isInPool(pool, address) &&
        !used.has(address) &&
        familiesOf(service).includes(familyOf(address)) &&
        (wanted === undefined || wanted === address || familyOf(wanted) !== familyOf(address)),
    );
    for (const address of own) used.add(address);
    kept.set(objectKey(service), own);
  }
  const free = freeAddresses(pool, (address) => used.has(address));
  const plans = new Map<string, LoadBalancerPlan>();
  for (const service of services) {
    const key = objectKey(service);
    const addresses = [...(kept.get(key) ?? [])];
    let problem: string | undefined;
    for (const family of familiesOf(service)) {
      if (addresses.some((address) => familyOf(address) === family)) continue;
      const found = poolAddress(service, family, { pool, used, free });
      if (found.address !== undefined) {
        used.add(found.address);
        addresses.push(found.address);
      } else if (service.spec?.ipFamilyPolicy !== 'PreferDualStack' || addresses.length === 0)
        problem ??= found.problem;
    }
    plans.set(key, { addresses, problem: addresses.length === 0 || isRequired(service) ? problem : undefined });
  }
  return plans;
}

interface PoolState {
  readonly pool: readonly AddressRange[];
  readonly used: ReadonlySet<string>;
  free(family: 4 | 6): string | undefined;
}

const isRequired = ({ spec }: Service): boolean => spec?.ipFamilyPolicy === 'RequireDualStack';

function poolAddress(
  service: Service,
  family: 4 | 6,
  { pool, used, free }: PoolState,
): { readonly address?: string; readonly problem?: string } {
  const wanted = requested(service);
  if (wanted !== undefined && familyOf(wanted) === family) {
    if (!isInPool(pool, wanted)) return { problem: `${wanted} is not in serviceLoadBalancer.addresses` };
    return used.has(wanted) ? { problem: `${wanted} is in use by another service` } : { address: wanted };
  }
  const address = free(family);
  return address === undefined
    ? { problem: `serviceLoadBalancer.addresses has no free IPv${family} address` }
    : { address };
}

function fromNodes(services: readonly Service[], input: LoadBalancerInput): Map<string, LoadBalancerPlan> {
  const nodes = input.nodes.filter(isCandidate);
  const owned = addressesByNode(input);
  /** Owning service by `protocol/port`. */
  const inUse = new Map<string, string>();
  // The ports that a node reserves apply only to its own addresses.
  const reserved = new Map(nodes.map((node) => [node, new Set(reservedPortsOf(node).map(portText))]));
  const plans = new Map<string, LoadBalancerPlan>();
  for (const service of services) {
    const key = objectKey(service);
    const wanted = wantedPorts(service);
    const { ports } = wanted;
    const free = nodes.filter((node) => reserved.get(node)?.isDisjointFrom(ports) !== false);
    const problem = portProblem(wanted, inUse, nodes.length > 0 && free.length === 0 ? reserved : undefined);
    if (problem !== undefined) {
      plans.set(key, { addresses: [], problem });
      continue;
    }
    for (const port of ports) inUse.set(port, `service ${key}`);
    // While no node is ready, services keep their addresses: probably only the reports of the nodes are missing.
    if (nodes.length === 0) plans.set(key, { addresses: undefined, problem: 'no node is ready' });
    else plans.set(key, nodeAddresses(service, free, owned, input));
  }
  return plans;
}

interface WantedPorts {
  /** As `protocol/port`. */
  readonly ports: ReadonlySet<string>;
  /** A port that belongs to the hosts. */
  readonly ofHosts: string | undefined;
}

/** Kept by service, because all services are planned together and one can have thousands of ports. */
const wantedPortsOf = new WeakMap<Service, WantedPorts>();

function wantedPorts(service: Service): WantedPorts {
  const known = wantedPortsOf.get(service);
  if (known !== undefined) return known;
  const list = (service.spec?.ports ?? []).map(({ protocol = 'TCP', port }) => ({
    protocol: protocol as ReservedPort['protocol'],
    port,
  }));
  const ofHosts = list.find(isHostPort);
  const wanted = {
    ports: new Set(list.map(portText)),
    ofHosts: ofHosts === undefined ? undefined : portText(ofHosts),
  };
  wantedPortsOf.set(service, wanted);
  return wanted;
}

const portText = ({ protocol, port }: ReservedPort): string => `${protocol}/${port}`;

/** @param reserved Ports of nodes that each reserve some of the wanted ports. */
function portProblem(
  { ports, ofHosts }: WantedPorts,
  inUse: ReadonlyMap<string, string>,
  reserved: ReadonlyMap<Node, ReadonlySet<string>> | undefined,
): string | undefined {
  if (ofHosts !== undefined)
    return `port ${ofHosts} is reserved for the hosts; use a port of at least 1024 or one of ${SERVICE_PORTS.join(', ')}, or set serviceLoadBalancer.addresses`;
  const conflict = ports.values().find((port) => inUse.has(port));
  if (conflict !== undefined) return `port ${conflict} is in use by ${inUse.get(conflict)}`;
  if (reserved === undefined) return undefined;
  const ofNodes = new Set([...reserved.values()].flatMap((each) => [...each]));
  const own = ports.values().find((port) => ofNodes.has(port));
  return `port ${own} is in use by the node`;
}

function nodeAddresses(
  service: Service,
  nodes: readonly Node[],
  owned: ReadonlyMap<Node, readonly string[]>,
  input: LoadBalancerInput,
): LoadBalancerPlan {
  const isLocal = service.spec?.externalTrafficPolicy === 'Local';
  const withEndpoints = isLocal ? nodesWithEndpoints(input.slices(service)) : undefined;
  const serving = nodes.filter((node) => withEndpoints?.has(node.metadata?.name ?? '') ?? true);
  const families = familiesOf(service);
  const found = serving.flatMap((node) =>
    (owned.get(node) ?? []).filter((address) => families.includes(familyOf(address))),
  );
  const wanted = requested(service);
  const addresses = wanted === undefined ? found : found.filter((address) => address === wanted);
  if (addresses.length > 0) return { addresses: [...new Set(addresses)].sort(), problem: undefined };
  const problem =
    wanted !== undefined
      ? `${wanted} is not an address of a ready node`
      : isLocal
        ? 'externalTrafficPolicy is Local and no ready node has an endpoint'
        : 'no ready node has an address of the family of the service';
  return { addresses: [], problem };
}

/** Names of the nodes with an endpoint that accepts traffic. */
export function nodesWithEndpoints(slices: readonly EndpointSlice[]): Set<string> {
  const names = new Set<string>();
  for (const { endpoints = [] } of slices)
    for (const { conditions, nodeName } of endpoints)
      if (nodeName !== undefined && conditions?.ready !== false) names.add(nodeName);
  return names;
}

function isCandidate({ metadata, status }: Node): boolean {
  if (metadata?.deletionTimestamp !== undefined || metadata?.labels?.[EXCLUDED_NODE] !== undefined) return false;
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

/** External addresses of the node if it has any; otherwise the internal ones. */
function addressesOf(node: Node): readonly string[] {
  const { internal, external } = ownAddressesOf(node);
  return external.length > 0 ? external : internal;
}

/**
 * Whether the address is in the node's pod network. A host without an address of its own reports the address of its pod
 * bridge.
 */
const isInOwnRange = ({ spec }: Node, address: string): boolean =>
  (spec?.podCIDRs ?? (spec?.podCIDR === undefined ? [] : [spec.podCIDR])).some((range) => isInNetwork(address, range));

/** Addresses by node. If several nodes report the same address, the oldest node has it. */
function addressesByNode({ nodes, clusterRanges = [] }: LoadBalancerInput): Map<Node, readonly string[]> {
  const owned = new Set<string>();
  const found = new Map<Node, readonly string[]>();
  for (const node of [...nodes].sort(byAge)) {
    const own = addressesOf(node).filter(
      (address) =>
        !owned.has(address) &&
        (!clusterRanges.some((range) => isInNetwork(address, range)) || isInOwnRange(node, address)),
    );
    for (const address of own) owned.add(address);
    found.set(node, own);
  }
  return found;
}

export const currentAddresses = ({ status }: Service): string[] =>
  (status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => (ip === undefined ? [] : (canonicalAddress(ip) ?? [])));

export const ingressOf = (addresses: readonly string[]): LoadBalancerIngress[] =>
  addresses.map((ip) => ({ ip, ipMode: 'VIP' }));

/** The canonical `spec.loadBalancerIP`; undefined if the service requests no address. */
function requested({ spec }: Service): string | undefined {
  const given = spec?.loadBalancerIP ?? '';
  return given === '' ? undefined : (canonicalAddress(given) ?? given);
}

const familyOf = (address: string): 4 | 6 => (ipFamilyOf(address) === 6 ? 6 : 4);

function familiesOf({ spec }: Service): (4 | 6)[] {
  const families = spec?.ipFamilies ?? [];
  return families.length === 0 ? [4] : families.map((family) => (family === 'IPv6' ? 6 : 4));
}

function byAge({ metadata: left }: KubeObject, { metadata: right }: KubeObject): number {
  const key = (each: KubeObject['metadata']): string =>
    `${each?.creationTimestamp ?? ''} ${each?.namespace ?? ''}/${each?.name ?? ''}`;
  return key(left) < key(right) ? -1 : 1;
}
