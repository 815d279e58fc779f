/** The nft table of a family: its base chains, and programs that create, change and guard it. */
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import type { TimedMembers } from './port.ts';
import {
  ADDRESS_KEYS,
  emptyNftState,
  type Item,
  MAP_NAMES,
  MASQUERADE_MARK,
  type MapName,
  type NftOptions,
  type NftState,
  PORT_KEYS,
  WORDS,
} from './table-content.ts';

export const replaceTable = (desired: NftState, options: NftOptions): string => atOnce(replaceSteps(desired, options));

/** Program that replaces the whole table with `desired` in one transaction. Established connections are kept. */
export function* replaceSteps(desired: NftState, options: NftOptions): Steps<string> {
  const { ip } = WORDS[options.family];
  const table = `${ip} ${options.table}`;
  return [
    `add table ${table}`,
    `delete table ${table}`,
    guardTable(options),
    `add chain ${table} refuse`,
    `add rule ${table} refuse reject`,
    ...zoneChains(table, ip),
    // Runs before destinations are rewritten. The host's own traffic is not restricted.
    `add chain ${table} firewall { type filter hook prerouting priority -110; policy accept; }`,
    `add rule ${table} firewall ct state new ${ip} daddr . meta l4proto . th dport vmap @firewall_ips`,
    `add chain ${table} nat_prerouting { type nat hook prerouting priority dstnat; policy accept; }`,
    `add rule ${table} nat_prerouting jump services`,
    `add chain ${table} nat_output { type nat hook output priority -100; policy accept; }`,
    `add rule ${table} nat_output jump services`,
    `add chain ${table} nat_postrouting { type nat hook postrouting priority srcnat; policy accept; }`,
    `add rule ${table} nat_postrouting ${ip} saddr . ${ip} daddr @hairpin meta mark set meta mark or ${MASQUERADE_MARK}`,
    `add rule ${table} nat_postrouting meta mark and ${MASQUERADE_MARK} == 0 return`,
    `add rule ${table} nat_postrouting meta mark set meta mark xor ${MASQUERADE_MARK}`,
    `add rule ${table} nat_postrouting masquerade fully-random`,
    // Runs after destinations are rewritten, because with the policy Local the host itself reaches endpoints on other
    // nodes.
    ...['input', 'forward', 'output'].flatMap((hook) => [
      `add chain ${table} filter_${hook} { type filter hook ${hook} priority filter; policy accept; }`,
      `add rule ${table} filter_${hook} ct state new jump no_endpoints`,
    ]),
    yield* differenceSteps(emptyNftState, desired, options),
  ]
    .join('\n')
    .concat('\n');
}

/**
 * Chains that assign connection tracking zones, before connection tracking. Only the direction to the service gets a
 * zone, because responses come from the address of the endpoint.
 */
function zoneChains(table: string, ip: string): string[] {
  return ['prerouting', 'output'].flatMap((hook) => [
    `add chain ${table} zones_${hook} { type filter hook ${hook} priority -300; policy accept; }`,
    `add rule ${table} zones_${hook} ct original zone set ${ip} daddr . udp dport map @udp_zones`,
    `add rule ${table} zones_${hook} fib daddr type local ct original zone set udp dport map @udp_port_zones`,
  ]);
}

/**
 * Program that excludes the host's own ports from an existing table of any content. A table of an earlier process must
 * not block this process's connection to the API server, from which the desired content is read. The program adds the
 * structure of a new table and keeps existing elements.
 */
export function guardTable({ table: name, reservedPorts, poolRanges = [], family }: NftOptions): string {
  const { ip, address, loopback } = WORDS[family];
  const table = `${ip} ${name}`;
  const verdictMap = (map: MapName, type: string): string => `add map ${table} ${map} { type ${type} : verdict; }`;
  // The modulus here only determines the key's type. Each rule specifies its own modulus.
  const endpointMap = (map: MapName, key: string): string =>
    `add map ${table} ${map} { typeof ${key} . numgen random mod 2 : ${ip} daddr . th dport; }`;
  const reserved = new Set(reservedPorts.map(({ protocol, port }) => `${protocol.toLowerCase()} . ${port}`));
  const own = ['fib daddr type local', ...poolRanges.map((range) => `${ip} daddr != ${range}`)].join(' ');
  const lookUp = (chain: string, ips: MapName, nodePorts: MapName): string[] => [
    `add chain ${table} ${chain}`,
    `flush chain ${table} ${chain}`,
    `add rule ${table} ${chain} ${own} meta l4proto . th dport @reserved_ports return`,
    `add rule ${table} ${chain} ${ip} daddr . meta l4proto . th dport vmap @${ips}`,
    `add rule ${table} ${chain} fib daddr type local ${ip} daddr != ${loopback} meta l4proto . th dport vmap @${nodePorts}`,
  ];
  return [
    `add table ${table}`,
    `add map ${table} udp_zones { typeof ${ip} daddr . udp dport : ct zone; }`,
    `add map ${table} udp_port_zones { typeof udp dport : ct zone; }`,
    endpointMap('endpoints', `${ip} daddr . meta l4proto . th dport`),
    endpointMap('nodeport_endpoints', 'meta l4proto . th dport'),
    `add set ${table} hairpin { type ${address} . ${address}; }`,
    ...ADDRESS_KEYS.map((map) => verdictMap(map, `${address} . inet_proto . inet_service`)),
    ...PORT_KEYS.map((map) => verdictMap(map, 'inet_proto . inet_service')),
    `add set ${table} reserved_ports { type inet_proto . inet_service; }`,
    `flush set ${table} reserved_ports`,
    ...(reserved.size === 0 ? [] : [`add element ${table} reserved_ports { ${[...reserved].join(', ')} }`]),
    ...lookUp('services', 'service_ips', 'service_nodeports'),
    ...lookUp('no_endpoints', 'no_endpoint_ips', 'no_endpoint_nodeports'),
    '',
  ].join('\n');
}

