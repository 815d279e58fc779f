/**
 * Reachability under network policies: groups of pods of one namespace, their peers, and the ports that both sides
 * allow. Pods are in one group if no policy distinguishes them, so the connections of a group are those of each of its
 * pods.
 *
 * Addresses outside the cluster are grouped by the `ipBlock`s of the namespace's policies. The ports of a block are
 * those that all its addresses may use. An `ipBlock` also applies to addresses of pods.
 */
import type { Namespace, Pod } from '../../../api/generated/core/v1.ts';
import type { NetworkPolicy } from '../../../api/generated/networking/v1.ts';
import { type LabelSelector, type Labels, matchesLabels } from '../../../base/selector.ts';
import { NO_PORTS, type PortRange, type PortSet, portIntersection, portUnion } from './port-set.ts';
import {
  addressOf,
  type Block,
  type Family,
  hasAddress,
  includesBlock,
  type Network,
  type Policy,
  type PortName,
  parsePolicy,
  protocolOf,
  type Rule,
} from './rules.ts';

export interface PolicyObjects {
  readonly pods: readonly Pod[];
  /** Namespaces whose labels selectors match. A namespace that is missing here counts as having no labels. */
  readonly namespaces: readonly Namespace[];
  readonly policies: readonly NetworkPolicy[];
}

export interface GraphNode {
  readonly id: string;
  readonly kind: 'workload' | 'pods' | 'addresses';
  readonly name: string;
  /** Labels by which policies distinguish the group; for a peer with several parts, the list of its parts. */
  readonly detail: string;
  /** Pods of the group, each as `namespace/name`. */
  readonly pods: readonly string[];
  /** Names of the policies that select a group of the namespace. */
  readonly policies: { readonly ingress: readonly string[]; readonly egress: readonly string[] };
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly ports: PortSet;
}

export interface PolicyGraph {
  /** Nodes of the graph: the groups of the namespace, then their peers. */
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /**
   * Numbers of pods in the namespace that are in no group. Policies do not apply to pods on the host network; pending
   * pods have no address yet.
   */
  readonly hostNetworkPods: number;
  readonly pendingPods: number;
}

/** Limits of the number of comparisons, because users of the cluster choose the number of policies and rules. */
const MAX_ADDRESS_CHECKS = 5_000_000;
const MAX_PEER_CHECKS = 5_000_000;
/** Maximum number of parts in the name of a peer. The detail text lists more parts. */
const MAX_NAMED = 3;
const MAX_LISTED = 20;
/** Labels that the controllers generate and that differ between the pods of a workload. */
const GENERATED = ['pod-template-hash', 'controller-revision-hash', 'pod-template-generation'];

interface NamedPort extends PortName {
  readonly port: number;
}

/** Pods, or addresses outside the cluster, that the policies treat alike. */
interface Endpoint {
  readonly name: string;
  readonly detail: string;
  /** Namespace of the pods; undefined for addresses outside the cluster. */
  readonly namespace: string | undefined;
  readonly labels: Labels;
  readonly families: readonly Family[];
  /** IDs of the blocks that contain its addresses. */
  readonly blocks: ReadonlySet<string>;
  readonly ports: readonly NamedPort[];
  readonly policies: readonly Policy[];
  readonly pods: string[];
}

type Direction = 'ingress' | 'egress';

