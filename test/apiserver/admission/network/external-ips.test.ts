/** Admission of external IPs of services. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { denyServiceExternalIps } from '../../../../src/apiserver/admission/network/external-ips.ts';
import type { AdmissionRequest } from '../../../../src/apiserver/pipeline/admission.ts';

async function update(now: readonly string[], old: readonly string[]): Promise<void> {
  const service = (externalIPs: readonly string[]) => ({
    metadata: { name: 'web', namespace: 'n' },
    spec: { externalIPs },
  });
  await denyServiceExternalIps.validate?.({
    operation: 'UPDATE',
    kind: { plural: 'services', definition: { group: '', kind: 'Service' } },
    subresource: '',
    namespace: 'n',
    name: 'web',
    object: service(now),
    old: service(old),
  } as unknown as AdmissionRequest);
}

test('an update may keep and remove external IPs of a service, but not add external IPs', async () => {
  await update(['192.0.2.2', '192.0.2.1'], ['192.0.2.1', '192.0.2.2', '192.0.2.3']);
  await assert.rejects(update(['192.0.2.4'], ['192.0.2.1']), /Use of external IPs is denied by admission control/);
});

test('checks long lists of external IPs in linear time', async () => {
  const addresses = Array.from({ length: 60_000 }, (_, index) => `2001:db8::${index.toString(16)}`);
  const beganMs = performance.now();
  await update(addresses.toReversed(), addresses);
  assert.ok(performance.now() - beganMs < 1_000, `${(performance.now() - beganMs).toFixed(0)} ms`);
});