export const difference = (current: NftState, desired: NftState, options: NftOptions): string =>
  atOnce(differenceSteps(current, desired, options));

/**
 * Program that changes `current` into `desired`; '' if nothing differs. Referenced objects are added before their
 * references and removed after them.
 */
export function* differenceSteps(current: NftState, desired: NftState, options: NftOptions): Steps<string> {
  const table = `${WORDS[options.family].ip} ${options.table}`;
  const lines: string[] = [];
  const sets = placeOf(current, desired, 'sets');
  // A set's timeout cannot be changed in place (see `needsReplace`). No size is specified: the kernel limits a dynamic
  // set to 65,535 members anyway, but would allocate two megabytes at once for a specified size.
  for (const [set, seconds] of sets.want)
    if (!sets.have.has(set))
      lines.push(
        `add set ${table} ${set} { type ${WORDS[options.family].address}; flags dynamic,timeout; timeout ${seconds}s; }`,
      );
  const chains = placeOf(current, desired, 'chains');
  const changed = [...chains.want].filter(([chain, rules]) => chains.have.get(chain) !== rules);
  for (const [chain] of changed) lines.push(`${chains.have.has(chain) ? 'flush' : 'add'} chain ${table} ${chain}`);
  for (const [chain, rules] of changed)
    for (const rule of rules.split('\n')) lines.push(`add rule ${table} ${chain} ${rule}`);
  for (const name of MAP_NAMES) {
    yield;
    const { have, want } = placeOf(current, desired, name);
    const removed = [...have].filter(([key, data]) => want.get(key) !== data).map(([key]) => key);
    const added = [...want].filter(([key, data]) => have.get(key) !== data);
    if (removed.length > 0) lines.push(`delete element ${table} ${name} { ${removed.join(', ')} }`);
    if (added.length > 0) lines.push(`add element ${table} ${name} { ${added.map(elementText).join(', ')} }`);
  }
  const goneChains = [...chains.have.keys()].filter((chain) => !chains.want.has(chain));
  for (const chain of goneChains) lines.push(`flush chain ${table} ${chain}`);
  for (const chain of goneChains) lines.push(`delete chain ${table} ${chain}`);
  for (const set of sets.have.keys()) if (!sets.want.has(set)) lines.push(`delete set ${table} ${set}`);
  return lines.join('\n');
}

/** Program that adds members to the affinity sets of `desired`; '' if there are no members. */
export function addAffinity(desired: NftState, members: TimedMembers, options: NftOptions): string {
  const table = `${WORDS[options.family].ip} ${options.table}`;
  const lines: string[] = [];
  for (const [set, seconds] of desired.get('sets') ?? NONE) {
    const left = [...(members.get(set) ?? [])].filter(([, expires]) => expires > 0);
    const texts = left.map(([address, expires]) => `${address} expires ${Math.min(expires, Number(seconds))}s`);
    if (texts.length > 0) lines.push(`add element ${table} ${set} { ${texts.join(', ')} }\n`);
  }
  return lines.join('');
}

/** Whether the change includes a new timeout of a set, which requires `replaceTable`. */
export function needsReplace(current: NftState, desired: NftState): boolean {
  const { have, want } = placeOf(current, desired, 'sets');
  return [...want].some(([set, seconds]) => have.has(set) && have.get(set) !== seconds);
}

const NONE: ReadonlyMap<string, string> = new Map();

const placeOf = (current: NftState, desired: NftState, place: Item['place']) => ({
  have: current.get(place) ?? NONE,
  want: desired.get(place) ?? NONE,
});

const elementText = ([key, data]: readonly [string, string]): string => (data === '' ? key : `${key} : ${data}`);
