/**
 * Service ports as an nft table. Lookup cost does not grow with the number of services: verdict maps take an address
 * and a port to the chain of its service, as upstream's nftables proxy does (KEP-3866). `difference` changes only what
 * changed.
 */
import type { ReservedPort } from '../../api/kinds/nodes/host-ports.ts';
import type { Family, ProxyEndpoint, ServicePort } from './service-port.ts';

/** Desired content of the table. Chains and sets are named after service ports. */
export interface NftState {
  /** Chain name → its rules in order. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Map name → element key → verdict. */
  readonly maps: ReadonlyMap<MapName, ReadonlyMap<string, string>>;
  /** Affinity set name → its timeout in seconds. */
  readonly sets: ReadonlyMap<string, number>;
}

type MapName =
  | 'udp_zones'
  | 'udp_port_zones'
  | 'firewall_ips'
  | 'service_ips'
  | 'service_nodeports'
  | 'no_endpoint_ips'
  | 'no_endpoint_nodeports';

const KEYS: Readonly<Record<Exclude<MapName, 'udp_zones' | 'udp_port_zones'>, 'address' | 'port'>> = {
  firewall_ips: 'address',
  service_ips: 'address',
  service_nodeports: 'port',
  no_endpoint_ips: 'address',
  no_endpoint_nodeports: 'port',
};
const VERDICT_MAPS = Object.keys(KEYS) as (keyof typeof KEYS)[];
const MAP_NAMES: readonly MapName[] = ['udp_zones', 'udp_port_zones', ...VERDICT_MAPS];

/** How the families differ. */
const WORDS: Readonly<Record<Family, { ip: string; address: string; loopback: string }>> = {
  4: { ip: 'ip', address: 'ipv4_addr', loopback: '127.0.0.0/8' },
  6: { ip: 'ip6', address: 'ipv6_addr', loopback: '::1' },
};
/** Marks packets that leave with this node's address; the bit that kube-proxy uses. */
const MASQUERADE_MARK = '0x4000';
const MAX_AFFINITY_CLIENTS = 65_535;

export interface NftOptions {
  readonly table: string;
  readonly family: Family;
  /**
   * Pods' range of the family. Sources outside it that use a cluster IP are masqueraded, so that answers come back
   * through this node; undefined: all are.
   */
  readonly clusterCidr: string | undefined;
  /** Ports on which the host itself listens: at its own addresses they are never looked up. */
  readonly reservedPorts: readonly ReservedPort[];
  /**
   * Connection tracking zones of UDP service ports by id; absent: the default zone. A flow that is sent to an endpoint
   * which is gone never ends while its client keeps sending, so the port moves to another zone, where the flow is new.
   */
  readonly zones?: ReadonlyMap<string, number>;
}

export const emptyNftState: NftState = { chains: new Map(), maps: new Map(), sets: new Map() };

