/**
 * Selection of the endpoints to which a node forwards a service port. Source: kube-proxy's topology rules; KEP-1669
 * (terminating endpoints), KEP-2433 (zone hints), KEP-3015 (trafficDistribution: zone and node hints).
 */
import type { Endpoint, EndpointSlice } from '../../../api/generated/discovery/v1.ts';
import { canonicalAddress } from '../../../base/addresses/addresses.ts';
import type { Family, Protocol, ProxyEndpoint } from './service-port.ts';

export interface Place {
  readonly nodeName: string;
  /** Label topology.kubernetes.io/zone of the Node. */
  readonly zone: string | undefined;
  /** Nodes whose hosts the gossip ring has declared dead. */
  readonly failedNodes: ReadonlySet<string>;
}

export interface ChosenEndpoints {
  /** Endpoints for traffic with the policy Cluster. */
  readonly all: readonly ProxyEndpoint[];
  /** Endpoints for traffic with the policy Local: those on this node. */
  readonly local: readonly ProxyEndpoint[];
  /** Addresses of this node's ready endpoints. */
  readonly localReady: readonly string[];
}

interface Candidate extends ProxyEndpoint {
  readonly hints: Hints;
  /** Whether the endpoint is on a failed node. */
  readonly failed: boolean;
}

/** An address of a slice that may receive traffic, before a port is chosen. */
interface SliceAddress extends Omit<Candidate, 'port'> {
  readonly ports: ReadonlyMap<string, number>;
  readonly terminating: boolean;
}

interface Hints {
  readonly zones: readonly string[];
  readonly nodes: readonly string[];
}

/**
 * Maximum number of pairs of a port and an endpoint that a node forwards for one family of a service. Without it, a
 * service with 5,000 ports and 100 endpoints would need half a million elements in the kernel. Above the maximum, each
 * port gets a share of the endpoints. The same maximum applies to pairs of a port and an external address, and to pairs
 * of a port and a source range.
 */
const MAX_PAIRS = 20_000;

export const shareOfPort = (portCount: number): number => Math.max(1, Math.floor(MAX_PAIRS / Math.max(1, portCount)));

export interface PortChoice {
  readonly name: string;
  readonly protocol: Protocol;
  /** Position of the port in its service. */
  readonly index: number;
}

/** Endpoints of one service in one family. */
export class ServiceEndpoints {
  readonly #addresses: readonly SliceAddress[];
  readonly #local: readonly SliceAddress[];
  readonly #place: Place;
  /** Maximum number of endpoints for each port. */
  readonly #most: number;

  constructor(slices: readonly EndpointSlice[], family: Family, place: Place, portCount: number) {
    this.#addresses = slices.flatMap((slice) => addressesOf(slice, family, place));
    this.#local = this.#addresses.filter(({ local }) => local);
    this.#place = place;
    this.#most = shareOfPort(portCount);
  }