/** Computes the graph. Undefined if there are too many policies and pods for a page. */
export function policyGraph(namespace: string, objects: PolicyObjects): PolicyGraph | undefined {
  const policies = objects.policies.map(parsePolicy);
  const blocks = blocksOf(policies);
  if (objects.pods.length * blocks.length > MAX_ADDRESS_CHECKS) return undefined;
  const grouping = new Grouping(namespace, policies, blocks);
  for (const pod of objects.pods) grouping.add(pod);
  const { own, others } = grouping;
  const addresses = externalEndpoints(blocksOf(policies.filter((each) => each.namespace === namespace)));
  const peers = [...others, ...addresses];
  if (peerChecks(own, [...own, ...peers]) + peerChecks(peers, own) > MAX_PEER_CHECKS) return undefined;

  const reach = new Reach(objects.namespaces);
  const nodes: GraphNode[] = own.map((each, index) => ({
    id: `w${index}`,
    kind: 'workload',
    name: each.name,
    detail: each.detail,
    pods: each.pods,
    policies: {
      ingress: each.policies.filter(({ ingress }) => ingress !== undefined).map(({ name }) => name),
      egress: each.policies.filter(({ egress }) => egress !== undefined).map(({ name }) => name),
    },
  }));
  const edges: GraphEdge[] = [];
  const connect = (from: string, to: string, ports: PortSet): void => {
    if (ports === 'all' || ports.length > 0) edges.push({ from, to, ports });
  };
  own.forEach((from, left) => {
    own.forEach((to, right) => {
      if (from !== to || from.pods.length > 1) connect(`w${left}`, `w${right}`, reach.ports(from, to));
    });
  });
  const merged = Map.groupBy(
    peers.map((peer) => ({
      peer,
      sent: own.map((each) => reach.ports(peer, each)),
      received: own.map((each) => reach.ports(each, peer)),
    })),
    ({ peer, sent, received }) => (peer.namespace === undefined ? peer.name : JSON.stringify([sent, received])),
  );
  let count = 0;
  for (const members of merged.values()) {
    const [first] = members;
    if (first === undefined) continue;
    const id = `p${count++}`;
    nodes.push(
      peerNode(
        id,
        members.map(({ peer }) => peer),
        others,
      ),
    );
    for (const [index, ports] of first.sent.entries()) connect(id, `w${index}`, ports);
    for (const [index, ports] of first.received.entries()) connect(`w${index}`, id, ports);
  }
  return { nodes, edges, hostNetworkPods: grouping.hostNetworkPods, pendingPods: grouping.pendingPods };
}

function blocksOf(policies: readonly Policy[]): readonly Block[] {
  const peers = policies.flatMap(({ ingress = [], egress = [] }) => [...ingress, ...egress]);
  const found = peers.flatMap((rule) =>
    (rule.peers ?? []).flatMap((peer) => (peer.kind === 'block' ? peer.block : [])),
  );
  return [...new Map(found.map((block) => [block.id, block])).values()];
}

const selectorsOf = (policies: readonly Policy[]): readonly LabelSelector[] =>
  policies.flatMap(({ pods, ingress = [], egress = [] }) => [
    pods,
    ...[...ingress, ...egress].flatMap((rule) =>
      (rule.peers ?? []).flatMap((peer) => (peer.kind === 'pods' ? peer.pods : [])),
    ),
  ]);

/** Upper bound of the number of comparisons for all pairs. */
function peerChecks(own: readonly Endpoint[], others: readonly Endpoint[]): number {
  const cost = ({ peers = [], ports }: Rule): number => 1 + peers.length + (ports?.ranges.length ?? 0);
  const sum = (rules: readonly Rule[] = []): number => rules.reduce((total, rule) => total + cost(rule), 1);
  const all = own.flatMap(({ policies }) => policies.map(({ ingress, egress }) => sum(ingress) + sum(egress)));
  return all.reduce((total, each) => total + each, own.length) * others.length;
}

/** Groups pods that no policy distinguishes. */
class Grouping {
  readonly #groups = new Map<string, Endpoint>();
  readonly #namespace: string;
  readonly #policies: ReadonlyMap<string, readonly Policy[]>;
  readonly #blocks: readonly Block[];
  readonly #keys: readonly string[];
  readonly #portNames: ReadonlySet<string>;
  hostNetworkPods = 0;
  pendingPods = 0;

