/** Compiles network policies for the planner. Source: KEP-2079 (endPort), networking.k8s.io/v1. */
import type { Container, Pod } from '../../../api/generated/core/v1.ts';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../../api/generated/networking/v1.ts';
import { MAX_POLICY_SIZE, policySize } from '../../../api/kinds/network/networkpolicies/size.ts';
import { canonicalAddress, groupsOf, ipFamilyOf, textOf } from '../../../base/addresses/addresses.ts';
import type { Steps } from '../../../base/concurrency/steps.ts';
import {
  formatLabelSelector,
  type LabelSelector,
  type Labels,
  labelSelectorOf,
  nothing,
} from '../../../base/selector.ts';

export type Direction = 'ingress' | 'egress';
export type Family = 4 | 6;
export type Protocol = 'tcp' | 'udp' | 'sctp';

/** A pod on the pod network. */
export interface PolicyPod {
  /** `namespace/name` */
  readonly key: string;
  readonly namespace: string;
  readonly labels: Labels;
  /** Addresses in canonical form. */
  readonly ips: readonly string[];
  readonly nodeName: string;
  readonly ports: readonly { readonly name: string; readonly protocol: Protocol; readonly port: number }[];
}

/** Pods of one namespace, or of the namespaces that a selector matches. */
export interface PodSelection {
  /** Equivalent selections have the same ID. */
  readonly id: string;
  readonly namespace: string | undefined;
  /** Text that is equal for equivalent namespace selectors. */
  readonly namespaceText: string;
  readonly namespaceSelector: LabelSelector;
  readonly podSelector: LabelSelector;
}

export interface Block {
  readonly family: Family;
  readonly cidr: string;
  readonly except: readonly string[];
}

export type Peer =
  | { readonly kind: 'pods'; readonly selection: PodSelection }
  | { readonly kind: 'block'; readonly block: Block };

export interface NamedPort {
  readonly protocol: Protocol;
  readonly name: string;
}

export interface PortRange {
  readonly protocol: Protocol;
  readonly from: number;
  readonly to: number;
}

/** A rule as the policy specifies it. Rules are compiled when a pod of this node needs them. */
export interface RuleSource {
  readonly peers: readonly NetworkPolicyPeer[];
  readonly ports: readonly NetworkPolicyPort[];
}

export interface PolicyRule {
  /** Undefined if the rule matches every peer. */
  readonly peers: readonly Peer[] | undefined;
  /** Undefined if the rule matches every protocol and port. Ranges are sorted and disjoint. */
  readonly ports: { readonly ranges: readonly PortRange[]; readonly names: readonly NamedPort[] } | undefined;
}

export interface CompiledPolicy {
  /** `namespace/name` */
  readonly key: string;
  readonly namespace: string;
  readonly podSelector: LabelSelector;
  /** Rules for incoming traffic. Undefined if the policy does not isolate pods in this direction. */
  readonly ingress: readonly RuleSource[] | undefined;
  readonly egress: readonly RuleSource[] | undefined;
  readonly size: number;
}

/** Facts about a pod. Undefined if the pod has no address of its own: it uses the host's network or has finished. */
export function policyPodOf({ metadata, spec, status }: Pod): PolicyPod | undefined {
  if (spec?.hostNetwork === true || status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  const namespace = metadata?.namespace ?? '';
  const found = (status?.podIPs ?? []).map(({ ip }) => ip).concat(status?.podIP ?? []);
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }: Container) => restartPolicy === 'Always');
  return {
    key: `${namespace}/${metadata?.name ?? ''}`,
    namespace,
    labels: metadata?.labels ?? {},
    ips: canonicalAddresses(found),
    nodeName: spec?.nodeName ?? '',
    ports: [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
      ports.flatMap(({ name, protocol, containerPort }) =>
        name === undefined ? [] : [{ name, protocol: protocolOf(protocol), port: containerPort }],
      ),
    ),
  };
}

/** Canonical forms of the valid addresses. Other texts are dropped, because they must not get into nft programs. */
export function canonicalAddresses(texts: readonly (string | undefined)[]): string[] {
  return [...new Set(texts.flatMap((text) => (text === undefined ? [] : (canonicalAddress(text) ?? []))))];
}

