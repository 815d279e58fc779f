/** Checks firewall rules of other programs, and names the rules that block pods or components. */
import type { Finding, FirewallChain, FirewallRule, HostFacts, PortFacts } from '../port.ts';
import { check, error, orOk, shell } from './check.ts';

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

const deletion = ({ family, table }: FirewallChain, { chain, handle }: FirewallRule): string =>
  `nft delete rule ${shell(family)} ${shell(table)} ${shell(chain)} handle ${handle}`;

const incoming = check({
  id: 'firewall-input',
  title: 'no firewall blocks the ports of the components',
  group: 'network',
  explanation: 'Chains of the hook input that drop by policy or by a rule accept the ports that other hosts use.',
  needs: ['firewall', 'ports'],
  run: ({ firewall: { chains, services }, ports: { wanted } }) => {
    const inputs = chains.filter(({ hook, table }) => hook === 'input' && !OWN.test(table));
    return orOk(
      inputs.flatMap((chain) => [...closedPorts(chain, services, wanted), ...droppedPorts(chain, wanted)]),
      `${inputs.length} chains`,
    );
  },
});

const names = (text: string, port: number): boolean => new RegExp(`\\b${port}\\b`).test(text);

/** Finding for the ports that no rule accepts, if the chain drops all other packets. */
function closedPorts(chain: FirewallChain, services: readonly string[], wanted: PortFacts['wanted']): Finding[] {
  const all = chain.drops.find(({ conditional }) => !conditional);
  if (chain.policy === 'accept' && all === undefined) return [];
  const closed = wanted.filter(({ port }) => !chain.accepts.some((text) => names(text, port)));
  if (closed.length === 0) return [];
  const list = closed.map(({ port, protocol, what }) => `${port}/${protocol} (${what})`).join(', ');
  const why = all === undefined ? 'has the policy drop' : `has the rule "${all.text}"`;
  const fix = inputFix(chain, managerOf(chain, services), closed);
  return [error(`chain ${place(chain)} ${why} and accepts no packets to ${list}`, fix)];
}

/** Findings for rules that drop packets to a port of a component. */
function droppedPorts(chain: FirewallChain, wanted: PortFacts['wanted']): Finding[] {
  return chain.drops.flatMap((rule) => {
    const port = wanted.find((each) => /\bdport\b/.test(rule.text) && names(rule.text, each.port));
    if (port === undefined) return [];
    const evidence = `the rule "${rule.text}" in chain ${chain.family} ${chain.table} ${rule.chain} drops packets to ${port.what}`;
    return [error(evidence, deletion(chain, rule))];
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
