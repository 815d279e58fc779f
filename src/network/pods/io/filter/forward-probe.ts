/**
 * Tests whether this host forwards packets of pods. A datagram is sent through one end of a veth pair, arrives at the
 * other end, and is forwarded to the first again. Counters before and after the chains of other programs show whether
 * it passed, and nft's trace names the rule that dropped it.
 */

import { spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Network, networkText } from '../../../../base/addresses/networks.ts';
import { decodeJson, list, object, optional, text } from '../../../../base/decode.ts';
import { ignore, messageOf } from '../../../../base/errors.ts';
import { gatewayText } from '../bridge/bridge-link.ts';
import { command } from '../command.ts';

export interface ForwardProbeOptions {
  readonly ip: string;
  readonly nft: string;
  /** Name of the packet filter table for the probe. */
  readonly table: string;
  /** Names of the two ends: packets are sent through the first and arrive at the second. */
  readonly links: readonly [string, string];
  readonly setKernel: (name: string, value: string) => Promise<void>;
}

export interface ForwardProbe {
  /**
   * Sends from the gateway of the range to `target`, an unassigned address of the range. Resolves with the fault;
   * undefined if the packet was forwarded or the result is inconclusive. Throws RuntimeError 'network'.
   */
  check(range: Network, target: string): Promise<string | undefined>;
  remove(): Promise<void>;
}

/** Destination port of the probe: the discard service. */
const PORT = 9;
/** TTL of the probe, which allows only one forwarding. */
const HOPS = 2;
const SETTLE_MS = 100;
const TRACE_MS = 1_000;
const MAX_RULES = 8 * 1024 * 1024;
const FIRST = -2_000;
const LAST = 2_000;

const LINKS = list(object({ address: optional(text) }));

export function createForwardProbe({ ip, nft, table, links, setKernel }: ForwardProbeOptions): ForwardProbe {
  const [out, back] = links;

  const setUp = async (range: Network, target: string): Promise<void> => {
    await command(ip, ['link', 'add', out, 'type', 'veth', 'peer', 'name', back]).catch((error: unknown) => {
      if (!/File exists/.test(messageOf(error))) throw error;
    });
    const listed = decodeJson(LINKS, await command(ip, ['-j', 'link', 'show', 'dev', back]), 'ip link');
    const mac = listed[0]?.address ?? '';
    for (const link of links) {
      await setKernel(`net/ipv6/conf/${link}/accept_ra`, '0');
      await setKernel(`net/ipv4/conf/${link}/rp_filter`, '0');
    }
    // The packet's source is an address of this host, which the kernel otherwise rejects on receipt.
    await setKernel(`net/ipv4/conf/${back}/accept_local`, '1');
    const width = range.family === 4 ? 32 : 128;
    await command(
      ip,
      ['-batch', '-'],
      [
        ...links.map((link) => `link set ${link} up`),
        `route replace ${target}/${width} dev ${out} src ${gatewayText(range)}`,
        `neigh replace ${target} lladdr ${mac} dev ${out} nud permanent`,
        '',
      ].join('\n'),
    );
  };

  const program = ({ trace }: { readonly trace: boolean }): string => {
    const chain = (name: string, priority: number, statement: string): string[] => [
      `  chain ${name} {`,
      `    type filter hook forward priority ${priority}; policy accept`,
      `    iifname "${back}" ${statement}`,
      '  }',
    ];
    return [
      `add table inet ${table}`,
      `delete table inet ${table}`,
      `table inet ${table} {`,
      ...chain('first', FIRST, trace ? 'meta nftrace set 1 counter' : 'counter'),
      ...chain('last', LAST, 'counter'),
      '}',
      '',
    ].join('\n');
  };

  /** Numbers of packets before and after the chains of other programs; undefined if the table does not exist. */
  const counted = async (): Promise<readonly number[] | undefined> => {
    const text = await command(nft, ['list', 'table', 'inet', table]).catch(() => '');
    const counts = [...text.matchAll(/counter packets (\d+)/g)].map(([, count]) => Number(count));
    return counts.length === 2 ? counts : undefined;
  };

  /** Whether a packet passes the chains of other programs; undefined if it did not arrive at the other end. */
  const passes = async (range: Network, target: string): Promise<boolean | undefined> => {
    const before = await counted();
    if (before === undefined) await command(nft, ['-f', '-'], program({ trace: false }));
    await sendOne(gatewayText(range), target);
    await sleep(SETTLE_MS);
    const [first = 0, last = 0] = (await counted()) ?? [];
    const [firstBefore = 0, lastBefore = 0] = before ?? [];
    return first > firstBefore ? last > lastBefore : undefined;
  };

  const traced = async (send: () => Promise<void>): Promise<string | undefined> => {
    await command(nft, ['-f', '-'], program({ trace: true }));
    const child = spawn(nft, ['monitor', 'trace'], { stdio: ['ignore', 'pipe', 'ignore'] });
    child.on('error', () => {});
    // A child that could not be started for lack of file descriptors has no streams.
    if (child.pid === undefined) return undefined;
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await sleep(TRACE_MS / 2);
    await send();
    await sleep(TRACE_MS);
    child.kill();
    return droppedBy(text);
  };

  return {
    async check(range, target) {
      let passed = await passes(range, target);
      if (passed === undefined) {
        await setUp(range, target);
        passed = await passes(range, target);
      }
      if (passed !== false) return undefined;
      const send = (): Promise<void> => sendOne(gatewayText(range), target);
      const rule =
        (await traced(send)) ??
        (await legacyRule(range.family, send)) ??
        'a rule outside nftables, such as of iptables-legacy';
      await command(nft, ['-f', '-'], program({ trace: false }));
      return `forwarded packets of pods are dropped by ${rule}; accept ${networkText(range)} there`;
    },
    async remove() {
      await command(ip, ['link', 'del', out]).catch(ignore('the link may not exist'));
      await command(nft, ['-f', '-'], `add table inet ${table}\ndelete table inet ${table}\n`).catch(
        ignore('the kernel may have no nftables; then there is no table'),
      );
    },
  };
}