export function compilePolicy({ metadata, spec }: NetworkPolicy): CompiledPolicy {
  const namespace = metadata?.namespace ?? '';
  const types = spec?.policyTypes ?? [];
  // Upstream's defaults, for an object that was stored without types: always ingress, and egress if it has egress
  // rules.
  const isolates = (type: string, otherwise: boolean): boolean =>
    types.length === 0 ? otherwise : types.some((each) => each === type);
  const size = spec === undefined ? 0 : policySize(spec);
  // The planner gives a policy above the limit no rules, so compiling its rules would only take time.
  const { ingress = [], egress = [] } = size > MAX_POLICY_SIZE ? {} : (spec ?? {});
  return {
    key: `${namespace}/${metadata?.name ?? ''}`,
    namespace,
    podSelector: selectorOf(spec?.podSelector ?? {}),
    ingress: isolates('Ingress', true)
      ? ingress.map(({ from = [], ports = [] }) => ({ peers: from, ports }))
      : undefined,
    egress: isolates('Egress', (spec?.egress ?? []).length > 0)
      ? egress.map(({ to = [], ports = [] }) => ({ peers: to, ports }))
      : undefined,
    size,
  };
}

/** Compiles a rule. `namespace`: namespace of the policy. */
export function* compileRule({ peers, ports }: RuleSource, namespace: string): Steps<PolicyRule> {
  const compiled: Peer[] = [];
  for (const peer of peers) {
    compiled.push(...peerOf(peer, namespace));
    yield;
  }
  return {
    peers: peers.length === 0 ? undefined : compiled,
    ports: ports.length === 0 ? undefined : portsOf(ports),
  };
}

/** Parses a selector. An unknown kind of selector matches no pods, so the traffic it would allow stays denied. */
function selectorOf(object: Parameters<typeof labelSelectorOf>[0]): LabelSelector {
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
  const namespace = namespaceSelector === undefined ? own : undefined;
  const namespaces = selectorOf(namespaceSelector ?? {});
  const pods = selectorOf(podSelector ?? {});
  const text = (selector: LabelSelector): string => (selector.nothing ? '!' : `=${formatLabelSelector(selector)}`);
  return [
    {
      kind: 'pods',
      selection: {
        id: JSON.stringify([namespace ?? text(namespaces), namespace === undefined, text(pods)]),
        namespace,
        namespaceText: text(namespaces),
        namespaceSelector: namespaces,
        podSelector: pods,
      },
    },
  ];
}

/** Parses an ipBlock. Undefined if any part is invalid: a block without one of its exceptions would allow too much. */
function blockOf(cidr: string, except: readonly string[]): Block | undefined {
  const whole = networkOf(cidr);
  const parts = except.map(networkOf);
  if (whole === undefined || parts.some((each) => each === undefined || each.family !== whole.family)) return undefined;
  return { family: whole.family, cidr: whole.text, except: [...new Set(parts.map((each) => each?.text ?? ''))] };
}

function networkOf(cidr: string): { readonly family: Family; readonly text: string } | undefined {
  const [address = '', bits = '', more] = cidr.split('/');
  const family = ipFamilyOf(address);
  if (family === 0 || more !== undefined || !/^\d{1,3}$/.test(bits)) return undefined;
  const length = Number(bits);
  if (length > (family === 4 ? 32 : 128)) return undefined;
  const groups = groupsOf(address).map((group, index) => {
    const zeros = 16 - Math.min(16, Math.max(0, length - index * 16));
    return (group >> zeros) << zeros;
  });
  return { family, text: `${textOf(groups)}/${length}` };
}

const protocolOf = (protocol: string | undefined): Protocol =>
  protocol === 'UDP' ? 'udp' : protocol === 'SCTP' ? 'sctp' : 'tcp';

const LAST_PORT = 65_535;
const PORT_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

function portsOf(given: readonly NetworkPolicyPort[]): NonNullable<PolicyRule['ports']> {
  const ranges: PortRange[] = [];
  const names = new Map<string, NamedPort>();
  for (const { protocol: text, port, endPort } of given) {
    const protocol = protocolOf(text);
    if (port === undefined) ranges.push({ protocol, from: 0, to: LAST_PORT });
    else if (typeof port === 'number') ranges.push({ protocol, from: port, to: endPort ?? port });
    else if (PORT_NAME.test(port)) names.set(`${protocol} ${port}`, { protocol, name: port });
  }
  return { ranges: merged(ranges), names: [...names.values()] };
}

/** Merges overlapping ranges, because nft rejects sets with overlapping intervals. */
function merged(ranges: readonly PortRange[]): PortRange[] {
  const sorted = [...ranges].sort((left, right) =>
    left.protocol === right.protocol ? left.from - right.from : left.protocol < right.protocol ? -1 : 1,
  );
  const result: PortRange[] = [];
  for (const range of sorted) {
    const last = result.at(-1);
    if (last !== undefined && last.protocol === range.protocol && range.from <= last.to + 1) {
      result[result.length - 1] = { ...last, to: Math.max(last.to, range.to) };
    } else result.push(range);
  }
  return result;
}
