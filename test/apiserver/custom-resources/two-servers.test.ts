/** Two API servers on one store serve the same custom kinds, also after a restart. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';
import { CRONTAB, cronTabs, until } from './crontab.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const PATH = '/apis/stable.example.com/v1/namespaces/default/crontabs';
const resource = (name: string) => ({
  apiVersion: 'stable.example.com/v1',
  kind: 'CronTab',
  metadata: { name },
  spec: {},
});

type List = { items: { metadata: { name: string } }[] };

describe('custom resources on two API servers', () => {
  const config = { soleWriter: false } as const;
  let one: TestServer;
  let two: TestServer;
  before(async () => {
    one = await startServer({ config });
    two = await startServer({ store: one.store, config: { ...config, advertiseAddress: '192.0.2.11' } });
  });
  after(async () => {
    await two.stop(true);
    await one.stop();
  });

  it('custom resources on two API servers are served by both servers after either server creates the definition', async () => {
    assert.equal((await one.call('POST', DEFINITIONS, { body: cronTabs() })).code, 201);
    for (const server of [one, two]) await until('served', async () => (await server.call('GET', PATH)).code === 200);
    for (let index = 0; index < 20; index++) {
      const [writer, reader] = index % 2 === 0 ? [one, two] : [two, one];
      assert.equal((await writer.call('POST', PATH, { body: resource(`r${index}`) })).code, 201);
      assert.equal((await reader.call('GET', `${PATH}/r${index}`)).code, 200);
      assert.equal((await reader.call<List>('GET', PATH)).body.items.length, index + 1);
    }
  });

  it('custom resources on two API servers are served after a restart', async () => {
    const three = await startServer({ store: one.store, config: { ...config, advertiseAddress: '192.0.2.12' } });
    try {
      assert.equal((await three.call<List>('GET', PATH)).body.items.length, 20);
      assert.match((await three.call('GET', '/apis/stable.example.com/v1')).text, /crontabs\/status/);
    } finally {
      await three.stop(true);
    }
  });

  it('custom resources on two API servers are deleted with their definition although both servers process the deletion', async () => {
    assert.equal((await two.call('DELETE', `${DEFINITIONS}/${CRONTAB}`)).code, 200);
    for (const server of [one, two]) await until('gone', async () => (await server.call('GET', PATH)).code === 404);
    const left = await one.store.range('/registry/stable.example.com/', '/registry/stable.example.com0', {});
    assert.equal(left.kvs.length, 0);
  });
});
