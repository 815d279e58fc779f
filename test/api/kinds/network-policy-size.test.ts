import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkPolicy } from '../../../src/api/generated/networking/v1.ts';
import { networkPolicies } from '../../../src/api/kinds/network/networkpolicies/index.ts';

test('rejects a network policy with more rules than a node can apply', () => {
  const errors = (peers: number, ports: number): string[] => {
    const policy: NetworkPolicy = {
      metadata: { namespace: 'a', name: 'x' },
      spec: {
        podSelector: {},
        ingress: [
          {
            from: Array.from({ length: peers }, () => ({ ipBlock: { cidr: '192.0.2.1/32' } })),
            ports: Array.from({ length: ports }, () => ({ port: 'web' })),
          },
        ],
      },
    };
    return (networkPolicies.strategy.validate?.(policy) ?? []).map(({ field }) => field);
  };
  assert.deepEqual(errors(19_000, 0), []);
  assert.deepEqual(errors(20_001, 0), ['spec']);
  // Each named port needs a rule for each peer.
  assert.deepEqual(errors(100, 199), ['spec']);
});