/** Of the ports of the table's family. */
export function nftState(ports: readonly ServicePort[], options: NftOptions): NftState {
  const { ip: word } = WORDS[options.family];
  const outside = options.clusterCidr === undefined ? '' : `${word} saddr != ${options.clusterCidr} `;
  const chains = new Map<string, readonly string[]>();
  const sets = new Map<string, number>();
  const maps: Record<MapName, Map<string, string>> = {
    udp_zones: new Map(),
    udp_port_zones: new Map(),
    firewall_ips: new Map(),
    service_ips: new Map(),
    service_nodeports: new Map(),
    no_endpoint_ips: new Map(),
    no_endpoint_nodeports: new Map(),
  };
  for (const port of ports) {
    if (port.family !== options.family) continue;
    const proto = port.protocol.toLowerCase();
    const id = nameOf(port.id);
    const addBalancer = (chain: string, endpoints: readonly ProxyEndpoint[], prefix: readonly string[]): void => {
      const endpointChains = endpoints.map((endpoint) => {
        const target = options.family === 6 ? `[${endpoint.ip}]` : endpoint.ip;
        const suffix = `${id}/${endpoint.ip.replaceAll(':', '.')}/${endpoint.port}`;
        const name = `ep/${suffix}`;
        const affinitySet = `aff/${suffix}`;
        if (port.affinitySeconds > 0) sets.set(affinitySet, port.affinitySeconds);
        chains.set(name, [
          `${word} saddr ${endpoint.ip} meta mark set meta mark or ${MASQUERADE_MARK} comment "hairpin"`,
          ...(port.affinitySeconds > 0 ? [`update @${affinitySet} { ${word} saddr }`] : []),
          `meta l4proto ${proto} dnat to ${target}:${endpoint.port}`,
        ]);
        return { name, affinitySet };
      });
      chains.set(chain, [
        ...prefix,
        ...(port.affinitySeconds > 0
          ? endpointChains.map((each) => `${word} saddr @${each.affinitySet} goto ${each.name}`)
          : []),
        ...(endpointChains.length === 0
          ? []
          : [
              `numgen random mod ${endpointChains.length} vmap { ${endpointChains
                .map((each, index) => `${index} : goto ${each.name}`)
                .join(', ')} }`,
            ]),
      ]);
    };
    const internalChain = `svc/${id}`;
    const externalChain = `ext/${id}`;
    const comment = `comment "${commentText(port.id)}"`;
    if (port.endpoints.length > 0) {
      addBalancer(internalChain, port.endpoints, [
        `${outside}fib saddr type != local meta mark set meta mark or ${MASQUERADE_MARK} ${comment}`,
      ]);
    }
    // With the policy Local, pods and this host still reach every endpoint (KEP-2086 keeps it so).
    const inside =
      port.externalLocal && port.endpoints.length > 0
        ? [
            ...(options.clusterCidr === undefined
              ? []
              : [`${word} saddr ${options.clusterCidr} goto ${internalChain}`]),
            `fib saddr type local goto ${internalChain}`,
          ]
        : [];
    const external = port.nodePort > 0 || port.externalIps.length > 0;
    const leads = port.externalEndpoints.length > 0 || inside.length > 0;
    if (external && leads) {
      addBalancer(
        externalChain,
        port.externalEndpoints,
        port.externalLocal ? inside : [`meta mark set meta mark or ${MASQUERADE_MARK} ${comment}`],
      );
    }
    for (const ip of port.clusterIps) {
      const key = `${ip} . ${proto} . ${port.port}`;
      if (port.endpoints.length > 0) maps.service_ips.set(key, `goto ${internalChain}`);
      else maps.no_endpoint_ips.set(key, 'goto refuse');
    }
    for (const ip of port.externalIps) {
      const key = `${ip} . ${proto} . ${port.port}`;
      if (leads) maps.service_ips.set(key, `goto ${externalChain}`);
      if (port.externalEndpoints.length === 0)
        maps.no_endpoint_ips.set(key, port.externalLocal ? 'drop' : 'goto refuse');
    }
    const zone = port.protocol === 'UDP' ? options.zones?.get(port.id) : undefined;
    if (zone !== undefined) {
      for (const ip of [...port.clusterIps, ...port.externalIps]) maps.udp_zones.set(`${ip} . ${port.port}`, `${zone}`);
      if (port.nodePort > 0) maps.udp_port_zones.set(`${port.nodePort}`, `${zone}`);
    }
    if (port.restrictedIps.length > 0) {
      const from = port.sourceRanges.map((range) => `${word} saddr ${range} return`);
      chains.set(`fw/${id}`, [...from, 'drop']);
      for (const ip of port.restrictedIps) maps.firewall_ips.set(`${ip} . ${proto} . ${port.port}`, `goto fw/${id}`);
    }
    if (port.nodePort > 0) {
      const key = `${proto} . ${port.nodePort}`;
      if (leads) maps.service_nodeports.set(key, `goto ${externalChain}`);
      if (port.externalEndpoints.length === 0)
        maps.no_endpoint_nodeports.set(key, port.externalLocal ? 'drop' : 'goto refuse');
    }
  }
  return { chains, sets, maps: new Map(MAP_NAMES.map((name) => [name, maps[name]])) };
}

