/**
 * Decides which names a kubelet's serving certificate may contain. Every name must be proven by a record that the node
 * cannot write, and must not belong to a service, to the control plane or to another node.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { APPROVED_ANNOTATION, DECLARED_ANNOTATION, namesIn } from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { isInNetwork, peerAddress } from '../../../base/addresses/addresses.ts';
import { addressKind } from '../../../base/addresses/destinations.ts';

export interface ServingEvidence {
  /** Address from which the API server received the request; undefined if an older release received it. */
  readonly source: string | undefined;
  /** Addresses of the host in the inventory of machines. */
  readonly inventory: readonly string[];
  readonly nodes: readonly Node[];
  readonly apiServers: readonly string[];
  readonly serviceCidrs: readonly string[];
  readonly clusterCidrs: readonly string[];
  /** Domains whose names belong to services and routes. */
  readonly domains: readonly string[];
}

/** Names by which pods and hosts connect to the API server. */
const CONTROL_PLANE_NAMES = ['localhost', 'kubernetes', 'kubernetes.default', 'openshift', 'openshift.default'];

/** Reason why the certificate must not contain all of these names; undefined if it may. */
export function namesRejection(
  node: Node,
  { dnsNames, ipAddresses }: { readonly dnsNames: readonly string[]; readonly ipAddresses: readonly string[] },
  evidence: ServingEvidence,
): string | undefined {
  const own = node.metadata?.name ?? '';
  const others = evidence.nodes.filter((each) => each.metadata?.name !== own);
  const proven = new Set([...(namesIn(node, DECLARED_ANNOTATION) ?? []), ...evidence.inventory].map(canonical));
  const inUse = namesInUse(others, evidence.apiServers);
  for (const name of dnsNames.map(canonical)) {
    if (isReservedName(name, evidence.domains)) return `${name} is a name of a service or of the control plane`;
    if (inUse.has(name)) return `${name} belongs to another host`;
    if (name !== own && !proven.has(name)) return `${name} is neither the node's name nor declared`;
  }
  const { source } = evidence;
  for (const ip of ipAddresses.map(canonical)) {
    if (evidence.serviceCidrs.some((range) => isInNetwork(ip, range))) return `${ip} is in the range of services`;
    if (inUse.has(ip)) return `${ip} belongs to another host`;
    if (proven.has(ip)) continue;
    if (evidence.clusterCidrs.some((range) => isInNetwork(ip, range))) return `${ip} is in the range of pods`;
    if (source === undefined || !isProvenBy(ip, source))
      return `${ip} is neither the address that sent the request (${source ?? 'not recorded'}) nor declared`;
  }
  return undefined;
}

/**
 * Whether the request's source address proves `ip`. A connection over loopback proves loopback addresses, because then
 * the requester runs on a master.
 */
function isProvenBy(ip: string, source: string): boolean {
  const kind = addressKind(ip);
  if (kind === 'loopback') return addressKind(source) === 'loopback';
  return kind === 'unicast' && ip === canonical(source);
}

function isReservedName(name: string, domains: readonly string[]): boolean {
  if (CONTROL_PLANE_NAMES.includes(name) || name.includes('*')) return true;
  return ['svc', ...domains].some((domain) => name === domain || name.endsWith(`.${domain}`)) || name.includes('.svc.');
}

/**
 * Names and addresses of other hosts. A recorded approval replaces the addresses that a node reports, so that a node
 * with a record cannot block other nodes by reporting their addresses.
 */
function namesInUse(others: readonly Node[], apiServers: readonly string[]): ReadonlySet<string> {
  const inUse = new Set(apiServers.map(canonical));
  for (const node of others) {
    if (node.metadata?.name !== undefined) inUse.add(canonical(node.metadata.name));
    for (const name of namesIn(node, DECLARED_ANNOTATION) ?? []) inUse.add(canonical(name));
    const reported = (node.status?.addresses ?? []).map(({ address }) => address);
    for (const name of namesIn(node, APPROVED_ANNOTATION) ?? reported) inUse.add(canonical(name));
  }
  return inUse;
}

const canonical = (name: string): string => peerAddress(name).toLowerCase();
