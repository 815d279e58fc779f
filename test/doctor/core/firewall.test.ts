import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CHECKS, diagnose } from '../../../src/doctor/core/index.ts';
import { baseChains } from '../../../src/doctor/io/machine/firewall.ts';
import { gathered } from '../facts.ts';

const WANTED = [
  { protocol: 'tcp', port: 2380, what: 'the store', field: 'ports.store' },
  { protocol: 'udp', port: 7946, what: 'gossip', field: 'ports.gossip' },
] as const;

/** Findings about a ruleset whose input chain has `rules`. `more` are further chains. */
function findings(policy: 'accept' | 'drop', rules: readonly string[], more: Readonly<Record<string, string[]>> = {}) {
  const listed = (texts: readonly string[]): string =>
    texts.map((text, index) => `\t\t${text} # handle ${index + 10}\n`).join('');
  const others = Object.entries(more).map(([name, texts]) => `\tchain ${name} { # handle 2\n${listed(texts)}\t}\n`);
  const hook = `\t\ttype filter hook input priority filter; policy ${policy};\n`;
  const text = `table inet filter { # handle 1\n\tchain input { # handle 1\n${hook}${listed(rules)}\t}\n${others.join('')}}\n`;
  const facts = gathered({
    firewall: { chains: baseChains(text), services: [] },
    ports: { wanted: WANTED, listeners: [] },
  });
  const [result] = diagnose(
    CHECKS.filter(({ id }) => id === 'firewall-input'),
    facts,
  );
  return result?.findings.flatMap(({ result: kind, evidence }) => (kind === 'ok' ? [] : [evidence])) ?? [];
}

const BOTH = ['tcp dport 2380 accept', 'udp dport 7946 accept'];

describe('doctor check of input chains of the firewall', () => {
  it('the firewall check finds no fault if the ports are accepted', () => {
    const good: readonly string[][] = [
      BOTH,
      ['tcp dport 2379-2380 accept', 'udp dport { 53, 7900-7999 } accept'],
      ['ip saddr 10.0.0.0/8 accept'],
      ['ip saddr 10.0.0.0/8 tcp dport 2380 accept', 'tcp dport 2380 drop', 'udp dport 7946 accept'],
      ['tcp dport != 22 counter packets 5 bytes 300 accept', 'meta l4proto udp accept'],
      ['meta l4proto { tcp, udp } th dport { 2380, 7946 } ct state { new, untracked } accept'],
      ['tcp dport vmap { 22 : drop, 2380 : accept }', 'udp dport vmap { 7946 : jump gossip }'],
      ['ct state vmap { invalid : drop, established : accept, new : jump all }'],
    ];
    const more = { gossip: ['accept'], all: ['iifname "eth0" accept'] };
    for (const rules of good) assert.deepEqual(findings('drop', rules, more), [], rules.join('; '));
    assert.deepEqual(findings('accept', ['tcp dport 2300-2379 drop', 'ip saddr 192.0.2.1 drop']), []);
    assert.deepEqual(findings('accept', ['jump ban'], { ban: ['ip saddr 10.0.0.0/8 return', 'drop'] }), []);
    assert.deepEqual(findings('accept', ['tcp dport 22 jump ssh'], { ssh: ['drop'] }), []);
  });

  it('the firewall check names the ports that are not accepted', () => {
    const both = /policy drop and accepts no packets to 2380\/tcp \(the store\), 7946\/udp \(gossip\)$/;
    const bad: readonly string[][] = [
      ['tcp dport 22 counter packets 2380 bytes 7946 accept'],
      ['udp dport 2380 accept', 'tcp dport 7946 accept'],
      ['tcp dport 2300-2379 accept', 'udp sport 7946 accept'],
      ['iifname "lo" accept', 'iifname "docker0" accept', 'ct state { established, related } accept'],
      ['ip saddr 127.0.0.0/8 accept', 'meta l4proto { icmp, ipv6-icmp } accept', 'ip daddr 224.0.0.0/4 accept'],
      ['tcp dport 22 jump ssh', 'ct state vmap { established : accept, related : accept, invalid : drop }'],
    ];
    for (const rules of bad) {
      const [found = '', ...others] = findings('drop', rules, { ssh: ['accept'] });
      assert.match(found, both, rules.join('; '));
      assert.deepEqual(others, []);
    }
    assert.match(findings('accept', [...BOTH.slice(0, 1), 'counter packets 1 bytes 2 drop'])[0] ?? '', /7946\/udp/);
  });

  it('the firewall check names the rule that drops packets to a port', () => {
    const [found = '', ...others] = findings('accept', ['tcp dport { 80, 2000-3000 } drop']);
    assert.match(found, /^the rule "tcp dport .*" in chain inet filter input drops packets to 2380\/tcp/);
    assert.deepEqual(others, []);
    assert.match(findings('accept', ['udp dport 7946 jump no'], { no: ['reject'] })[0] ?? '', /rule "reject" .*7946/);
  });
});
