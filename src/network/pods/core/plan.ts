/**
 * Plans routes, neighbors and VXLAN entries to the pods of other nodes. If another host is on the same link, routes use
 * its address as the next hop. Other hosts are reached through VXLAN (RFC 7348). Each host derives its MAC address from
 * its pod range, so the other hosts know the address without announcements.
 */
import { ipFamilyOf, isInNetwork } from '../../../base/addresses/addresses.ts';
import { addressText, networkText, parseNetwork, widthOf } from '../../../base/addresses/networks.ts';
import type { Family, Overlay, PeerPath, PodRoute, TunnelForward, TunnelLink, TunnelNeighbor } from './port.ts';

export type Backend = 'auto' | 'routes' | 'vxlan';

export interface Peer {
  readonly node: string;
  /** Trusted InternalIPs, the primary one first. */
  readonly addresses: readonly string[];
  /**
   * InternalIPs of an address family in which no address of the node is proven. They are used only as next hops for the
   * node's own pods.
   */
  readonly unproven?: readonly string[];
  readonly podCidrs: readonly string[];
}

export interface OverlayInput {
  readonly own: Peer;
  readonly peers: readonly Peer[];
  readonly paths: ReadonlyMap<string, PeerPath>;
  readonly backend: Backend;
  readonly clusterCidrs: readonly string[];
  /** Names of the VXLAN devices by address family of the hosts. */
  readonly tunnelNames: Readonly<Record<Family, string>>;
  /** Links of the pod network itself, through which no host is reached. */
  readonly podLinks: ReadonlySet<string>;
  /** MTU of the link with this host's own address. */
  readonly linkMtu: number;
  /** Configured MTU; undefined if it is discovered. */
  readonly mtu: number | undefined;
}

export interface OverlayPlan {
  readonly overlay: Overlay;
  /** MTU of the pods' links, which is the smallest MTU of all paths. */
  readonly podMtu: number;
  /** Nodes whose pods cannot be reached. */
  readonly problems: readonly { readonly node: string; readonly why: string }[];
}

/** Size of the outer IP, UDP and VXLAN headers and the inner Ethernet header. */
export const VXLAN_OVERHEAD: Readonly<Record<Family, number>> = { 4: 50, 6: 70 };
/** The smallest MTU of a link with IPv6 (RFC 8200 §5). */
const MIN_MTU = 1280;

interface Way {
  readonly peer: Peer;
  readonly address: string;
  readonly underlay: Family;
  readonly path: PeerPath;
  readonly tunneled: boolean;
  readonly mtu: number;
}

const familyOf = (address: string): Family | undefined => ipFamilyOf(address) || undefined;

/** Canonical pod ranges. Invalid ones are omitted. */
function rangesOf(peer: Peer): string[] {
  return peer.podCidrs.flatMap((cidr) => {
    const network = parseNetwork(cidr);
    return network === undefined ? [] : [networkText(network)];
  });
}

const baseOf = (cidr: string): string => cidr.split('/')[0] ?? '';

/** MAC address of the tunnel of the host with this pod range: locally administered, and as unique as the range. */
export function tunnelMac(podCidr: string): string | undefined {
  const network = parseNetwork(podCidr);
  if (network === undefined) return undefined;
  const prefix = network.base >> BigInt(widthOf(network.family) - network.bits);
  const low = Number(prefix & 0xffffffffn);
  const bytes = [24, 16, 8, 0].map((shift) => (low >>> shift) & 255);
  return ['0a', network.family === 4 ? '54' : '56', ...bytes.map((byte) => byte.toString(16).padStart(2, '0'))].join(
    ':',
  );
}

/** Address through which a peer is reached. IPv4 is preferred, so that both ends select the same family. */
function wayTo(peer: Peer, input: OverlayInput): Way | string {
  const own = new Set(input.own.addresses);
  if (peer.addresses.some((address) => own.has(address)))
    return `address ${peer.addresses.find((address) => own.has(address))} belongs to this host`;
  const sorted = peer.addresses
    .filter((address) => familyOf(address) !== undefined)
    .filter((address) => !input.clusterCidrs.some((cidr) => isInNetwork(address, cidr)))
    .sort((left, right) => (familyOf(left) ?? 0) - (familyOf(right) ?? 0));
  for (const address of sorted) {
    const path = input.paths.get(address);
    const underlay = familyOf(address);
    if (path === undefined || underlay === undefined || input.podLinks.has(path.link)) continue;
    const tunneled = input.backend === 'vxlan' || (input.backend === 'auto' && path.gateway !== undefined);
    return { peer, address, underlay, path, tunneled, mtu: path.mtu - (tunneled ? VXLAN_OVERHEAD[underlay] : 0) };
  }
  if (peer.addresses.length === 0) return 'no address of the node is approved';
  return sorted.length === 0
    ? 'the node has no InternalIP outside of the pod network'
    : `no route to ${sorted.join(', ')}`;
}

/**
 * How packets to a pod range reach the host. Only a tunnel can carry a range of another address family than that of the
 * hosts.
 */
