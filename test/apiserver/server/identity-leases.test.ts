/** Identity Leases of API servers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from '../../../src/api/generated/coordination/v1.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer } from '../harness.ts';

const BASE = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
const SELECTED = `${BASE}?labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver`;

test('an API server writes its identity Lease, deletes expired Leases, and recreates its own Lease', {
  timeout: 30_000,
}, async () => {
  const store = createMemoryStore();
  const start = (name: string) =>
    startServer({
      store,
      config: { soleWriter: false, identity: { name, hostname: 'h' }, advertiseAddress: '192.0.2.1' },
    });
  const first = await start('apiserver-one');
  const lease = async (name: string): Promise<Lease> => (await first.call<Lease>('GET', `${BASE}/${name}`)).body;
  const before = await lease('apiserver-one');
  assert.equal(before.metadata?.labels?.['kubernetes.io/hostname'], 'h');
  assert.match(before.spec?.holderIdentity ?? '', /^apiserver-one_[0-9a-f-]{36}$/);
  assert.equal(before.spec?.leaseDurationSeconds, 3600);
  const old = { leaseDurationSeconds: 1, renewTime: '2020-01-01T00:00:00.000000Z', holderIdentity: 'x' };
  const labels = { 'apiserver.kubernetes.io/identity': 'kube-apiserver' };
  await first.call('POST', BASE, { body: { metadata: { name: 'apiserver-gone', labels }, spec: old } });
  await first.call('POST', BASE, { body: { metadata: { name: 'other' }, spec: old } });
  await first.stop(true);
  const second = await start('apiserver-one');
  try {
    const { body } = await second.call<{ items: Lease[] }>('GET', SELECTED);
    assert.deepEqual(
      body.items.map(({ metadata }) => metadata?.name),
      ['apiserver-one'],
    );
    assert.notEqual(body.items[0]?.spec?.holderIdentity, before.spec?.holderIdentity);
    assert.equal((await second.call('GET', `${BASE}/other`)).code, 200);
  } finally {
    await second.stop();
  }
});
