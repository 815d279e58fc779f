/** Inputs with the responses of upstream's current API server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, created, kindNamed, texts } from './samples.ts';

test('warns about CIDRs that are not in canonical form', () => {
  const policy = created('NetworkPolicy', (each) => {
    each['spec'] = {
      podSelector: {},
      ingress: [{ from: [{ ipBlock: { cidr: '10.0.0.1/8', except: ['10.1.0.0/16', '10.2.0.1/16'] } }] }],
      egress: [{ to: [{ podSelector: {} }, { ipBlock: { cidr: '2001:DB8::/64' } }] }],
    };
  });
  const { strategy } = kindNamed('NetworkPolicy');
  assert.deepEqual(texts(strategy.validate?.(policy)), []);
  assert.deepEqual(strategy.warnings?.(policy, undefined), [
    'spec.ingress[0].from[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)',
    'spec.ingress[0].from[0].ipBlock.except[1]: CIDR value "10.2.0.1/16" is ambiguous in this context (should be "10.2.0.0/16" or "10.2.0.1/32"?)',
    'spec.egress[0].to[1].ipBlock.cidr: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")',
  ]);
});

test('rejects duplicate node addresses and two pod ranges of the same IP family', () => {
  const node = created('Node');
  const { strategy, statusStrategy } = kindNamed('Node');
  const address = { type: 'InternalIP', address: '10.0.0.1' };
  at(node, 'status')['addresses'] = [address, { ...address, type: 'ExternalIP' }, address];
  assert.deepEqual(texts(statusStrategy?.validateUpdate?.(node, node)), [
    'status.addresses[2]: Duplicate value: {"type":"InternalIP","address":"10.0.0.1"}',
  ]);
  const ranges = (...podCIDRs: string[]): number => {
    const each = created('Node', (given) => {
      given['spec'] = { podCIDRs };
    });
    return texts(strategy.validate?.(each)).filter((text) => text.endsWith('one CIDR for each IP family')).length;
  };
  assert.deepEqual(
    [ranges('10.0.0.0/24', 'fd00::/64'), ranges('10.0.0.0/24', '10.0.1.0/24'), ranges('10.0.0.0/24')],
    [0, 1, 0],
  );
});

test('warns about deprecated node labels in runtime classes', () => {
  const named = created('RuntimeClass', (each) => {
    each['scheduling'] = { nodeSelector: { 'beta.kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' } };
  });
  assert.deepEqual(kindNamed('RuntimeClass').strategy.warnings?.(named, undefined), [
    'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead',
  ]);
});
