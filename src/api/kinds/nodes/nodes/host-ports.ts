/**
 * Ports on which the host itself listens: API server, controllers, etcd, kubelet and gossip. The kubelet publishes them
 * in an annotation of the Node, so that the scheduler and the service proxies of other nodes keep them free.
 */
import type { Node } from '../../../generated/core/v1.ts';

export interface ReservedPort {
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
}

const FIRST_USER_PORT = 1024;
const VXLAN_PORT = 4789;
/** Ports below 1024 that services may use on a host address: mail, DNS, web, LDAP, syslog and mail over TLS. */
export const SERVICE_PORTS: readonly number[] = [25, 53, 80, 143, 389, 443, 465, 514, 587, 636, 853, 993];

/** Whether the port is reserved for the host: remote login, overlay network or system services. */
export const isHostPort = ({ protocol, port }: ReservedPort): boolean =>
  (port < FIRST_USER_PORT && !SERVICE_PORTS.includes(port)) || (protocol === 'UDP' && port === VXLAN_PORT);

/** Reserved ports in the form `TCP/2379,TCP/8443`, sorted, without spaces. */
export const RESERVED_PORTS_ANNOTATION = 'hyperedge.dev/reserved-host-ports';

const ENTRY = /^(TCP|UDP|SCTP)\/([1-9]\d{0,4})$/;
/** Maximum number of ports that are read from the annotation, because another host writes it. */
const MAX_PORTS = 64;

export function formatReservedPorts(ports: readonly ReservedPort[]): string {
  const texts = new Set(ports.map(({ protocol, port }) => `${protocol}/${port}`));
  return [...texts].sort().join(',');
}

/** Ports of the annotation and the kubelet's port. Entries that are not of the form `PROTOCOL/PORT` are ignored. */
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
