/** Creates during the termination of their namespace, and the resource version of a new object. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';
import { configure, type Review, unconfigure, WebhookServer } from './webhook-server.ts';

interface Body {
  readonly message: string;
  readonly reason?: string;
  readonly metadata: { readonly finalizers?: readonly string[] };
  readonly spec: { readonly clusterIP?: string; readonly finalizers?: readonly string[] };
}

describe('a create whose namespace changes after admission', () => {
  let server: TestServer;
  let hooks: WebhookServer;
  before(async () => {
    [server, hooks] = [await startServer(), await WebhookServer.start()];
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  afterEach(() => unconfigure(server));

  /** Runs `meanwhile` while a webhook delays the create. */
  async function createDuring(namespace: string, plural: string, body: object, meanwhile: () => Promise<void>) {
    const shown = Promise.withResolvers<() => void>();
    hooks.on('/slow', (review: Review, response) => {
      shown.resolve(() => {
        const { apiVersion, kind } = review;
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({ apiVersion, kind, response: { uid: review.request.uid, allowed: true } }));
      });
      return undefined;
    });
    await configure(server, 'Mutating', 'a', {
      ...hooks.hook('/slow'),
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: [plural] }],
    });
    const created = server.call<Body>('POST', `/api/v1/namespaces/${namespace}/${plural}`, { body });
    const goOn = await shown.promise;
    await meanwhile();
    goOn();
    return created;
  }
  const make = async (name: string): Promise<void> => {
    assert.equal((await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name } } })).code, 201);
  };
  const end = async (name: string): Promise<void> => {
    const path = `/api/v1/namespaces/${name}`;
    const { body } = await server.call<Body>('DELETE', path);
    const live = await server.call<Body>('GET', path);
    assert.equal(live.code, 200, JSON.stringify(body));
    const finalized = await server.call('PUT', `${path}/finalize`, {
      body: { ...live.body, spec: { finalizers: [] } },
    });
    assert.equal(finalized.code, 200);
  };
  const mapsOf = async (namespace: string): Promise<string> =>
    (await server.call('GET', `/api/v1/namespaces/${namespace}/configmaps`)).text;

  it('a create whose namespace changes after admission is rejected if the namespace has become terminating', async () => {
    await make('ending');
    const answer = await createDuring('ending', 'configmaps', { metadata: { name: 'late' } }, async () => {
      assert.equal((await server.call('DELETE', '/api/v1/namespaces/ending')).code, 200);
    });
    assert.equal(answer.code, 403, answer.text);
    assert.match(
      answer.body.message,
      /unable to create new content in namespace ending because it is being terminated/,
    );
    assert.doesNotMatch(await mapsOf('ending'), /"late"/);
  });

  it('a create whose namespace changes after admission is rejected if the namespace has been deleted', async () => {
    await make('gone');
    const answer = await createDuring('gone', 'configmaps', { metadata: { name: 'late' } }, () => end('gone'));
    assert.equal(answer.code, 404, answer.text);
    assert.match(answer.body.message, /namespaces "gone" not found/);
    assert.doesNotMatch(await mapsOf('gone'), /"late"/);
  });

  it('a create whose namespace changes after admission succeeds and keeps its allocated addresses if the namespace was only updated', async () => {
    await make('changed');
    const label = (n: number) =>
      server.call('PATCH', '/api/v1/namespaces/changed', {
        raw: JSON.stringify({ metadata: { labels: { n: String(n) } } }),
        type: 'application/merge-patch+json',
      });
    const service = { metadata: { name: 's' }, spec: { ports: [{ port: 80 }] } };
    const answer = await createDuring('changed', 'services', service, async () => {
      await label(1);
      await label(2);
    });
    assert.equal(answer.code, 201, answer.text);
    assert.match(answer.body.spec.clusterIP ?? '', /^\d+\.\d+\.\d+\.\d+$/);
  });
});

describe('resourceVersion of a new object', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const maps = '/api/v1/namespaces/default/configmaps';
  const create = (name: string, more: object = {}, query = '') =>
    server.call<Body>('POST', `${maps}${query}`, { body: { metadata: { name, resourceVersion: '7' }, ...more } });

  it('a create with resourceVersion is rejected by the store, after admission and validation', async () => {
    const refused = await create('versioned');
    assert.equal(refused.code, 500);
    assert.equal(refused.body.message, 'resourceVersion should not be set on objects to be created');
    assert.equal(refused.body.reason, undefined);
    const invalid = await create('versioned', { data: { '../x': 'y' } });
    assert.equal(invalid.code, 422, invalid.text);
    assert.equal((await server.call('GET', `${maps}/versioned`)).code, 404);
    assert.equal((await create('versioned', {}, '?dryRun=All')).code, 201);
    assert.equal(
      (await server.call('POST', maps, { body: { metadata: { name: 'plain', resourceVersion: '' } } })).code,
      201,
    );
  });
});
