/** Admission of Ingress hosts in profile okd. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Ingress } from '../../../../src/api/generated/networking/v1.ts';
import { ingressHosts } from '../../../../src/apiserver/admission/network/ingress-hosts.ts';
import type { AdmissionRequest } from '../../../../src/apiserver/pipeline/admission.ts';

/** `verbs`: verbs that the user may use on routes/custom-host. */
async function admit(hosts: readonly string[], verbs: readonly string[], old?: readonly string[]): Promise<void> {
  const plugin = ingressHosts({
    authorize: (_user, action) => ({
      allowed: 'subresource' in action && action.subresource === 'custom-host' && verbs.includes(action.verb),
      reason: '',
    }),
  });
  const ingress = (all: readonly string[]): Ingress => ({
    metadata: { name: 'web', namespace: 'shop' },
    spec: { rules: all.map((host) => (host === '' ? {} : { host })) },
  });
  const request = {
    operation: old === undefined ? 'CREATE' : 'UPDATE',
    kind: { plural: 'ingresses', definition: { group: 'networking.k8s.io', kind: 'Ingress' } },
    subresource: '',
    namespace: 'shop',
    name: 'web',
    user: { name: 'dev', groups: [] },
    object: ingress(hosts),
    dryRun: false,
    warnings: [],
    ...(old === undefined ? {} : { old: ingress(old) }),
  } as unknown as AdmissionRequest;
  await plugin.validate?.(request);
}

test('setting a host of an Ingress requires create on routes/custom-host', async () => {
  await admit([''], []);
  await admit(['a.test'], ['create']);
  await assert.rejects(admit(['', 'a.test'], []), /spec.rules\[1\]: Forbidden: you do not have permission to set host/);
});

test('changing a host requires update on routes/custom-host', async () => {
  await admit(['a.test'], ['create'], ['a.test']);
  await admit(['b.test', 'a.test'], ['create'], ['a.test', 'b.test']);
  for (const [now, old] of [
    [['b.test'], ['a.test']],
    [['a.test', 'b.test'], ['a.test']],
    [['a.test'], ['a.test', 'b.test']],
  ] as const) {
    await assert.rejects(
      admit(now, ['create'], old),
      /ingresses.networking.k8s.io "web" is forbidden: cannot change hostname/,
    );
    await admit(now, ['update'], old);
  }
});