  constructor(namespace: string, policies: readonly Policy[], blocks: readonly Block[]) {
    this.#namespace = namespace;
    this.#policies = Map.groupBy(policies, (each) => each.namespace);
    this.#blocks = blocks;
    const requirements = selectorsOf(policies).flatMap((selector) => selector.requirements);
    this.#keys = [...new Set(requirements.map(({ key }) => key))].sort();
    const rules = policies.flatMap(({ ingress = [], egress = [] }) => [...ingress, ...egress]);
    this.#portNames = new Set(rules.flatMap(({ ports }) => (ports?.names ?? []).map(({ name }) => name)));
  }

  get own(): readonly Endpoint[] {
    const own = [...this.#groups.values()].filter(({ namespace }) => namespace === this.#namespace);
    return own.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  }

  get others(): readonly Endpoint[] {
    const others = [...this.#groups.values()].filter(({ namespace }) => namespace !== this.#namespace);
    return others.sort((a, b) => ((a.namespace ?? '') < (b.namespace ?? '') ? -1 : 1));
  }

  add(pod: Pod): void {
    const { metadata, spec, status } = pod;
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return;
    const namespace = metadata?.namespace ?? '';
    const isOwn = namespace === this.#namespace;
    if (spec?.hostNetwork === true) {
      if (isOwn) this.hostNetworkPods++;
      return;
    }
    const ips = new Set((status?.podIPs ?? []).map(({ ip }) => ip).concat(status?.podIP ?? []));
    const addresses = [...ips].flatMap((ip) => (ip === undefined ? [] : (addressOf(ip) ?? [])));
    if (addresses.length === 0) {
      if (isOwn) this.pendingPods++;
      return;
    }
    const all = metadata?.labels ?? {};
    const labels = Object.fromEntries(
      this.#keys.flatMap((key) => (Object.hasOwn(all, key) ? [[key, all[key] ?? '']] : [])),
    );
    const ports = this.#portsOf(pod);
    const blocks = this.#blocksOf(addresses);
    const families = [...new Set(addresses.map(({ family }) => family))].sort();
    const name = isOwn ? workloadOf(pod) : '';
    const key = JSON.stringify([namespace, name, labels, ports, blocks, families]);
    let group = this.#groups.get(key);
    if (group === undefined) {
      const policies = (this.#policies.get(namespace) ?? []).filter((each) => matchesLabels(each.pods, labels));
      const detail = labelsText(labels);
      group = { name, detail, namespace, labels, families, blocks: new Set(blocks), ports, policies, pods: [] };
      this.#groups.set(key, group);
    }
    group.pods.push(`${namespace}/${metadata?.name ?? ''}`);
  }

  #blocksOf(addresses: readonly Network[]): string[] {
    return this.#blocks.filter((block) => addresses.some((address) => hasAddress(block, address))).map(({ id }) => id);
  }

  /** Container ports of the pod whose names occur in policies. */
  #portsOf({ spec }: Pod): NamedPort[] {
    if (this.#portNames.size === 0) return [];
    const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
    return [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
      ports.flatMap(({ name, protocol, containerPort }) =>
        name === undefined || !this.#portNames.has(name)
          ? []
          : [{ name, protocol: protocolOf(protocol), port: containerPort }],
      ),
    );
  }
}

/** Name such as `web (Deployment)`; the labels of a pod without a controller. */
function workloadOf({ metadata }: Pod): string {
  const labels = metadata?.labels ?? {};
  const owner = metadata?.ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) {
    const text = labelsText(Object.fromEntries(Object.entries(labels).filter(([key]) => !GENERATED.includes(key))));
    return text === '' ? (metadata?.name ?? '') : text;
  }
  const suffix = `-${labels['pod-template-hash'] ?? ''}`;
  if (owner.kind === 'ReplicaSet' && suffix !== '-' && owner.name.endsWith(suffix))
    return `${owner.name.slice(0, -suffix.length)} (Deployment)`;
  return `${owner.name} (${owner.kind})`;
}

const labelsText = (labels: Labels): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ');

/** Endpoints for the blocks of the namespace, and one for all other addresses. */
function externalEndpoints(blocks: readonly Block[]): readonly Endpoint[] {
  const endpoint = (name: string, families: readonly Family[], ids: readonly string[]): Endpoint => ({
    name,
    detail: '',
    namespace: undefined,
    labels: {},
    families,
    blocks: new Set(ids),
    ports: [],
    policies: [],
    pods: [],
  });
  return [
    ...blocks.map((block) =>
      endpoint(
        block.id,
        [block.network.family],
        blocks.filter((outer) => includesBlock(outer, block)).map(({ id }) => id),
      ),
    ),
    endpoint(blocks.length === 0 ? 'addresses outside the cluster' : 'other addresses outside the cluster', [4, 6], []),
  ];
}

function peerNode(id: string, members: readonly Endpoint[], all: readonly Endpoint[]): GraphNode {
  const [first] = members;
  const policies = { ingress: [], egress: [] };
  if (first?.namespace === undefined)
    return { id, kind: 'addresses', name: first?.name ?? '', detail: '', pods: [], policies };
  const parts = [...Map.groupBy(members, ({ namespace }) => namespace ?? '')].map(([namespace, groups]) => {
    const isWhole = all.filter((each) => each.namespace === namespace).length === groups.length;
    const details = [...new Set(groups.map(({ detail }) => (detail === '' ? 'no such labels' : detail)))];
    return isWhole ? namespace : `${namespace} (${details.join(' or ')})`;
  });
  const shown = (count: number): string =>
    parts.length <= count ? parts.join(', ') : `${parts.slice(0, count).join(', ')} and ${parts.length - count} more`;
  return {
    id,
    kind: 'pods',
    name: `namespace${parts.length === 1 ? '' : 's'} ${shown(MAX_NAMED)}`,
    policies,
    detail: parts.length <= MAX_NAMED ? '' : shown(MAX_LISTED),
    pods: members.flatMap(({ pods }) => pods),
  };
}

/** Computes the ports that connections between endpoints may use. */
class Reach {
  readonly #namespaces: ReadonlyMap<string, Labels>;

