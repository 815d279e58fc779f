/** Renders the rules of one policy for nft. */
import type { Steps } from '../../../base/concurrency/steps.ts';
import {
  type Block,
  type CompiledPolicy,
  compileRule,
  type Direction,
  type Family,
  type NamedPort,
  type Peer,
  type PodSelection,
  type PortRange,
} from './compile.ts';

/** Names of the sets that rules refer to. */
export interface SetNames {
  pods(selection: PodSelection, family: Family): string;
  port(port: NamedPort, family: Family): string;
}

const FAMILIES: readonly Family[] = [4, 6];
const ip = (family: Family): string => (family === 4 ? 'ip' : 'ip6');

/**
 * Returns the rules of a policy for one direction. Each rule accepts packets; other packets return to the pod's chain.
 */
export function* ruleSteps(policy: CompiledPolicy, direction: Direction, names: SetNames): Steps<string[]> {
  const side = direction === 'ingress' ? 'saddr' : 'daddr';
  const lines: string[] = [];
  for (const source of policy[direction] ?? []) {
    const { peers, ports } = yield* compileRule(source, policy.namespace);
    for (const family of FAMILIES) {
      const from = peers === undefined ? [nfProto(family)] : yield* peersOf(peers, side, family, names);
      const to =
        ports === undefined
          ? ['']
          : [
              ...(ports.ranges.length === 0 ? [] : [rangesOf(ports.ranges)]),
              // A named port is a port of the destination: of the isolated pod for ingress, of the peer for egress.
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

function* peersOf(peers: readonly Peer[], side: string, family: Family, names: SetNames): Steps<string[]> {
  const field = `${ip(family)} ${side}`;
  /**
   * Blocks that share one rule, so that the cost of a packet does not grow with their number. nft merges overlapping
   * blocks.
   */
  const plain: string[] = [];
  const rules: string[] = [];
  for (const peer of peers) {
    yield;
    if (peer.kind === 'pods') rules.push(`${field} @${names.pods(peer.selection, family)}`);
    else if (peer.block.family !== family) continue;
    else if (peer.block.except.length > 0 || peer.block.cidr.endsWith('/0')) rules.push(blockOf(peer.block, field));
    else plain.push(peer.block.cidr);
  }
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