/**
 * The program that replaces whatever the table holds by `desired`, in one transaction. Established connections stay.
 */
export function replaceTable(desired: NftState, options: NftOptions): string {
  const table = `${WORDS[options.family].ip} ${options.table}`;
  return [
    `add table ${table}`,
    `delete table ${table}`,
    guardTable(options),
    `add chain ${table} refuse`,
    `add rule ${table} refuse reject`,
    ...zoneChains(table, WORDS[options.family].ip),
    // Before destinations are rewritten; the host's own traffic is not restricted.
    `add chain ${table} firewall { type filter hook prerouting priority -110; policy accept; }`,
    `add rule ${table} firewall ct state new ${WORDS[options.family].ip} daddr . meta l4proto . th dport vmap @firewall_ips`,
    `add chain ${table} nat_prerouting { type nat hook prerouting priority dstnat; policy accept; }`,
    `add rule ${table} nat_prerouting jump services`,
    `add chain ${table} nat_output { type nat hook output priority -100; policy accept; }`,
    `add rule ${table} nat_output jump services`,
    `add chain ${table} nat_postrouting { type nat hook postrouting priority srcnat; policy accept; }`,
    `add rule ${table} nat_postrouting meta mark and ${MASQUERADE_MARK} == 0 return`,
    `add rule ${table} nat_postrouting meta mark set meta mark xor ${MASQUERADE_MARK}`,
    `add rule ${table} nat_postrouting masquerade fully-random`,
    ...['input', 'forward', 'output'].flatMap((hook) => [
      `add chain ${table} filter_${hook} { type filter hook ${hook} priority -110; policy accept; }`,
      `add rule ${table} filter_${hook} ct state new jump no_endpoints`,
    ]),
    difference(emptyNftState, desired, options),
  ]
    .join('\n')
    .concat('\n');
}

/** Before connection tracking. Only the direction to the service has a zone: answers come by the endpoint's address. */
function zoneChains(table: string, ip: string): string[] {
  return ['prerouting', 'output'].flatMap((hook) => [
    `add chain ${table} zones_${hook} { type filter hook ${hook} priority -300; policy accept; }`,
    `add rule ${table} zones_${hook} ct original zone set ${ip} daddr . udp dport map @udp_zones`,
    `add rule ${table} zones_${hook} fib daddr type local ct original zone set udp dport map @udp_port_zones`,
  ]);
}

/**
 * The program that keeps the host's own ports out of whatever the table holds: what an earlier process left behind must
 * not keep this one from the API server, from which it learns the right content. Adds what a new table needs and leaves
 * the elements of an old one.
 */
export function guardTable({ table: name, reservedPorts, family }: NftOptions): string {
  const { ip, address, loopback } = WORDS[family];
  const table = `${ip} ${name}`;
  const types = { address: `${address} . inet_proto . inet_service`, port: 'inet_proto . inet_service' };
  const reserved = new Set(reservedPorts.map(({ protocol, port }) => `${protocol.toLowerCase()} . ${port}`));
  const lookUp = (chain: string, ips: MapName, nodePorts: MapName): string[] => [
    `add chain ${table} ${chain}`,
    `flush chain ${table} ${chain}`,
    `add rule ${table} ${chain} fib daddr type local meta l4proto . th dport @reserved_ports return`,
    `add rule ${table} ${chain} ${ip} daddr . meta l4proto . th dport vmap @${ips}`,
    `add rule ${table} ${chain} fib daddr type local ${ip} daddr != ${loopback} meta l4proto . th dport vmap @${nodePorts}`,
  ];
  return [
    `add table ${table}`,
    `add map ${table} udp_zones { typeof ${ip} daddr . udp dport : ct zone; }`,
    `add map ${table} udp_port_zones { typeof udp dport : ct zone; }`,
    ...VERDICT_MAPS.map((map) => `add map ${table} ${map} { type ${types[KEYS[map]]} : verdict; }`),
    `add set ${table} reserved_ports { type inet_proto . inet_service; }`,
    `flush set ${table} reserved_ports`,
    ...(reserved.size === 0 ? [] : [`add element ${table} reserved_ports { ${[...reserved].join(', ')} }`]),
    ...lookUp('services', 'service_ips', 'service_nodeports'),
    ...lookUp('no_endpoints', 'no_endpoint_ips', 'no_endpoint_nodeports'),
    '',
  ].join('\n');
}

