/** The packet-filter table of the pod network: masquerading and host ports (nft(8)). Pure. */
import type { PortMapping } from '../../core/podplan/port.ts';
import type { AddressRange } from './address-range.ts';

export const TABLE = 'hyperedge-pods';

export interface HostPort {
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  /** '' for any address of the host. */
  readonly hostIp: string;
  readonly hostPort: number;
  readonly podIp: string;
  readonly podPort: number;
}

export const hostPortKey = (port: Pick<HostPort, 'protocol' | 'hostIp' | 'hostPort'>): string =>
  `${port.protocol}/${port.hostIp}:${port.hostPort}`;

export function hostPorts(mappings: readonly PortMapping[], podIp: string): readonly HostPort[] {
  return mappings
    .filter(({ hostPort }) => hostPort > 0)
    .map(({ protocol, hostIp, hostPort, containerPort }) => ({
      protocol: protocol === 'UDP' ? 'udp' : protocol === 'SCTP' ? 'sctp' : 'tcp',
      hostIp: hostIp === '0.0.0.0' || hostIp === '::' ? '' : hostIp,
      hostPort,
      podIp,
      podPort: containerPort,
    }));
}

/** Replaces the whole table in one transaction. Traffic to `clusterCidrs` keeps its pod source address. */
export function tableRuleset(
  bridge: string,
  range: AddressRange,
  clusterCidrs: readonly string[],
  ports: readonly HostPort[],
): string {
  const kept = [...new Set([range.cidr, ...clusterCidrs])];
  const masquerade = kept.map((cidr) => `ip daddr ${cidr} return`).join('\n    ');
  return `table ip ${TABLE}
delete table ip ${TABLE}
table ip ${TABLE} {
  map any-address {
    type inet_proto . inet_service : ipv4_addr . inet_service
    ${elementsOf(ports.filter(({ hostIp }) => hostIp === ''))}
  }
  map one-address {
    type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service
    ${elementsOf(ports.filter(({ hostIp }) => hostIp !== ''))}
  }
  chain host-ports {
    meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport map @one-address
    meta l4proto { tcp, udp, sctp } dnat ip to meta l4proto . th dport map @any-address
  }
  chain prerouting {
    type nat hook prerouting priority -100; policy accept;
    fib daddr type local jump host-ports
  }
  chain output {
    type nat hook output priority -100; policy accept;
    fib daddr type local jump host-ports
  }
  chain loopback-guard {
    type filter hook prerouting priority -300; policy accept;
    iifname "${bridge}" ip daddr 127.0.0.0/8 drop
  }
  chain masquerade-leaving {
    ${masquerade}
    masquerade
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    oifname "${bridge}" ip saddr 127.0.0.0/8 masquerade
    oifname != "${bridge}" ip saddr ${range.cidr} jump masquerade-leaving
  }
}
`;
}

export const addPorts = (ports: readonly HostPort[]): string => changePorts('add', ports);
export const deletePorts = (ports: readonly HostPort[]): string => changePorts('delete', ports);

function changePorts(verb: 'add' | 'delete', ports: readonly HostPort[]): string {
  return ports
    .map((port) => {
      const map = port.hostIp === '' ? 'any-address' : 'one-address';
      return `${verb} element ip ${TABLE} ${map} { ${verb === 'add' ? element(port) : key(port)} }\n`;
    })
    .join('');
}

const elementsOf = (ports: readonly HostPort[]): string =>
  ports.length === 0 ? '' : `elements = { ${ports.map(element).join(', ')} }`;

const key = (port: HostPort): string =>
  port.hostIp === '' ? `${port.protocol} . ${port.hostPort}` : `${port.hostIp} . ${port.protocol} . ${port.hostPort}`;

const element = (port: HostPort): string => `${key(port)} : ${port.podIp} . ${port.podPort}`;
