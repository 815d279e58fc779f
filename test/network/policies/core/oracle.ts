/** Decides about a connection directly from the objects, as the API documentation specifies. */
import type { Namespace, Pod } from '../../../../src/api/generated/core/v1.ts';
import type { LabelSelector } from '../../../../src/api/generated/meta/v1.ts';
import type {
  NetworkPolicy,
  NetworkPolicyPeer,
  NetworkPolicyPort,
} from '../../../../src/api/generated/networking/v1.ts';
import { isInNetwork } from '../../../../src/base/addresses/addresses.ts';
import type { Packet } from './table.ts';

export interface Cluster {
  readonly node: string;
  readonly policies: readonly NetworkPolicy[];
  readonly namespaces: readonly Namespace[];
  readonly pods: readonly Pod[];
}

export function allowed(cluster: Cluster, packet: Packet): boolean {
  if (packet.from === packet.to) return true;
  return allowedIn('Egress', cluster, packet) && allowedIn('Ingress', cluster, packet);
}

function allowedIn(type: 'Ingress' | 'Egress', cluster: Cluster, packet: Packet): boolean {
  const [own, other] = type === 'Ingress' ? [packet.to, packet.from] : [packet.from, packet.to];
  const pod = podAt(cluster, own);
  // Pods of another node are filtered on that node.
  if (pod === undefined || pod.spec?.nodeName !== cluster.node) return true;
  const selecting = cluster.policies.filter(
    ({ metadata, spec }) =>
      metadata?.namespace === pod.metadata?.namespace &&
      matches(spec?.podSelector, pod.metadata?.labels) &&
      (spec?.policyTypes ?? (spec?.egress === undefined ? ['Ingress'] : ['Ingress', 'Egress'])).includes(type),
  );
  if (selecting.length === 0) return true;
  return selecting.some(({ metadata, spec }) => {
    const rules =
      type === 'Ingress'
        ? (spec?.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }))
        : (spec?.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
    return rules.some(
      ({ peers = [], ports = [] }) =>
        (peers.length === 0 || peers.some((peer) => isPeer(cluster, metadata?.namespace, peer, other))) &&
        (ports.length === 0 || ports.some((port) => isPort(port, podAt(cluster, packet.to), packet))),
    );
  });
}

const podAt = ({ pods }: Cluster, ip: string): Pod | undefined =>
  pods.find(
    ({ spec, status }) =>
      spec?.hostNetwork !== true &&
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed' &&
      status?.podIPs?.some((each) => each.ip === ip),
  );

function isPeer(cluster: Cluster, namespace: string | undefined, peer: NetworkPolicyPeer, ip: string): boolean {
  if (peer.ipBlock !== undefined) {
    const { cidr, except = [] } = peer.ipBlock;
    return isInNetwork(ip, cidr) && !except.some((each) => isInNetwork(ip, each));
  }
  const pod = podAt(cluster, ip);
  if (pod === undefined) return false;
  if (peer.podSelector !== undefined && !matches(peer.podSelector, pod.metadata?.labels)) return false;
  if (peer.namespaceSelector === undefined) return pod.metadata?.namespace === namespace;
  const found = cluster.namespaces.find(({ metadata }) => metadata?.name === pod.metadata?.namespace);
  return found !== undefined && matches(peer.namespaceSelector, found.metadata?.labels);
}

function isPort({ protocol = 'TCP', port, endPort }: NetworkPolicyPort, to: Pod | undefined, packet: Packet): boolean {
  if (protocol.toLowerCase() !== packet.protocol) return false;
  if (port === undefined) return true;
  if (typeof port === 'number') return packet.port >= port && packet.port <= (endPort ?? port);
  return (to?.spec?.containers ?? []).some(({ ports = [] }) =>
    ports.some(
      (each) => each.name === port && (each.protocol ?? 'TCP') === protocol && each.containerPort === packet.port,
    ),
  );
}

function matches(selector: LabelSelector | undefined, labels: Record<string, string> = {}): boolean {
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = labels[key];
      if (operator === 'In') return value !== undefined && values.includes(value);
      if (operator === 'NotIn') return value === undefined || !values.includes(value);
      return (value !== undefined) === (operator === 'Exists');
    })
  );
}
