/** Builds the nftables rules of pods: source NAT, host ports, and guards against traffic that a pod may not send. */
import { isIP } from 'node:net';
import type { ReservedPort } from '../../../../api/kinds/nodes/nodes/host-ports.ts';
import { type Network, networkText } from '../../../../base/addresses/networks.ts';
import { connectionZone } from '../../../../base/linux/connection-zone.ts';
import type { PortMapping } from '../../../../runtime/port.ts';
import { POD_LINK_GROUP } from '../bridge/restored-state.ts';

/** Mark of traffic from this node's pods to a host port. Its replies must return through this node. */
const HOST_PORT_MARK = '0x2000';
/** UDP port of VXLAN that IANA has assigned. */
export const VXLAN_PORT = 4789;
/** VXLAN network identifier, the same on every host of a cluster. */
export const VXLAN_ID = 26_725;
/** Ports of the machine config server: with TLS, and OpenShift's port without TLS. */
const CONFIG_SERVER_PORTS = '22623, 22624';

export interface FilterOptions {
  readonly table: string;
  /** Ranges of all pods, both families. */
  readonly clusterCidrs: readonly string[];
  /** Addresses that belong to services, even if the host has them on a link (userspace mode of the service proxy). */
  readonly serviceCidrs: readonly string[];
  /** Ports on which the host itself listens. Host ports of pods do not redirect them. */
  readonly reservedPorts: readonly ReservedPort[];
}

export interface PodPorts {
  readonly ips: readonly string[];
  readonly portMappings: readonly PortMapping[];
}

const familyOfRange = (cidr: string): number => isIP(cidr.split('/')[0] ?? '');

/**
 * The complete table of one family: traffic of pods that leaves the cluster's range gets this node's address, and host
 * ports are redirected to their pods. One transaction replaces the previous table; established connections continue.
 */
export function podTable(options: FilterOptions, range: Network, pods: readonly PodPorts[]): string {
  const podCidr = networkText(range);
  const ip = range.family === 4 ? 'ip' : 'ip6';
  const address = range.family === 4 ? 'ipv4_addr' : 'ipv6_addr';
  const own = (cidrs: readonly string[]): string =>
    cidrs.filter((each) => familyOfRange(each) === range.family).join(', ');
  const [cluster, service] = [own(options.clusterCidrs), own(options.serviceCidrs)];
  const lines = [
    `add table ${ip} ${options.table}`,
    `delete table ${ip} ${options.table}`,
    `table ${ip} ${options.table} {`,
    `  map host_ports { type inet_proto . inet_service : ${address} . inet_service; }`,
    `  map bound_host_ports { type ${address} . inet_proto . inet_service : ${address} . inet_service; }`,
    '  map udp_zones { typeof udp dport : ct zone; }',
    `  map bound_udp_zones { typeof ${ip} daddr . udp dport : ct zone; }`,
    '  set reserved_ports { type inet_proto . inet_service; }',
    '  chain host_port_lookup {',
    // Reserved ports of the host are never forwarded to a pod, whatever the maps contain. The rule also applies while
    // no process of this program runs.
    '    meta l4proto { tcp, udp, sctp } meta l4proto . th dport @reserved_ports return',
    ...(service === '' ? [] : [`    ${ip} daddr { ${service} } return`]),
    // Traffic to ::1 is not redirected, because the kernel does not route IPv6 loopback addresses to a link.
    ...(range.family === 6 ? ['    ip6 daddr ::1 return'] : []),
    `    ${ip} saddr ${podCidr} meta mark set meta mark or ${HOST_PORT_MARK}`,
    `    meta l4proto { tcp, udp, sctp } dnat ${ip} to ${ip} daddr . meta l4proto . th dport map @bound_host_ports`,
    `    meta l4proto { tcp, udp, sctp } dnat ${ip} to meta l4proto . th dport map @host_ports`,
    `    meta mark set meta mark and ${(~Number(HOST_PORT_MARK) >>> 0).toString()}`,
    '  }',
    ...zoneChains(ip),
    // This hook runs before the hooks of services (dstnat, -100), because a host port belongs only to its pod.
    '  chain prerouting { type nat hook prerouting priority -105; fib daddr type local jump host_port_lookup; }',
    '  chain output { type nat hook output priority -105; fib daddr type local jump host_port_lookup; }',
    // Traffic of the host to a host port on its loopback leaves by the pod's link, which must accept loopback addresses
    // for it. This rule prevents pods from reaching the host's loopback listeners that way (CVE-2020-8558).
    ...(range.family === 4
      ? [
          '  chain loopback_guard { type filter hook prerouting priority -300; iifname != "lo" ip daddr 127.0.0.0/8 drop; }',
        ]
      : []),
    ...podLinkGuards(range.family, cluster),
    // Machine configurations contain secrets of hosts, so pods cannot reach a machine config server, as in OpenShift.
    // The rule also matches the pod's link, because a pod can send from its IPv6 link-local address, too.
    ...['forward', 'input'].map((hook) => {
      const reject = `tcp dport { ${CONFIG_SERVER_PORTS} } reject with tcp reset`;
      const rules = `iifgroup ${POD_LINK_GROUP} ${reject}; ${ip} saddr ${podCidr} ${reject}`;
      return `  chain config_guard_${hook} { type filter hook ${hook} priority -5; ${rules}; }`;
    }),
    '  chain postrouting {',
    '    type nat hook postrouting priority 90;',
    `    meta mark and ${HOST_PORT_MARK} != 0 ct status dnat masquerade`,
    ...(range.family === 4 ? [`    ip saddr 127.0.0.0/8 ip daddr ${podCidr} ct status dnat masquerade`] : []),
    `    ${ip} saddr ${podCidr} ${ip} daddr != { ${cluster === '' ? podCidr : cluster} } masquerade`,
    '  }',
    '}',
  ];
  const open: string[] = [];
  const bound: string[] = [];
  const zones: string[] = [];
  const boundZones: string[] = [];
  for (const pod of pods) {
    const podIp = pod.ips.find((each) => isIP(each) === range.family);
    if (podIp === undefined) continue;
    for (const mapping of pod.portMappings) {
      if (isReserved(mapping, options.reservedPorts)) continue;
      const to = `${podIp} . ${mapping.containerPort}`;
      const from = `${mapping.protocol.toLowerCase()} . ${mapping.hostPort}`;
      const zone = connectionZone(`${from} ${to}`);
      const isUdp = mapping.protocol === 'UDP';
      if (isAnyAddress(mapping.hostIp)) {
        open.push(`${from} : ${to}`);
        if (isUdp) zones.push(`${mapping.hostPort} : ${zone}`);
      } else if (isIP(mapping.hostIp) === range.family) {
        bound.push(`${mapping.hostIp} . ${from} : ${to}`);
        if (isUdp) boundZones.push(`${mapping.hostIp} . ${mapping.hostPort} : ${zone}`);
      }
    }
  }
  const reserved = new Set(options.reservedPorts.map(({ protocol, port }) => `${protocol.toLowerCase()} . ${port}`));
  const add = (name: string, elements: readonly string[]): void => {
    if (elements.length > 0) lines.push(`add element ${ip} ${options.table} ${name} { ${elements.join(', ')} }`);
  };
  add('reserved_ports', [...reserved]);
  add('host_ports', open);
  add('bound_host_ports', bound);
  add('udp_zones', zones);
  add('bound_udp_zones', boundZones);
  return `${lines.join('\n')}\n`;
}

