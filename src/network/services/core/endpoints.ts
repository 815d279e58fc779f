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
  /** Endpoints for the policy Cluster. */
  readonly all: readonly ProxyEndpoint[];
  /** Endpoints for the policy Local: those on this node. */
  readonly local: readonly ProxyEndpoint[];
  /** Addresses of this node's ready endpoints. */
  readonly localReady: readonly string[];
}

interface Candidate extends ProxyEndpoint {
  readonly hints: Hints;
  /** The endpoint is on a failed node. */
  readonly failed: boolean;
}

interface Hints {
  readonly zones: readonly string[];
  readonly nodes: readonly string[];
}

/** @param usable Returns false for endpoints to which the service may not forward. */
export function chooseEndpoints(
  slices: readonly EndpointSlice[],
  port: { readonly name: string; readonly protocol: Protocol; readonly family: Family },
  place: Place,
  usable: (ip: string, port: number) => boolean,
): ChosenEndpoints {
  const ready = new Map<string, Candidate>();
  const terminating = new Map<string, Candidate>();
  for (const slice of slices) {
    if (slice.addressType !== `IPv${port.family}`) continue;
    const found = slice.ports?.find(
      (each) => (each.name ?? '') === port.name && (each.protocol ?? 'TCP') === port.protocol,
    );
    if (found?.port === undefined) continue;
    for (const endpoint of slice.endpoints ?? []) {
      const into = isReady(endpoint) ? ready : isServingLast(endpoint) ? terminating : undefined;
      for (const address of into === undefined ? [] : endpoint.addresses) {
        // Only canonical addresses may become part of nft programs.
        const ip = canonicalAddress(address);
        if (ip === undefined || ip.includes(':') !== (port.family === 6) || !usable(ip, found.port)) continue;
        const local = endpoint.nodeName === place.nodeName;
        const hairpin = local || endpoint.nodeName === undefined;
        const failed = !local && place.failedNodes.has(endpoint.nodeName ?? '');
        into?.set(`${ip} ${found.port}`, { ip, port: found.port, local, hairpin, hints: hintsOf(endpoint), failed });
      }
    }
  }
  const reachable = withoutFailed([...ready.values()]);
  const readyHere = [...ready.values()].filter(({ local }) => local);
  const lastHere = [...terminating.values()].filter(({ local }) => local);
  return {
    all: sorted(ready.size > 0 ? near(reachable, place) : withoutFailed([...terminating.values()])),
    local: sorted(readyHere.length > 0 ? readyHere : lastHere),
    localReady: [...new Set(readyHere.map(({ ip }) => ip))],
  };
}

/** Endpoints of failed nodes are used only if there are no others, because gossip may be wrong. */
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

/** Hints apply only if every endpoint has them and one of them matches this node or zone. */
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