  constructor(namespaces: readonly Namespace[]) {
    this.#namespaces = new Map(namespaces.map(({ metadata }) => [metadata?.name ?? '', metadata?.labels ?? {}]));
  }

  /**
   * Ports that both endpoints allow. If both endpoints have two address families, a connection may use either family.
   */
  ports(from: Endpoint, to: Endpoint): PortSet {
    const families = from.families.filter((family) => to.families.includes(family));
    return portUnion(
      families.map((family) => {
        const sent = this.#side('egress', from, to, to, family);
        return sent.length === 0 ? NO_PORTS : portIntersection(sent, this.#side('ingress', to, from, to, family));
      }),
    );
  }

  #side(direction: Direction, own: Endpoint, other: Endpoint, target: Endpoint, family: Family): PortSet {
    const isolating = own.policies.flatMap((policy) => policy[direction] ?? []);
    if (own.policies.every((policy) => policy[direction] === undefined)) return 'all';
    return portUnion(
      isolating.filter((rule) => this.#matches(rule, other, family)).map((rule) => portsFor(rule, target)),
    );
  }

  #matches({ peers }: Rule, other: Endpoint, family: Family): boolean {
    if (peers === undefined) return true;
    return peers.some((peer) => {
      if (peer.kind === 'block') return peer.block.network.family === family && other.blocks.has(peer.block.id);
      if (other.namespace === undefined || !matchesLabels(peer.pods, other.labels)) return false;
      if (peer.namespace !== undefined) return peer.namespace === other.namespace;
      const labels = this.#namespaces.get(other.namespace);
      return labels !== undefined && matchesLabels(peer.namespaces, labels);
    });
  }
}

function portsFor({ ports }: Rule, target: Endpoint): PortSet {
  if (ports === undefined) return 'all';
  const named = ports.names.flatMap(({ name, protocol }) =>
    target.ports
      .filter((each) => each.name === name && each.protocol === protocol)
      .map(({ port }): PortRange => ({ protocol, from: port, to: port })),
  );
  return portUnion([ports.ranges, named]);
}
