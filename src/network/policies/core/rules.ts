/** Renders the rules of one policy for nft. */
import type { Block, CompiledPolicy, Direction, Family, NamedPort, Peer, PodSelection, PortRange } from './compile.ts';

/** Names of the sets that rules refer to. */
export interface SetNames {
  pods(selection: PodSelection, family: Family): string;
  port(port: NamedPort, family: Family): string;
}

const FAMILIES: readonly Family[] = [4, 6];
const ip = (family: Family): string => (family === 4 ? 'ip' : 'ip6');

/** Each rule accepts packets. All other packets return to the chain of the pod. */
export function rulesOf(policy: CompiledPolicy, direction: Direction, names: SetNames): string[] {
  const side = direction === 'ingress' ? 'saddr' : 'daddr';
  const lines: string[] = [];
  for (const { peers, ports } of policy[direction] ?? []) {
    for (const family of FAMILIES) {
      const from = peers === undefined ? [nfProto(family)] : peersOf(peers, side, family, names);
      const to =
        ports === undefined
          ? ['']
          : [
              ...(ports.ranges.length === 0 ? [] : [rangesOf(ports.ranges)]),
              // A named port refers to the destination: this pod for ingress, the peer for egress.
              ...ports.names.map(
                (port) => `${ip(family)} daddr . meta l4proto . th dport @${names.port(port, family)} `,
              ),
            ];
      for (const each of from) for (const port of to) lines.push(`${each} ${port}accept`);
    }
  }
  return lines;
}

const nfProto = (family: Family): string => `meta nfproto ipv${family}`;

function peersOf(peers: readonly Peer[], side: string, family: Family, names: SetNames): string[] {
  const field = `${ip(family)} ${side}`;
  /** Blocks that share one rule, so that its cost does not grow with their number. nft merges overlapping ones. */
  const plain: string[] = [];
  const rules = peers.flatMap((peer) => {
    if (peer.kind === 'pods') return [`${field} @${names.pods(peer.selection, family)}`];
    const { block } = peer;
    if (block.family !== family) return [];
    if (block.except.length > 0 || block.cidr.endsWith('/0')) return [blockOf(block, field)];
    plain.push(block.cidr);
    return [];
  });
  if (plain.length === 1) rules.push(`${field} ${plain[0]}`);
  else if (plain.length > 1) rules.push(`${field} { ${[...new Set(plain)].join(', ')} }`);
  return rules;
}

function blockOf({ cidr, except, family }: Block, field: string): string {
  const inside = cidr.endsWith('/0') ? nfProto(family) : `${field} ${cidr}`;
  return except.length === 0 ? inside : `${inside} ${field} != { ${except.join(', ')} }`;
}

function rangesOf(ranges: readonly PortRange[]): string {
  const text = ({ from, to }: PortRange): string => (from === to ? `${from}` : `${from}-${to}`);
  return `meta l4proto . th dport { ${ranges.map((range) => `${range.protocol} . ${text(range)}`).join(', ')} } `;
}