/**
 * Prevents source address spoofing: a packet is dropped unless the route back to its source is the pod's link. Pods
 * also cannot reach a VXLAN device of a host, directly or through a service, because such frames would bypass all
 * policies.
 */
function podLinkGuards(family: 4 | 6, cluster: string): string[] {
  const pods = `iifgroup ${POD_LINK_GROUP}`;
  const ip = family === 4 ? 'ip' : 'ip6';
  const own =
    family === 4
      ? [`${pods} icmp type redirect drop`]
      : [
          `${pods} icmpv6 type { nd-router-advert, nd-redirect } drop`,
          // Allows duplicate address detection and multicast reports, which have no source address.
          `${pods} ip6 saddr :: ip6 daddr ff02::/16 accept`,
        ];
  const tunnel = `udp dport ${VXLAN_PORT}`;
  const guard = (hook: string, rules: readonly string[]): string =>
    `  chain overlay_guard_${hook} { type filter hook ${hook} priority -5; ${rules.join('; ')}; }`;
  const translated = `ct status dnat ${tunnel} drop`;
  return [
    '  chain source_guard {',
    '    type filter hook prerouting priority -310',
    ...own.map((rule) => `    ${rule}`),
    `    ${pods} fib saddr . iif oif missing drop`,
    '  }',
    guard('forward', [`${pods} ${tunnel} drop`, translated]),
    guard('input', [
      `${pods} ${tunnel} drop`,
      ...(cluster === '' ? [] : [`${ip} saddr { ${cluster} } ${tunnel} drop`]),
      translated,
    ]),
    guard('output', [translated]),
  ];
}

/**
 * Assigns conntrack zones before connection tracking. A UDP flow lasts as long as its client sends. If another pod gets
 * the host port, the flow gets another zone and counts as new. The zone is derived from the pod's address and ports, so
 * it survives a restart.
 */
function zoneChains(ip: string): string[] {
  return ['prerouting', 'output'].flatMap((hook) => [
    `  chain zones_${hook} {`,
    `    type filter hook ${hook} priority -300`,
    '    fib daddr type local ct original zone set udp dport map @udp_zones',
    `    fib daddr type local ct original zone set ${ip} daddr . udp dport map @bound_udp_zones`,
    '  }',
  ]);
}

export function isAnyAddress(hostIp: string): boolean {
  return hostIp === '' || hostIp === '0.0.0.0' || hostIp === '::';
}

export function isReserved(mapping: PortMapping, reservedPorts: readonly ReservedPort[]): boolean {
  return reservedPorts.some(({ protocol, port }) => protocol === mapping.protocol && port === mapping.hostPort);
}

/** Whether two mappings want the same host port. */
export function collides(left: PortMapping, right: PortMapping): boolean {
  return (
    left.hostPort === right.hostPort &&
    left.protocol === right.protocol &&
    (isAnyAddress(left.hostIp) || isAnyAddress(right.hostIp) || left.hostIp === right.hostIp)
  );
}
