import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createNetworkPolicies } from '../../../src/network/policies/network-policies.ts';
import { localInformers } from '../../client/local-informers.ts';

test('starts no container of a new pod before the policy rules of the pod are applied', async () => {
  const programs: string[] = [];
  const informers = localInformers();
  const policies = createNetworkPolicies({
    informers: informers.factory,
    packetFilter: {
      probe: async () => undefined,
      apply: async (program) => void programs.push(program),
      elements: async () => [],
      timedMembers: async () => new Map(),
      outline: async () => undefined,
      routeServices: async () => {},
    },
    log: silentLog,
    clock: systemClock,
    config: { nodeName: 'n1', table: 'test-policy' },
  });
  informers.set('namespaces', { metadata: { name: 'a' } });
  const pod = (name: string, nodeName: string, ip: string): void =>
    informers.set('pods', {
      metadata: { namespace: 'a', name, labels: { app: name } },
      spec: { nodeName, containers: [] },
      status: { podIPs: [{ ip }] },
    } as object);
  for (let index = 0; index < 500; index++) pod(`p${index}`, 'n1', `10.0.${index >> 8}.${index & 255}`);
  const from = Array.from({ length: 4000 }, (_, index) => ({
    namespaceSelector: {},
    podSelector: { matchLabels: { app: `p${index}` } },
  }));
  informers.set('networkpolicies', {
    metadata: { namespace: 'a', name: 'x' },
    spec: { podSelector: {}, ingress: [{ from }] },
  } as object);
  await policies.start([]);
  try {
    let turns = 0;
    while (programs.length === 0) {
      await setImmediate();
      if (turns++ !== 5) continue;
      // Planning of the first program takes many turns.
      assert.equal(programs.length, 0);
      await policies.admit('a', 'new', ['10.9.9.9']);
      break;
    }
    assert.ok(programs.length > 0, 'rules exist before the pod is admitted');
    assert.match(programs.join(''), /add element inet test-policy ingress4 \{[^}]*10\.9\.9\.9 : jump/);
  } finally {
    await policies.stop();
  }
});
