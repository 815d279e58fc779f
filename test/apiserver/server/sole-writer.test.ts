/** The claim of being the only writer, which permits consistent reads without querying the store. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SoleWriter } from '../../../src/apiserver/bootstrap/sole-writer.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer } from '../harness.ts';

type Store = ReturnType<typeof createMemoryStore>;

const writer = (store: Store, address: string, mayClaim = true): SoleWriter =>
  new SoleWriter({
    store,
    clock: systemClock,
    log: silentLog,
    mayClaim,
    identity: `${address}:8443`,
    advertiseAddress: address,
  });

async function until(what: string, met: () => boolean): Promise<void> {
  const began = performance.now();
  while (!met()) {
    if (performance.now() - began > 10_000) throw new Error(`not in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('a server holds the sole-writer claim while no other server runs, and regains the claim when the other server stops', {
  timeout: 30_000,
}, async () => {
  const store = createMemoryStore();
  const one = writer(store, '192.0.2.1');
  await one.announce();
  await until('one is sole', () => one.current);
  const two = writer(store, '192.0.2.2', false);
  await two.announce();
  // Resolves only after the holder has released its claim.
  assert.equal(one.current, false);
  assert.equal(two.current, false);
  await two.stop();
  await until('one is sole again', () => one.current);
  await one.stop();
  assert.equal((await store.range('/registry/soleapiserver/', '/registry/soleapiserver0')).count, 0);
});

test('at most one of two servers that start together holds the sole-writer claim, and none after both have started', {
  timeout: 30_000,
}, async () => {
  for (let round = 0; round < 20; round++) {
    const store = createMemoryStore();
    const both = [writer(store, '192.0.2.1'), writer(store, '192.0.2.2')];
    await Promise.all(both.map((each) => each.announce()));
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.deepEqual(
      both.map((each) => each.current),
      [false, false],
    );
    await Promise.all(both.map((each) => each.stop()));
  }
});

test('an upstream server, known by its master lease, prevents the sole-writer claim', {
  timeout: 30_000,
}, async () => {
  const store = createMemoryStore();
  await store.commit({ guards: [], puts: [{ key: '/registry/masterleases/192.0.2.9', value: Buffer.from('{}') }] });
  const one = writer(store, '192.0.2.1');
  await one.announce();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(one.current, false);
  await one.stop();
});

test('a server that held the sole-writer claim sees writes of a new second server at once, and publishes both endpoints', {
  timeout: 60_000,
}, async () => {
  const store = createMemoryStore();
  const start = (advertiseAddress: string) => startServer({ store, config: { soleWriter: true, advertiseAddress } });
  const one = await start('192.0.2.1');
  const two = await start('192.0.2.2');
  try {
    for (let count = 0; count < 20; count++) {
      const metadata = { name: `map-${count}` };
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
      assert.equal((await two.call('POST', '/api/v1/namespaces/default/configmaps', { body })).code, 201);
      assert.equal((await one.call('GET', `/api/v1/namespaces/default/configmaps/map-${count}`)).code, 200);
    }
    const path = '/api/v1/namespaces/default/endpoints/kubernetes';
    const { body } = await one.call<{ subsets: { addresses: { ip: string }[] }[] }>('GET', path);
    assert.deepEqual(
      body.subsets[0]?.addresses.map(({ ip }) => ip),
      ['192.0.2.1', '192.0.2.2'],
    );
  } finally {
    await two.stop(true);
    await one.stop();
  }
});
