import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import type { PortMapping } from '../../core/podplan/port.ts';
import type { Range } from './addresses.ts';
import { toText } from './addresses.ts';

/** Pods whose traffic to a host port came from this node's own pods are answered through this node. */
const HOST_PORT_MARK = '0x2000';

export interface FilterOptions {
  readonly table: string;
  readonly clusterCidr: string;
  /**
   * Addresses that belong to services, even where the host has them on a link (userspace mode of the service proxy).
   */
  readonly serviceCidr: string;
  /** Ports on which the host itself listens: they lead to no pod. */
  readonly reservedPorts: readonly ReservedPort[];
}

export interface PodPorts {
  readonly ip: string;
  readonly portMappings: readonly PortMapping[];
}

/**
 * The whole table: pods' traffic that leaves the cluster's range takes this node's address, host ports lead to their
 * pods. One transaction that replaces what was there; established connections stay.
 */
export function podTable(options: FilterOptions, range: Range, pods: readonly PodPorts[]): string {
  const podCidr = `${toText(range.base)}/${range.bits}`;
  const lines = [
    `add table ip ${options.table}`,
    `delete table ip ${options.table}`,
    `table ip ${options.table} {`,
    '  map host_ports { type inet_proto . inet_service : ipv4_addr . inet_service; }',
    '  map bound_host_ports { type ipv4_addr . inet_proto . inet_service : ipv4_addr . inet_service; }',
    '  set reserved_ports { type inet_proto . inet_service; }',
    '  chain host_port_lookup {',
    // Holds for whatever the maps contain, also while no process of this program runs.
    '    meta l4proto { tcp, udp, sctp } meta l4proto . th dport @reserved_ports return',
    `    ip daddr ${options.serviceCidr} return`,
    `    ip saddr ${podCidr} meta mark set meta mark or ${HOST_PORT_MARK}`,
    '    meta l4proto { tcp, udp, sctp } dnat ip to ip daddr . meta l4proto . th dport map @bound_host_ports',
    '    meta l4proto { tcp, udp, sctp } dnat ip to meta l4proto . th dport map @host_ports',
    `    meta mark set meta mark and ${(~Number(HOST_PORT_MARK) >>> 0).toString()}`,
    '  }',
    // Before the services' chains (dstnat, -100): a host port is this pod's alone.
    '  chain prerouting { type nat hook prerouting priority -105; fib daddr type local jump host_port_lookup; }',
    '  chain output { type nat hook output priority -105; fib daddr type local jump host_port_lookup; }',
    // What the host sends to a host port of its loopback leaves by the pod's link, which has to take loopback addresses
    // for that. Pods do not get at what listens there by it (CVE-2020-8558).
    '  chain loopback_guard { type filter hook prerouting priority -300; iifname != "lo" ip daddr 127.0.0.0/8 drop; }',
    '  chain postrouting {',
    '    type nat hook postrouting priority 90;',
    `    meta mark and ${HOST_PORT_MARK} != 0 ct status dnat masquerade`,
    `    ip saddr 127.0.0.0/8 ip daddr ${podCidr} ct status dnat masquerade`,
    `    ip saddr ${podCidr} ip daddr != ${options.clusterCidr} masquerade`,
    '  }',
    '}',
  ];
  const open: string[] = [];
  const bound: string[] = [];
  for (const pod of pods) {
    for (const mapping of pod.portMappings) {
      if (isReserved(mapping, options.reservedPorts)) continue;
      const to = `${pod.ip} . ${mapping.containerPort}`;
      const from = `${mapping.protocol.toLowerCase()} . ${mapping.hostPort}`;
      if (isAnyAddress(mapping.hostIp)) open.push(`${from} : ${to}`);
      else bound.push(`${mapping.hostIp} . ${from} : ${to}`);
    }
  }
  const reserved = new Set(options.reservedPorts.map(({ protocol, port }) => `${protocol.toLowerCase()} . ${port}`));
  if (reserved.size > 0) lines.push(`add element ip ${options.table} reserved_ports { ${[...reserved].join(', ')} }`);
  if (open.length > 0) lines.push(`add element ip ${options.table} host_ports { ${open.join(', ')} }`);
  if (bound.length > 0) lines.push(`add element ip ${options.table} bound_host_ports { ${bound.join(', ')} }`);
  return `${lines.join('\n')}\n`;
}

export function isAnyAddress(hostIp: string): boolean {
  return hostIp === '' || hostIp === '0.0.0.0';
}

export function isReserved(mapping: PortMapping, reservedPorts: readonly ReservedPort[]): boolean {
  return reservedPorts.some(({ protocol, port }) => protocol === mapping.protocol && port === mapping.hostPort);
}

/** True when two mappings want the same port of the host. */
export function collides(left: PortMapping, right: PortMapping): boolean {
  return (
    left.hostPort === right.hostPort &&
    left.protocol === right.protocol &&
    (isAnyAddress(left.hostIp) || isAnyAddress(right.hostIp) || left.hostIp === right.hostIp)
  );
}
