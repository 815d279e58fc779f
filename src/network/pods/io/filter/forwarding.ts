/**
 * Accepts packets of pods in the chains that Docker and ufw reserve for the administrator, and reports rules that still
 * drop them.
 */
import { isIP } from 'node:net';
import type { Network } from '../../../../base/addresses/networks.ts';
import { command } from '../command.ts';
import { createForwardProbe, type ForwardProbeOptions } from './forward-probe.ts';

/**
 * Chains for administrators' rules. The base chains of Docker and ufw drop unmatched packets and never change these
 * chains.
 */
const CHAINS: readonly (readonly ['ip' | 'ip6', string])[] = [
  ['ip', 'DOCKER-USER'],
  ['ip6', 'DOCKER-USER'],
  ['ip', 'ufw-before-forward'],
  ['ip6', 'ufw6-before-forward'],
];
const TABLE = 'filter';
const MAX_LISTING = 16 * 1024 * 1024;

export interface ForwardingOptions extends ForwardProbeOptions {
  readonly clusterCidrs: readonly string[];
}

export interface Forwarding {
  /**
   * `reserve` returns an unassigned address of a range. Resolves with the fault of the first family that has one.
   * Throws RuntimeError 'network'.
   */
  check(ranges: readonly Network[], reserve: (range: Network) => string | undefined): Promise<string | undefined>;
  remove(): Promise<void>;
}

export function createForwarding(options: ForwardingOptions): Forwarding {
  const { nft, table, clusterCidrs } = options;
  const probe = createForwardProbe(options);
  const targets = new Map<Network, string | undefined>();
  return {
    async check(ranges, reserve) {
      await acceptInChains(nft, table, clusterCidrs);
      for (const range of ranges) {
        if (!targets.has(range)) targets.set(range, reserve(range));
        const target = targets.get(range);
        const fault = target === undefined ? undefined : await probe.check(range, target);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    async remove() {
      targets.clear();
      await probe.remove();
      await removeAcceptRules(nft, [table]);
    },
  };
}

const commentOf = (table: string): string => `comment "${table}"`;

/** Adds accept rules to the chains. The rules have iptables' format, because iptables lists these chains too. */
async function acceptInChains(nft: string, table: string, clusterCidrs: readonly string[]): Promise<void> {
  for (const [family, chain] of await presentChains(nft)) {
    const text = await command(nft, ['list', 'chain', family, TABLE, chain], '', MAX_LISTING);
    const version = family === 'ip' ? 4 : 6;
    const lines = clusterCidrs
      .filter((cidr) => isIP(cidr.split('/')[0] ?? '') === version)
      .flatMap((cidr) => [`${family} saddr ${cidr}`, `${family} daddr ${cidr}`])
      .filter((match) => !text.split('\n').some((line) => line.includes(match) && line.includes(commentOf(table))))
      .map((match) => `insert rule ${family} ${TABLE} ${chain} ${match} counter accept ${commentOf(table)}`);
    if (lines.length > 0) await command(nft, ['-f', '-'], `${lines.join('\n')}\n`);
  }
}

async function presentChains(nft: string): Promise<(readonly ['ip' | 'ip6', string])[]> {
  const text = await command(nft, ['list', 'chains'], '', MAX_LISTING).catch(() => '');
  const found = new Set<string>();
  let table = '';
  for (const line of text.split('\n')) {
    table = /^table (\S+ \S+) \{/.exec(line)?.[1] ?? table;
    const chain = /^\tchain (\S+) \{/.exec(line)?.[1];
    if (chain !== undefined) found.add(`${table} ${chain}`);
  }
  return CHAINS.filter(([family, chain]) => found.has(`${family} ${TABLE} ${chain}`));
}

/** Removes the rules that instances with these tables have added to chains of other programs. */
export async function removeAcceptRules(nft: string, tables: readonly string[]): Promise<void> {
  for (const [family, chain] of await presentChains(nft)) {
    const text = await command(nft, ['-a', 'list', 'chain', family, TABLE, chain], '', MAX_LISTING);
    for (const line of text.split('\n')) {
      const handle = /# handle (\d+)$/.exec(line)?.[1];
      if (handle === undefined || !tables.some((table) => line.includes(commentOf(table)))) continue;
      await command(nft, ['delete', 'rule', family, TABLE, chain, 'handle', handle]);
    }
  }
}