function carriageOf(way: Way, cidr: string, backend: Backend): 'direct' | 'tunnel' | undefined {
  if (way.tunneled) return 'tunnel';
  if (familyOf(baseOf(cidr)) === way.underlay) return 'direct';
  return backend === 'routes' ? undefined : 'tunnel';
}

/** Deterministic: the same input gives the same plan in the same order. */
export function planOverlay(input: OverlayInput): OverlayPlan {
  const problems: { node: string; why: string }[] = [];
  const routes: PodRoute[] = [];
  const neighbors: TunnelNeighbor[] = [];
  const forwards: TunnelForward[] = [];
  const tunnelMtus = new Map<Family, number>();
  const mtus: number[] = [];
  const claimed = new Set(rangesOf(input.own));
  const tunnel = (way: Way, cidr: string, mac: string): void => {
    const link = input.tunnelNames[way.underlay];
    const mtu = way.path.mtu - VXLAN_OVERHEAD[way.underlay];
    const limit = input.mtu === undefined ? mtu : Math.min(mtu, input.mtu);
    const gateway = baseOf(cidr);
    neighbors.push({ link, address: gateway, mac });
    if (!forwards.some((each) => each.link === link && each.mac === mac))
      forwards.push({ link, mac, destination: way.address });
    routes.push({ destination: cidr, via: { link, gateway, onLink: true }, mtu: limit });
    tunnelMtus.set(way.underlay, Math.max(tunnelMtus.get(way.underlay) ?? 0, limit));
    mtus.push(limit);
  };
  for (const peer of [...input.peers].sort((left, right) => (left.node < right.node ? -1 : 1))) {
    const ranges = rangesOf(peer);
    const mac = ranges[0] === undefined ? undefined : tunnelMac(ranges[0]);
    if (mac === undefined) continue;
    const ways = waysTo(peer, input);
    if (typeof ways === 'string') {
      problems.push({ node: peer.node, why: ways });
      continue;
    }
    for (const cidr of ranges) {
      if (claimed.has(cidr)) {
        problems.push({ node: peer.node, why: `pod range ${cidr} belongs to another node` });
        continue;
      }
      claimed.add(cidr);
      const way = ways.find((each) => carriageOf(each, cidr, input.backend) === 'direct') ?? ways[0];
      const carriage = way === undefined ? undefined : carriageOf(way, cidr, input.backend);
      if (way === undefined || carriage === undefined) {
        problems.push({ node: peer.node, why: `no host address of the family of ${cidr}` });
      } else if (carriage === 'tunnel') {
        tunnel(way, cidr, mac);
      } else {
        const mtu = Math.min(way.mtu, input.mtu ?? way.mtu);
        const gateway = way.path.gateway ?? way.address;
        routes.push({ destination: cidr, via: { link: way.path.link, gateway, onLink: false }, mtu });
        mtus.push(mtu);
      }
    }
  }
  if (input.peers.length > 0) routes.push(...unreachable(input.clusterCidrs));
  return {
    overlay: { links: tunnelLinks(input, tunnelMtus), neighbors, forwards, routes },
    podMtu: Math.max(MIN_MTU, input.mtu ?? Math.min(input.linkMtu, ...mtus)),
    problems,
  };
}

/** Usable paths, the preferred one first; otherwise a text with the reason why there is none. */
function waysTo(peer: Peer, input: OverlayInput): Way[] | string {
  const first = wayTo(peer, input);
  if (typeof first === 'string') return first;
  const others = [...peer.addresses, ...(peer.unproven ?? [])].filter(
    (address) => familyOf(address) !== first.underlay,
  );
  const second = others.length === 0 ? 'none' : wayTo({ ...peer, addresses: others }, input);
  return typeof second === 'string' ? [first] : [first, second];
}

/**
 * Unreachable routes for the cluster's ranges, so that packets to unassigned addresses are not sent to the default
 * gateway.
 */
function unreachable(clusterCidrs: readonly string[]): PodRoute[] {
  return clusterCidrs.flatMap((cidr) => {
    const network = parseNetwork(cidr);
    return network === undefined ? [] : [{ destination: networkText(network), via: undefined, mtu: 0 }];
  });
}

function tunnelLinks(input: OverlayInput, mtus: ReadonlyMap<Family, number>): TunnelLink[] {
  const ranges = rangesOf(input.own);
  const mac = ranges[0] === undefined ? undefined : tunnelMac(ranges[0]);
  if (mac === undefined) return [];
  return ([4, 6] as const).flatMap((underlay) => {
    const mtu = mtus.get(underlay);
    if (mtu === undefined) return [];
    return [
      {
        name: input.tunnelNames[underlay],
        underlay,
        mac,
        mtu,
        // The kernel creates an IPv4 device if no source address is given.
        local: underlay === 4 ? undefined : input.own.addresses.find((address) => familyOf(address) === 6),
        addresses: ranges.map((cidr) => {
          const { base, family } = parseNetwork(cidr) ?? { base: 0n, family: 4 as const };
          return `${addressText(base, family)}/${widthOf(family)}`;
        }),
      },
    ];
  });
}