  /** @param usable Returns false for endpoints to which the service may not forward. */
  choose(port: PortChoice, usable: (ip: string, port: number) => boolean): ChosenEndpoints {
    const key = portKey(port.name, port.protocol);
    const ready = new Map<string, Candidate>();
    const terminating = new Map<string, Candidate>();
    for (const { ports, terminating: isTerminating, ...address } of this.#shareOf(port.index)) {
      const number = ports.get(key);
      if (number === undefined || !usable(address.ip, number)) continue;
      (isTerminating ? terminating : ready).set(`${address.ip} ${number}`, { ...address, port: number });
    }
    return chosenOf(ready, terminating, this.#place);
  }

  /**
   * Addresses for one port: all of them, or a share of them if there are too many. Up to half of a share are addresses
   * on this node.
   */
  #shareOf(index: number): readonly SliceAddress[] {
    const all = this.#addresses;
    if (all.length <= this.#most) return all;
    const share = new Set(this.#local.slice(0, Math.ceil(this.#most / 2)));
    const others = this.#most - share.size;
    for (let at = index * others; share.size < this.#most; at += 1) share.add(all[at % all.length] as SliceAddress);
    return [...share];
  }
}

const portKey = (name: string, protocol: string): string => `${name}/${protocol}`;

function addressesOf(slice: EndpointSlice, family: Family, place: Place): SliceAddress[] {
  if (slice.addressType !== `IPv${family}`) return [];
  const ports = new Map<string, number>();
  for (const { name = '', protocol = 'TCP', port } of slice.ports ?? []) {
    const key = portKey(name, protocol);
    if (port !== undefined && !ports.has(key)) ports.set(key, port);
  }
  const found: SliceAddress[] = [];
  for (const endpoint of slice.endpoints ?? []) {
    const terminating = !isReady(endpoint);
    if (terminating && !isServingLast(endpoint)) continue;
    const local = endpoint.nodeName === place.nodeName;
    const hairpin = local || endpoint.nodeName === undefined;
    const failed = !local && place.failedNodes.has(endpoint.nodeName ?? '');
    for (const address of endpoint.addresses) {
      // Only canonical addresses may become part of nft programs.
      const ip = canonicalAddress(address);
      if (ip === undefined || ip.includes(':') !== (family === 6)) continue;
      found.push({ ip, ports, terminating, local, hairpin, hints: hintsOf(endpoint), failed });
    }
  }
  return found;
}

function chosenOf(
  ready: ReadonlyMap<string, Candidate>,
  terminating: ReadonlyMap<string, Candidate>,
  place: Place,
): ChosenEndpoints {
  const reachable = withoutFailed([...ready.values()]);
  const readyHere = [...ready.values()].filter(({ local }) => local);
  const lastHere = [...terminating.values()].filter(({ local }) => local);
  return {
    all: sorted(ready.size > 0 ? near(reachable, place) : withoutFailed([...terminating.values()])),
    local: sorted(readyHere.length > 0 ? readyHere : lastHere),
    localReady: [...new Set(readyHere.map(({ ip }) => ip))],
  };
}

/**
 * Excludes endpoints of failed nodes. If all endpoints are on failed nodes, all are used, because gossip may be wrong.
 */
function withoutFailed(endpoints: readonly Candidate[]): readonly Candidate[] {
  const present = endpoints.filter(({ failed }) => !failed);
  return present.length > 0 ? present : endpoints;
}

const isReady = ({ conditions }: Endpoint): boolean => conditions?.ready !== false;
const isServingLast = ({ conditions }: Endpoint): boolean =>
  conditions?.serving === true && conditions.terminating === true;

function hintsOf({ hints }: Endpoint): Hints {
  const { forZones = [], forNodes = [] } = hints ?? {};
  const names = (list: readonly { name?: string }[]): string[] => list.map(({ name = '' }) => name);
  return { zones: names(forZones), nodes: names(forNodes) };
}

/**
 * Endpoints that the hints allow. Hints apply only if every endpoint has them and at least one matches this node or
 * zone.
 */
function near(endpoints: readonly Candidate[], { nodeName, zone }: Place): readonly Candidate[] {
  const forNode = endpoints.filter(({ hints }) => hints.nodes.includes(nodeName));
  if (forNode.length > 0 && endpoints.every(({ hints }) => hints.nodes.length > 0)) return forNode;
  const forZone = zone === undefined ? [] : endpoints.filter(({ hints }) => hints.zones.includes(zone));
  return forZone.length > 0 && endpoints.every(({ hints }) => hints.zones.length > 0) ? forZone : endpoints;
}

function sorted(endpoints: readonly Candidate[]): ProxyEndpoint[] {
  return endpoints
    .map(({ ip, port, local, hairpin }) => ({ ip, port, local, hairpin }))
    .sort((left, right) => (left.ip === right.ip ? left.port - right.port : left.ip < right.ip ? -1 : 1));
}
