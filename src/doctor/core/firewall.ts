/** Checks firewall rules of other programs, and names the rules that block pods or components. */
import type { Finding, FirewallChain, FirewallRule, FirewallStep, HostFacts, PortFacts } from '../port.ts';
import { check, error, orOk, shell } from './check.ts';
import { matchOf } from './firewall-match.ts';

/** Tables that are not checked: those of this product, whose rules concern only its own addresses. */
const OWN = /^(?:hyperedge|he-)/;

const place = ({ family, table, name }: FirewallChain): string => `${family} ${table} ${name}`;

/** Program that manages the chain, derived from its table and rules; undefined if unknown. */
function managerOf({ table, drops }: FirewallChain, services: readonly string[]): string | undefined {
  if (table === 'firewalld') return 'firewalld';
  if (services.includes('ufw') && table === 'filter') return 'ufw';
  if (services.includes('docker') || drops.some(({ chain }) => chain.startsWith('DOCKER'))) return 'docker';
  return undefined;
}

const forwarding = check({
  id: 'firewall-forward',
  title: 'no other firewall drops packets of pods',
  group: 'network',
  explanation:
    'No foreign chain of the hook forward has the policy drop (as Docker and ufw set it) or a rule that drops all.',
  needs: ['firewall', 'host'],
  run: ({ firewall: { chains, services }, host }) => {
    const findings = chains
      .filter(({ hook, table }) => hook === 'forward' && !OWN.test(table))
      .flatMap((chain) => blocked(chain, services, host));
    return orOk(findings, `${chains.filter(({ hook }) => hook === 'forward').length} chains`);
  },
});

function blocked(
  chain: FirewallChain,
  services: readonly string[],
  { bridge, clusterCidrs }: Pick<HostFacts, 'bridge' | 'clusterCidrs'>,
): Finding[] {
  const link = shell(bridge);
  const iptables = chain.table === 'filter' && chain.name === 'FORWARD';
  const accepted = chain.accepts.some((text) => text.includes(bridge));
  if (chain.policy === 'drop' && !accepted) {
    const manager = managerOf(chain, services);
    const by = manager === undefined ? '' : `, set by ${manager}`;
    return [
      error(
        `chain ${place(chain)} has the policy drop${by}: it drops packets of pods`,
        policyFix(chain, manager, iptables, link),
      ),
    ];
  }
  const ofPods = [bridge, ...clusterCidrs];
  return chain.drops
    .filter(({ text, conditional }) => (conditional ? ofPods.some((each) => text.includes(each)) : !accepted))
    .map((rule) =>
      error(
        `the rule "${rule.text}" in chain ${chain.family} ${chain.table} ${rule.chain} drops packets of pods`,
        deletion(chain, rule),
      ),
    );
}

function policyFix(chain: FirewallChain, manager: string | undefined, iptables: boolean, link: string): string {
  if (manager === 'ufw')
    return `sed -i 's/^DEFAULT_FORWARD_POLICY=.*/DEFAULT_FORWARD_POLICY="ACCEPT"/' /etc/default/ufw && ufw reload`;
  if (manager === 'firewalld')
    return `firewall-cmd --permanent --zone=trusted --add-interface=${link} && firewall-cmd --reload`;
  if (manager === 'docker')
    return `iptables -I DOCKER-USER -i ${link} -j ACCEPT && iptables -I DOCKER-USER -o ${link} -j ACCEPT`;
  if (iptables) return `iptables -I FORWARD -i ${link} -j ACCEPT && iptables -I FORWARD -o ${link} -j ACCEPT`;
  return `nft insert rule ${place(chain)} iifname ${link} accept && nft insert rule ${place(chain)} oifname ${link} accept`;
}

const deletion = (
  { family, table }: FirewallChain,
  { chain, handle }: Pick<FirewallRule, 'chain' | 'handle'>,
): string => `nft delete rule ${shell(family)} ${shell(table)} ${shell(chain)} handle ${handle}`;

const incoming = check({
  id: 'firewall-input',
  title: 'no firewall blocks the ports of the components',
  group: 'network',
  explanation: 'Chains of the hook input that drop by policy or by a rule accept the ports that other hosts use.',
  needs: ['firewall', 'ports', 'host'],
  run: ({ firewall: { chains, services }, ports: { wanted }, host: { bridge } }) => {
    const inputs = chains.filter(({ hook, table }) => hook === 'input' && !OWN.test(table));
    return orOk(
      inputs.flatMap((chain) => closedPorts(chain, services, wanted, bridge)),
      `${inputs.length} chains`,
    );
  },
});

type Wanted = PortFacts['wanted'][number];

/**
 * Decision of the chain about packets to a port: `accept`, the rule that drops them, or `policy`. A rule whose
 * conditions are only partly known counts as accepting, but not as dropping.
 */
function decisionOf(
  { steps, policy }: FirewallChain,
  wanted: Wanted,
  bridge: string,
): FirewallStep | 'accept' | 'policy' {
  const left = new Set<string>();
  for (const step of steps) {
    const match = matchOf(step.conditions, wanted, bridge);
    if (match === 'no') continue;
    if (step.verdict === 'accept') return 'accept';
    if (step.verdict === 'return') left.add(step.chain);
    else if (match === 'yes' && !left.has(step.chain)) return step;
  }
  return policy === 'drop' ? 'policy' : 'accept';
}

/** Findings for the ports whose packets the chain drops: one for each rule, and one for the policy. */
function closedPorts(
  chain: FirewallChain,
  services: readonly string[],
  wanted: readonly Wanted[],
  bridge: string,
): Finding[] {
  const byDecision = Map.groupBy(wanted, (port) => decisionOf(chain, port, bridge));
  return [...byDecision].flatMap(([decision, ports]) => {
    if (decision === 'accept') return [];
    const list = ports.map(({ port, protocol, what }) => `${port}/${protocol} (${what})`).join(', ');
    if (decision !== 'policy' && /\bdport\b/.test(decision.conditions)) {
      const { text, chain: name } = decision;
      const evidence = `the rule "${text}" in chain ${chain.family} ${chain.table} ${name} drops packets to ${list}`;
      return [error(evidence, deletion(chain, decision))];
    }
    const why = decision === 'policy' ? 'has the policy drop' : `has the rule "${decision.text}"`;
    const fix = inputFix(chain, managerOf(chain, services), ports);
    return [error(`chain ${place(chain)} ${why} and accepts no packets to ${list}`, fix)];
  });
}

function inputFix(
  chain: FirewallChain,
  manager: string | undefined,
  closed: readonly { readonly port: number; readonly protocol: string }[],
): string {
  if (manager === 'ufw') return closed.map(({ port, protocol }) => `ufw allow ${port}/${protocol}`).join(' && ');
  if (manager === 'firewalld')
    return `firewall-cmd --permanent ${closed.map(({ port, protocol }) => `--add-port=${port}/${protocol}`).join(' ')} && firewall-cmd --reload`;
  return closed
    .map(({ port, protocol }) => `nft insert rule ${place(chain)} ${protocol} dport ${port} accept`)
    .join(' && ');
}

export const firewallChecks = [forwarding, incoming];
