/** Reads firewall rules with nft(8), and determines the services that manage them. */
import { join } from 'node:path';
import { CodedError } from '../../../base/errors.ts';
import type { FirewallChain, FirewallFacts, FirewallRule, FirewallStep } from '../../port.ts';
import { entriesOf, runProgram, textOf } from './read.ts';

const NFT_MS = 5000;
const MAX_CHAINS = 2000;
const MAX_RULES = 500;
const MAX_STEPS = 5000;
/** Maximum depth of jumps in nftables. */
const MAX_JUMPS = 16;

export async function readFirewall(machine: string): Promise<FirewallFacts> {
  const { code, stdout, stderr } = await runProgram('nft', ['-t', '-a', 'list', 'ruleset'], NFT_MS);
  if (code !== 0) throw new CodedError('failed', `nft list ruleset: ${stderr.trim().split('\n')[0]}`);
  return { chains: baseChains(stdout), services: await servicesOf(machine) };
}

/** Active services that set their own rules, determined by their configuration and runtime files. */
async function servicesOf(machine: string): Promise<string[]> {
  const [ufw, run] = await Promise.all([textOf(join(machine, 'etc/ufw/ufw.conf')), entriesOf(join(machine, 'run'))]);
  return [
    ...(/^ENABLED=yes/m.test(ufw) ? ['ufw'] : []),
    ...(run.includes('firewalld') || run.includes('firewalld.pid') ? ['firewalld'] : []),
    ...(run.includes('docker.pid') || run.includes('docker.sock') ? ['docker'] : []),
  ];
}

interface ParsedChain {
  readonly family: string;
  readonly table: string;
  readonly name: string;
  hook: string | undefined;
  policy: 'accept' | 'drop';
  readonly rules: { readonly text: string; readonly handle: number }[];
}

/** Parses the output of `nft -t -a list ruleset`. Returns the base chains of the hooks forward and input. */
export function baseChains(text: string): FirewallChain[] {
  const chains = parse(text);
  return chains.flatMap((chain) => {
    const { family, table, name, hook, policy } = chain;
    if (hook !== 'forward' && hook !== 'input') return [];
    const reached = reachable(chain, chains);
    const accepts = reached.flatMap(({ rules }) =>
      rules.flatMap((rule) => (/\b(?:accept|jump|goto)\b/.test(rule.text) ? [rule.text] : [])),
    );
    return [
      {
        family,
        table,
        name,
        hook,
        policy,
        drops: dropsOf(reached),
        accepts: accepts.slice(0, MAX_RULES),
        steps: stepsOf(chain, chains),
      },
    ];
  });
}

function dropsOf(chains: readonly ParsedChain[]): FirewallRule[] {
  const found = chains.flatMap(({ name, rules }) =>
    rules.flatMap(({ text, handle }) =>
      /(?:^|\s)(?:drop|reject(?: with .*)?)$/.test(text)
        ? [{ chain: name, handle, text, conditional: !/^(?:drop|reject(?: with .*)?)$/.test(plainOf(text)) }]
        : [],
    ),
  );
  return found.slice(0, MAX_RULES);
}

/** Rule without the statements that do not restrict it to some packets: counter, log and limit. */
const plainOf = (text: string): string =>
  text
    .replace(/counter packets \d+ bytes \d+/, '')
    .replace(/log (?:prefix "[^"]*" ?)?(?:level \w+ ?)?/, '')
    .replace(/limit rate \S+(?: burst \d+ \w+)?/, '')
    .trim();

function stepsOf(from: ParsedChain, all: readonly ParsedChain[]): FirewallStep[] {
  const byName = chainsOfTable(from, all);
  const steps: FirewallStep[] = [];
  const walk = (chain: ParsedChain, before: string, depth: number): void => {
    for (const { text, handle } of chain.rules)
      for (const single of withoutMaps(plainOf(text))) {
        if (steps.length >= MAX_STEPS) return;
        const [, own = '', verb = '', target = ''] =
          /^(.*?)\s*(?<=^|\s)(accept|drop|reject|return|jump|goto)(?:\s+(\S+).*)?$/.exec(single) ?? [];
        const conditions = `${before} ${own}`.trim();
        const next = byName.get(target);
        if (verb === 'accept' || verb === 'return')
          steps.push({ chain: chain.name, handle, text, verdict: verb, conditions });
        else if (verb === 'drop' || verb === 'reject')
          steps.push({ chain: chain.name, handle, text, verdict: 'drop', conditions });
        else if (next !== undefined && depth < MAX_JUMPS) walk(next, conditions, depth + 1);
      }
  };
  walk(from, '', 0);
  return steps;
}

/** Replaces a rule with a verdict map, such as `tcp dport vmap { 22 : accept, 80 : drop }`, by a rule per element. */
function withoutMaps(text: string): string[] {
  const [, before = '', elements] = /^(.*)\bvmap \{(.*)\}$/.exec(text) ?? [];
  return elements === undefined
    ? [text]
    : elements.split(',').map((element) => `${before}${element.replace(/ : (?=\w+( \S+)?\s*$)/, ' ').trim()}`);
}

const chainsOfTable = ({ family, table }: ParsedChain, all: readonly ParsedChain[]): Map<string, ParsedChain> =>
  new Map(all.filter((each) => each.family === family && each.table === table).map((each) => [each.name, each]));

/** The chain and all chains that it reaches by jumps. */
function reachable(from: ParsedChain, all: readonly ParsedChain[]): ParsedChain[] {
  const byName = chainsOfTable(from, all);
  const found = new Set([from]);
  for (const chain of found)
    for (const { text } of chain.rules)
      for (const [, name = ''] of text.matchAll(/(?:jump|goto) (\S+)/g)) {
        const target = byName.get(name.replace(/[,}]$/, ''));
        if (target !== undefined) found.add(target);
      }
  return [...found];
}

function parse(text: string): ParsedChain[] {
  const chains: ParsedChain[] = [];
  let table: { family: string; name: string } | undefined;
  let chain: ParsedChain | undefined;
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    const opened = /^table (\S+) (\S+) \{/.exec(trimmed);
    const started = /^chain (\S+) \{/.exec(trimmed);
    if (opened !== null) table = { family: opened[1] ?? '', name: opened[2] ?? '' };
    else if (started !== null && table !== undefined && chains.length < MAX_CHAINS) {
      const { family, name } = table;
      chain = { family, table: name, name: started[1] ?? '', hook: undefined, policy: 'accept', rules: [] };
      chains.push(chain);
    } else if (trimmed === '}') chain = undefined;
    else if (chain !== undefined) addLine(chain, trimmed);
  }
  return chains;
}

function addLine(chain: ParsedChain, line: string): void {
  const hook = /^type \S+ hook (\w+) .*?(?:policy (accept|drop);)?$/.exec(line);
  if (hook !== null) {
    chain.hook = hook[1];
    chain.policy = hook[2] === 'drop' ? 'drop' : 'accept';
    return;
  }
  const [, text, handle] = /^(.*?)(?: comment "[^"]*")? # handle (\d+)$/.exec(line) ?? [];
  if (text !== undefined && handle !== undefined) chain.rules.push({ text, handle: Number(handle) });
}
