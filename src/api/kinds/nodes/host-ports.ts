/**
 * Ports on which a host itself listens: API server, controllers, etcd, kubelet and gossip. Its kubelet reports them on
 * the Node, so that the scheduler and the service proxies of other nodes keep pods and services away from them.
 */
import type { Node } from 'kubernetes-types/core/v1';

export interface ReservedPort {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

const FIRST_USER_PORT = 1024;
const VXLAN_PORT = 4789;
/** Ports below 1024 that services may have at a host's address: mail, DNS, web, LDAP, syslog and mail over TLS. */
export const SERVICE_PORTS: readonly number[] = [25, 53, 80, 143, 389, 443, 465, 514, 587, 636, 853, 993];

/** True for a port that only the host itself may have: its remote login, its overlay, its system services. */
export const isHostPort = ({ protocol, port }: ReservedPort): boolean =>
  (port < FIRST_USER_PORT && !SERVICE_PORTS.includes(port)) || (protocol === 'UDP' && port === VXLAN_PORT);

/** `TCP/2379,TCP/8443`: sorted, without spaces. */
export const RESERVED_PORTS_ANNOTATION = 'hyperedge.dev/reserved-host-ports';

const ENTRY = /^(TCP|UDP|SCTP)\/([1-9]\d{0,4})$/;
/** More are not read from a Node: other hosts write the annotation. */
const MAX_PORTS = 64;

export function formatReservedPorts(ports: readonly ReservedPort[]): string {
  const texts = new Set(ports.map(({ protocol, port }) => `${protocol}/${port}`));
  return [...texts].sort().join(',');
}

/** The port of the Node's kubelet and those of its annotation; entries that are not `PROTOCOL/PORT` are left out. */
export function reservedPortsOf(node: Node): ReservedPort[] {
  const kubelet = node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0;
  const ports: ReservedPort[] = kubelet > 0 ? [{ protocol: 'TCP', port: kubelet }] : [];
  const text = node.metadata?.annotations?.[RESERVED_PORTS_ANNOTATION] ?? '';
  for (const entry of text.split(',', MAX_PORTS)) {
    const [, protocol, digits] = ENTRY.exec(entry) ?? [];
    const port = Number(digits);
    if (protocol === undefined || port > 65_535) continue;
    if (!ports.some((each) => each.protocol === protocol && each.port === port))
      ports.push({ protocol: protocol as ReservedPort['protocol'], port });
  }
  return ports;
}
