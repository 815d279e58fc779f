/** Endpoints of the `kubernetes` service with several API servers on one store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from '../harness.ts';

const start = (store: ReturnType<typeof createMemoryStore>, advertiseAddress: string): Promise<TestServer> =>
  startServer({ store, config: { soleWriter: false, advertiseAddress } });

async function shown(server: TestServer): Promise<string> {
  const base = '/api/v1/namespaces/default/endpoints/kubernetes';
  const { body } = await server.call<{ subsets: Array<{ addresses: Array<{ ip: string }> }> }>('GET', base);
  const slices = await server.call<{ endpoints: Array<{ addresses: string[] }> }>(
    'GET',
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  );
  const inSlice = slices.body.endpoints.flatMap(({ addresses }) => addresses).join();
  const inEndpoints = body.subsets.flatMap(({ addresses }) => addresses.map(({ ip }) => ip)).join();
  return inSlice === inEndpoints ? inSlice : `${inSlice} but ${inEndpoints}`;
}

async function becomes(server: TestServer, expected: string): Promise<void> {
  const begin = performance.now();
  let last = '';
  while (performance.now() - begin < 15_000) {
    last = await shown(server);
    if (last === expected) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(last, expected);
}

test('publishes the addresses of running servers when servers start, stop and fail', { timeout: 60_000 }, async () => {
  const store = createMemoryStore();
  const one = await start(store, '192.0.2.1');
  try {
    assert.equal(await shown(one), '192.0.2.1');
    const keys = await one.call<{ jwks_uri: string }>('GET', '/.well-known/openid-configuration');
    assert.match(keys.body.jwks_uri, /^https:\/\/192\.0\.2\.1:\d+\/openid\/v1\/jwks$/);
    const two = await start(store, '192.0.2.2');
    await becomes(one, '192.0.2.1,192.0.2.2');
    await two.stop(true);
    await becomes(one, '192.0.2.1');
    // A failed server leaves its key until the lease expires.
    const lease = await store.grantLease(2);
    const key = '/registry/masterleases/192.0.2.3';
    await store.commit({ guards: [], puts: [{ key, value: Buffer.from('{}'), lease }] });
    await becomes(one, '192.0.2.1,192.0.2.3');
    await becomes(one, '192.0.2.1');
    // A server announces itself again when its key is deleted, as after a restore of the store.
    await store.commit({ guards: [], deletes: ['/registry/masterleases/192.0.2.1'] });
    while ((await store.get('/registry/masterleases/192.0.2.1')).kv === undefined)
      await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await shown(one), '192.0.2.1');
  } finally {
    await one.stop();
  }
});

test('creates the kubernetes service and its endpoints again after they are deleted', { timeout: 60_000 }, async () => {
  const server = await start(createMemoryStore(), '192.0.2.1');
  const paths = [
    '/api/v1/namespaces/default/services/kubernetes',
    '/api/v1/namespaces/default/endpoints/kubernetes',
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes',
  ];
  try {
    const address = (await server.call<{ spec: { clusterIP: string } }>('GET', paths[0] ?? '')).body.spec.clusterIP;
    for (const path of paths) assert.equal((await server.call('DELETE', path)).code, 200, path);
    const statuses = async (): Promise<number[]> =>
      Promise.all(paths.map(async (path) => (await server.call('GET', path)).code));
    const begin = performance.now();
    while ((await statuses()).some((status) => status !== 200) && performance.now() - begin < 15_000)
      await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(await statuses(), [200, 200, 200]);
    const restored = await server.call<{ spec: { clusterIP: string } }>('GET', paths[0] ?? '');
    assert.equal(restored.body.spec.clusterIP, address);
    assert.equal(await shown(server), '192.0.2.1');
  } finally {
    await server.stop();
  }
});
