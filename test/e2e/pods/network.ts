/** Network policies with real pods. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NetworkPolicySpec } from '../../../src/api/generated/networking/v1.ts';
import { eventually } from '../harness.ts';
import { type PodLab, pod, shell } from './lab.ts';

const LIMIT = { timeout: 60_000 };
const policy = (name: string, spec: NetworkPolicySpec) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name },
  spec,
});

export function networkTests(lab: () => PodLab): void {
  test('enforces network policies for running pods, and for new pods from the first packet on', LIMIT, async () => {
    await lab().apply(
      pod('np-server', {
        containers: [shell('while true; do echo hello | nc -l -p 8080; done')],
      }),
      pod('np-client', { containers: [shell('sleep 100000')] }),
    );
    const address = (await lab().ready('np-server')).status?.podIP ?? '';
    await lab().ready('np-client');
    const ask = `nc -w 1 ${address} 8080 </dev/null 2>/dev/null || echo refused`;
    const answer = (): Promise<string> => lab().exec('np-client', '/bin/sh', '-c', ask);
    await eventually('the server answers', 10_000, async () => ((await answer()) === 'hello\n' ? true : undefined));
    await lab().apply(
      policy('np-deny', { podSelector: { matchLabels: { app: 'np-server' } }, policyTypes: ['Ingress'] }),
      policy('np-silent', { podSelector: { matchLabels: { app: 'np-first' } }, policyTypes: ['Egress'] }),
    );
    await lab().kubectl('label', 'pod', 'np-server', 'app=np-server', '--overwrite');
    await eventually('the server is isolated', 3_000, async () =>
      (await answer()) === 'refused\n' ? true : undefined,
    );
    await lab().kubectl('label', 'pod', 'np-client', 'role=friend');
    await lab().apply(
      policy('np-allow', {
        podSelector: { matchLabels: { app: 'np-server' } },
        ingress: [{ from: [{ podSelector: { matchLabels: { role: 'friend' } } }], ports: [{ port: 8080 }] }],
      }),
    );
    await eventually('the client is allowed', 3_000, async () => ((await answer()) === 'hello\n' ? true : undefined));
    const labels = { role: 'friend', app: 'np-first' };
    await lab().apply(pod('np-first', { restartPolicy: 'Never', containers: [shell(ask)] }, { labels }));
    await lab().over('np-first');
    assert.equal(await lab().logs('np-first'), 'refused\n');
    await lab().remove('np-first', 'np-client', 'np-server');
    await lab().kubectl('delete', 'networkpolicy', 'np-deny', 'np-silent', 'np-allow');
  });
}