/**
 * The program that turns `current` into `desired`; '' when nothing differs. What is pointed at is added before what
 * points to it and removed after.
 */
export function difference(current: NftState, desired: NftState, options: NftOptions): string {
  const table = `${WORDS[options.family].ip} ${options.table}`;
  const lines: string[] = [];
  for (const [set, seconds] of desired.sets) {
    if (current.sets.get(set) === seconds) continue;
    // A set's timeout cannot be changed in place: chains that use it are rewritten below because they changed with it.
    if (!current.sets.has(set))
      lines.push(
        `add set ${table} ${set} { type ${WORDS[options.family].address}; flags dynamic,timeout; timeout ${seconds}s; size ${MAX_AFFINITY_CLIENTS}; }`,
      );
  }
  const changed: [string, readonly string[]][] = [];
  for (const [chain, rules] of desired.chains) {
    const old = current.chains.get(chain);
    if (old === undefined) lines.push(`add chain ${table} ${chain}`);
    else if (sameRules(old, rules)) continue;
    else lines.push(`flush chain ${table} ${chain}`);
    changed.push([chain, rules]);
  }
  for (const [chain, rules] of changed) for (const rule of rules) lines.push(`add rule ${table} ${chain} ${rule}`);
  for (const name of MAP_NAMES) {
    const have = current.maps.get(name) ?? new Map<string, string>();
    const want = desired.maps.get(name) ?? new Map<string, string>();
    const removed = [...have].filter(([key, verdict]) => want.get(key) !== verdict).map(([key]) => key);
    const added = [...want].filter(([key, verdict]) => have.get(key) !== verdict);
    if (removed.length > 0) lines.push(`delete element ${table} ${name} { ${removed.join(', ')} }`);
    if (added.length > 0)
      lines.push(`add element ${table} ${name} { ${added.map(([key, verdict]) => `${key} : ${verdict}`).join(', ')} }`);
  }
  const goneChains = [...current.chains.keys()].filter((chain) => !desired.chains.has(chain));
  for (const chain of goneChains) lines.push(`flush chain ${table} ${chain}`);
  for (const chain of goneChains) lines.push(`delete chain ${table} ${chain}`);
  for (const set of current.sets.keys()) if (!desired.sets.has(set)) lines.push(`delete set ${table} ${set}`);
  return lines.join('\n');
}

/** True when going from one to the other needs a set whose timeout changed, which only `replaceTable` can do. */
export function needsReplace(current: NftState, desired: NftState): boolean {
  for (const [set, seconds] of desired.sets) {
    const old = current.sets.get(set);
    if (old !== undefined && old !== seconds) return true;
  }
  return false;
}

function sameRules(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((rule, index) => rule === right[index]);
}

/** Comments are quoted strings of at most 128 bytes in nft. Service ids hold only DNS labels, `/` and `:`. */
function commentText(text: string): string {
  return text.replaceAll(/[^\w./:-]/g, '').slice(0, 120);
}

/** Distinct for distinct ids, and short enough: names of services and ports hold only letters, digits, `-` and `.`. */
const nameOf = (id: string): string => id.replaceAll(':', '/');
