/** Network policies with parsed selectors, addresses and ports. Source: networking.k8s.io/v1, KEP-2079 (endPort). */
import type { LabelSelector as SelectorObject } from '../../../api/generated/meta/v1.ts';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../api/generated/networking/v1.ts';
import { groupsOf, ipFamilyOf } from '../../../base/addresses/addresses.ts';
import { type LabelSelector, labelSelectorOf, nothing } from '../../../base/selector.ts';
import { LAST_PORT, type PortRange, type Protocol } from './port-set.ts';

export type Family = 4 | 6;

/** An address, or the first address of a network, as groups of 16 bits. */
export interface Network {
  readonly family: Family;
  readonly groups: readonly number[];
  readonly bits: number;
}

/** Addresses of an `ipBlock`, with its exceptions. */
export interface Block {
  /** ID such as `10.0.0.0/8 except 10.1.0.0/16`. Equal blocks have equal IDs. */
  readonly id: string;
  readonly network: Network;
  readonly except: readonly Network[];
}

export type Peer =
  | { readonly kind: 'block'; readonly block: Block }
  | {
      readonly kind: 'pods';
      /** Namespace of the peer's pods; undefined if `namespaces` selects the namespaces. */
      readonly namespace: string | undefined;
      readonly namespaces: LabelSelector;
      readonly pods: LabelSelector;
    };

export interface PortName {
  readonly protocol: Protocol;
  readonly name: string;
}

export interface Rule {
  /** Peers of the rule; undefined if it applies to all peers. */
  readonly peers: readonly Peer[] | undefined;
  /** Ports of the rule; undefined if it applies to all protocols and ports. */
  readonly ports: { readonly ranges: readonly PortRange[]; readonly names: readonly PortName[] } | undefined;
}

export interface Policy {
  readonly name: string;
  readonly namespace: string;
  readonly pods: LabelSelector;
  /** Rules for incoming and outgoing connections; undefined if the policy does not isolate pods in this direction. */
  readonly ingress: readonly Rule[] | undefined;
  readonly egress: readonly Rule[] | undefined;
}

export function parsePolicy({ metadata, spec }: NetworkPolicy): Policy {
  const namespace = metadata?.namespace ?? '';
  const types = spec?.policyTypes ?? [];
  // Upstream's defaults: a policy always isolates ingress, and egress only if it has egress rules.
  const isolates = (type: string, otherwise: boolean): boolean =>
    types.length === 0 ? otherwise : types.some((each) => each === type);
  const rule = (peers: readonly NetworkPolicyPeer[] = [], ports: readonly NetworkPolicyPort[] = []): Rule => ({
    peers: peers.length === 0 ? undefined : peers.flatMap((peer) => peerOf(peer, namespace)),
    ports: ports.length === 0 ? undefined : portsOf(ports),
  });
  const { ingress = [], egress = [] } = spec ?? {};
  return {
    name: metadata?.name ?? '',
    namespace,
    pods: selectorOf(spec?.podSelector ?? {}),
    ingress: isolates('Ingress', true) ? ingress.map(({ from, ports }) => rule(from, ports)) : undefined,
    egress: isolates('Egress', egress.length > 0) ? egress.map(({ to, ports }) => rule(to, ports)) : undefined,
  };
}

/** Parses a selector. An unsupported selector matches no pods. */
function selectorOf(object: SelectorObject): LabelSelector {
  try {
    return labelSelectorOf(object);
  } catch {
    return nothing;
  }
}

function peerOf({ podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer, own: string): Peer[] {
  if (ipBlock !== undefined) {
    const block = blockOf(ipBlock.cidr, ipBlock.except ?? []);
    return block === undefined ? [] : [{ kind: 'block', block }];
  }
  if (podSelector === undefined && namespaceSelector === undefined) return [];
  return [
    {
      kind: 'pods',
      namespace: namespaceSelector === undefined ? own : undefined,
      namespaces: selectorOf(namespaceSelector ?? {}),
      pods: selectorOf(podSelector ?? {}),
    },
  ];
}

/**
 * Parses a block. Undefined if a part is invalid, because a block without one of its exceptions would allow too much.
 */
function blockOf(cidr: string, except: readonly string[]): Block | undefined {
  const network = networkOf(cidr);
  const parts = except.map(networkOf);
  const valid = parts.filter((each) => each !== undefined);
  if (network === undefined || valid.length < parts.length) return undefined;
  const id = except.length === 0 ? cidr : `${cidr} except ${[...new Set(except)].sort().join(', ')}`;
  return { id, network, except: valid };
}

function networkOf(cidr: string): Network | undefined {
  const [address = '', bits = '', more] = cidr.split('/');
  const family = ipFamilyOf(address);
  if (family === 0 || more !== undefined || !/^\d{1,3}$/.test(bits)) return undefined;
  if (Number(bits) > (family === 4 ? 32 : 128)) return undefined;
  return { family, groups: groupsOf(address), bits: Number(bits) };
}

/** Parses an address; undefined if the text is not an address. */
export function addressOf(text: string): Network | undefined {
  const family = ipFamilyOf(text);
  return family === 0 ? undefined : { family, groups: groupsOf(text), bits: family === 4 ? 32 : 128 };
}

/** Whether `outer` contains all addresses of `inner`. */
export function containsNetwork(outer: Network, inner: Network): boolean {
  if (outer.family !== inner.family || outer.bits > inner.bits) return false;
  for (let index = 0; index * 16 < outer.bits; index++) {
    const shift = 16 - Math.min(16, outer.bits - index * 16);
    if ((outer.groups[index] ?? 0) >> shift !== (inner.groups[index] ?? 0) >> shift) return false;
  }
  return true;
}

const areApart = (one: Network, other: Network): boolean =>
  !containsNetwork(one, other) && !containsNetwork(other, one);

/** Whether a block contains an address. */
export const hasAddress = ({ network, except }: Block, address: Network): boolean =>
  containsNetwork(network, address) && !except.some((each) => containsNetwork(each, address));

/**
 * Whether `outer` contains all addresses of `inner`. The exceptions of `inner` are compared one by one, never combined.
 */
export const includesBlock = (outer: Block, inner: Block): boolean =>
  containsNetwork(outer.network, inner.network) &&
  outer.except.every(
    (hole) => areApart(hole, inner.network) || inner.except.some((each) => containsNetwork(each, hole)),
  );

function portsOf(given: readonly NetworkPolicyPort[]): NonNullable<Rule['ports']> {
  const ranges: PortRange[] = [];
  const names: PortName[] = [];
  for (const { protocol: text, port, endPort } of given) {
    const protocol = protocolOf(text);
    if (port === undefined) ranges.push({ protocol, from: 0, to: LAST_PORT });
    else if (typeof port === 'number') ranges.push({ protocol, from: port, to: endPort ?? port });
    else names.push({ protocol, name: port });
  }
  return { ranges, names };
}

export const protocolOf = (text: string | undefined): Protocol => (text === 'UDP' || text === 'SCTP' ? text : 'TCP');
