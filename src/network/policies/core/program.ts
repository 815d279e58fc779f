/** Renders the policy table as nft programs. */
import type { Steps } from '../../../base/concurrency/steps.ts';
import type { ElementSet } from './element-set.ts';
import type { TrackedSet } from './memberships.ts';

type MapName = 'ingress4' | 'ingress6' | 'egress4' | 'egress6' | 'self4' | 'self6';

export interface PolicyTable {
  readonly name: string;
  /** Rules by chain name, in the order in which they are evaluated. */
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** Elements of the verdict maps are `address : jump chain`. */
  readonly maps: Readonly<Record<MapName, ElementSet>>;
  readonly sets: readonly TrackedSet[];
}

const DECLARATIONS: Readonly<Record<MapName, string>> = {
  ingress4: 'map ingress4 { type ipv4_addr : verdict; }',
  ingress6: 'map ingress6 { type ipv6_addr : verdict; }',
  egress4: 'map egress4 { type ipv4_addr : verdict; }',
  egress6: 'map egress6 { type ipv6_addr : verdict; }',
  self4: 'set self4 { type ipv4_addr . ipv4_addr; }',
  self6: 'set self6 { type ipv6_addr . ipv6_addr; }',
};

/**
 * Base chains. A verdict `accept` ends only one base chain, so the ingress chain also evaluates packets that the egress
 * chain accepted.
 */
const BASE_CHAINS = [
  { direction: 'egress', side: 'saddr', priority: -6 },
  { direction: 'ingress', side: 'daddr', priority: -5 },
];

/**
 * Program that replaces the whole table in one transaction. Traffic of the host's own processes is not forwarded and
 * therefore passes: "traffic to and from the node where a Pod is running is always allowed". Destinations of services
 * are rewritten before the forward hook.
 */
export function* replaceTable(desired: PolicyTable): Steps<string> {
  const table = `inet ${desired.name}`;
  const lines = [`add table ${table}`, `delete table ${table}`, `add table ${table}`];
  for (const declaration of Object.values(DECLARATIONS)) lines.push(`add ${declaration.replace(' ', ` ${table} `)}`);
  lines.push(yield* policyProgram({ chains: new Map(), sets: new Set() }, desired));
  for (const { direction, side, priority } of BASE_CHAINS) {
    lines.push(
      `add chain ${table} ${direction} { type filter hook forward priority ${priority}; policy accept; }`,
      `add rule ${table} ${direction} ct state established,related accept`,
      `add rule ${table} ${direction} ip ${side} vmap @${direction}4`,
      `add rule ${table} ${direction} ip6 ${side} vmap @${direction}6`,
    );
  }
  return `${lines.filter((line) => line !== '').join('\n')}\n`;
}

/**
 * Program for the difference between two states; '' if there is none. Sets and chains are added before rules refer to
 * them, and removed after the rules that refer to them.
 */
export function* policyProgram(
  current: { readonly chains: PolicyTable['chains']; readonly sets: ReadonlySet<string> },
  desired: PolicyTable,
): Steps<string> {
  const table = `inet ${desired.name}`;
  const lines: string[] = [];
  const late: string[] = [];
  const change = (name: string, { added, removed }: ReturnType<ElementSet['take']>): void => {
    // An element of a verdict map is deleted by its key.
    const keys = removed.map((element) => element.split(' : ')[0]);
    if (removed.length > 0) late.push(`delete element ${table} ${name} { ${keys.join(', ')} }`);
    if (added.length > 0) late.push(`add element ${table} ${name} { ${added.join(', ')} }`);
  };
  for (const { name, type, content } of desired.sets) {
    if (!current.sets.has(name)) lines.push(`add set ${table} ${name} { type ${type}; }`);
    change(name, content.take());
    yield;
  }
  for (const [name, content] of Object.entries(desired.maps)) change(name, content.take());
  const changed: [string, readonly string[]][] = [];
  for (const [chain, rules] of desired.chains) {
    const old = current.chains.get(chain);
    if (old === undefined) lines.push(`add chain ${table} ${chain}`);
    else if (old === rules || sameRules(old, rules)) continue;
    else lines.push(`flush chain ${table} ${chain}`);
    changed.push([chain, rules]);
    yield;
  }
  for (const [chain, rules] of changed) {
    for (const rule of rules) lines.push(`add rule ${table} ${chain} ${rule}`);
    yield;
  }
  lines.push(...late);
  const gone = [...current.chains.keys()].filter((chain) => !desired.chains.has(chain));
  for (const chain of gone) lines.push(`flush chain ${table} ${chain}`);
  for (const chain of gone) lines.push(`delete chain ${table} ${chain}`);
  const kept = new Set(desired.sets.map(({ name }) => name));
  for (const set of current.sets) if (!kept.has(set)) lines.push(`delete set ${table} ${set}`);
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}

function sameRules(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((rule, index) => rule === right[index]);
}
