/**
 * Decides whether the conditions of a firewall rule include the first packet of a connection from another host to a
 * port. The conditions are in the syntax of nft(8).
 */

export interface WantedPort {
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
}

/** `unknown`: the result depends on the source, or on a condition that is not known here. */
export type Match = 'yes' | 'no' | 'unknown';

const CONDITION =
  /(?<key>(?:meta )?(?:l4proto|pkttype|iifname|iif)|ip protocol|ip6 nexthdr|ip6? [sd]addr|\w+ [sd]port|icmp(?:v6)? \w+|igmp \w+|ct stat(?:e|us)|fib daddr type) (?<not>!= )?(?<value>"[^"]*"|\{[^}]*\}|[^\s{]+)/g;
const PROTOCOLS = { tcp: ['tcp', '6'], udp: ['udp', '17'] } as const;
/** Port from which clients connect. */
const CLIENT_PORT = 40_000;
/** Interfaces of pods, containers and virtual machines. Packets of other hosts do not arrive there. */
const INTERNAL = /^(?:lo$|docker|br-|virbr|veth|cni|podman|lxc|lxd)/;
const LOOPBACK = /^(?:127\.|::1(?:\/|$))/;
const MULTICAST = /^(?:2(?:2[4-9]|3\d|55)\.|ff)/;

/** `bridge`: interface of the pods. */
export function matchOf(conditions: string, wanted: WantedPort, bridge: string): Match {
  const matches: Match[] = [];
  const rest = conditions.replaceAll(CONDITION, (_all, ...found) => {
    const { key = '', not, value = '' } = found.at(-1) as Record<string, string | undefined>;
    const match = matchField(key.replace('meta ', ''), valuesOf(value), wanted, bridge);
    matches.push(not === undefined || match === 'unknown' ? match : match === 'yes' ? 'no' : 'yes');
    return '';
  });
  if (matches.includes('no')) return 'no';
  return matches.includes('unknown') || rest.trim() !== '' ? 'unknown' : 'yes';
}

const valuesOf = (value: string): string[] =>
  value
    .replaceAll(/["{}]/g, '')
    .split(',')
    .map((each) => each.trim());

const answer = (holds: boolean): Match => (holds ? 'yes' : 'no');

function matchField(key: string, values: readonly string[], { protocol, port }: WantedPort, bridge: string): Match {
  const [what = '', field = ''] = key.split(' ');
  if (field === 'dport' || field === 'sport') {
    if (what !== 'th' && what !== protocol) return 'no';
    const included = values.map((value) => includes(value, field === 'dport' ? port : CLIENT_PORT));
    return included.find((each) => each === 'yes') ?? included.find((each) => each === 'unknown') ?? 'no';
  }
  if (key === 'l4proto' || key === 'ip protocol' || key === 'ip6 nexthdr')
    return answer(PROTOCOLS[protocol].some((each) => values.includes(each)));
  if (key === 'ct state') return answer(values.includes('new'));
  if (key === 'pkttype') return answer(values.includes('host') || values.includes('unicast'));
  if (key === 'fib daddr type') return answer(values.includes('local'));
  if (what.startsWith('iif')) return values.every((each) => each === bridge || INTERNAL.test(each)) ? 'no' : 'unknown';
  if (field === 'saddr') return values.every((each) => LOOPBACK.test(each)) ? 'no' : 'unknown';
  if (field === 'daddr') return values.every((each) => MULTICAST.test(each)) ? 'no' : 'unknown';
  // The other conditions are for ICMP, IGMP and translated connections.
  return 'no';
}

/** Whether a port or a range, such as `8000-9000`, includes the port. Sets and concatenations are unknown. */
function includes(value: string, port: number): Match {
  const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(value) ?? [];
  if (first !== undefined) return answer(Number(first) <= port && port <= Number(last));
  return /^[a-z]/i.test(value) ? 'no' : 'unknown';
}