/**
 * Rule of iptables-legacy that dropped the packets of `send`. Undefined if iptables-legacy is not in use or none of its
 * drop counters has risen.
 */
async function legacyRule(family: 4 | 6, send: () => Promise<void>): Promise<string | undefined> {
  const prefix = family === 4 ? 'ip' : 'ip6';
  // Listing a table that does not exist would create it, so stop if no table is in use.
  const tables = await readFile(`/proc/net/${prefix}_tables_names`, 'utf8').catch(() => '');
  if (tables.trim() === '') return undefined;
  const save = (): Promise<string> => command(`${prefix}tables-legacy-save`, ['-c'], '', MAX_RULES);
  try {
    const before = await save();
    await send();
    await sleep(SETTLE_MS);
    return legacyDroppedBy(before, await save());
  } catch {
    return undefined;
  }
}

/** Rule or policy that dropped packets between two outputs of `iptables-legacy-save -c`. */
export function legacyDroppedBy(before: string, after: string): string | undefined {
  const drops = (text: string): Map<string, number> => {
    const found = new Map<string, number>();
    let table = '';
    for (const line of text.split('\n')) {
      if (line.startsWith('*')) table = line.slice(1);
      const [, policyChain, policyCount] = /^:(\S+) DROP \[(\d+):\d+\]$/.exec(line) ?? [];
      const [, count, chain, rule] = /^\[(\d+):\d+\] -A (\S+) (.*-j (?:DROP|REJECT)\b.*)$/.exec(line) ?? [];
      const name = policyChain === undefined ? `chain ${chain}, rule "${rule}"` : `chain ${policyChain}, policy DROP`;
      const packets = policyCount ?? count;
      if (packets !== undefined) found.set(`iptables-legacy: table ${table}, ${name}`, Number(packets));
    }
    return found;
  };
  const earlier = drops(before);
  return [...drops(after)].find(([name, packets]) => packets > (earlier.get(name) ?? 0))?.[0];
}

/** Table, chain and rule or policy of the last verdict in the output of `nft monitor trace`. */
export function droppedBy(trace: string): string | undefined {
  let found: string | undefined;
  for (const line of trace.split('\n')) {
    const [, family = '', table = '', chain = '', rest = ''] = /^trace id \S+ (\S+) (\S+) (\S+) (.*)$/.exec(line) ?? [];
    const [, rule] = /^rule (.*) \(verdict (?:drop|reject)\)$/.exec(rest) ?? [];
    const text = rule?.replaceAll(/ packets \d+ bytes \d+/g, '');
    if (text !== undefined) found = `table ${family} ${table}, chain ${chain}, rule "${text}"`;
    else if (/^(?:verdict \S+ )?policy drop\s*$/.test(rest))
      found = `table ${family} ${table}, chain ${chain}, policy drop`;
  }
  return found;
}

function sendOne(source: string, target: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = createSocket(target.includes(':') ? 'udp6' : 'udp4');
    const end = (): void => {
      socket.close();
      resolve();
    };
    socket.once('error', end);
    socket.bind(0, source, () => {
      socket.setTTL(HOPS);
      socket.send(Buffer.alloc(1), PORT, target, end);
    });
  });
}
