/** Resource quotas: exact charging of concurrent requests by one or two servers, rejections and refunds. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { type Answer, startServer, type TestServer } from '../harness.ts';

interface Body {
  readonly message: string;
  readonly metadata: { readonly name: string };
  readonly status: { readonly used?: Record<string, string> };
}

const CREATORS = 16;

/** Creates a quota with the status that the quota controller sets first: no usage. */
async function setQuota(
  server: TestServer,
  namespace: string,
  hard: Record<string, string>,
  { spec = {}, used, name = 'q' }: { spec?: object; used?: Record<string, string>; name?: string } = {},
): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
  const made = await server.call('POST', path, { body: { metadata: { name }, spec: { hard, ...spec } } });
  assert.equal(made.code, 201, made.text);
  const nothing = Object.fromEntries(Object.keys(hard).map((each) => [each, '0']));
  const output = await server.call('PUT', `${path}/${name}/status`, {
    body: { metadata: { name }, spec: { hard, ...spec }, status: { hard, used: used ?? nothing } },
  });
  assert.equal(output.code, 200, output.text);
}

async function newNamespace(server: TestServer, name: string): Promise<void> {
  await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
  await server.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { body: { metadata: { name: 'default' } } });
}

async function usedOf(server: TestServer, namespace: string, name = 'q'): Promise<Record<string, string> | undefined> {
  const found = await server.call<Body>('GET', `/api/v1/namespaces/${namespace}/resourcequotas/${name}`);
  return found.body.status.used;
}

const podBody = (name: object, resources: object = {}) => ({
  metadata: name,
  spec: { containers: [{ name: 'c', image: 'i', resources }] },
});

/** Creates objects until three requests were rejected. Returns the number of created objects. */
async function greedyCreator(server: TestServer, namespace: string, limit: number): Promise<number> {
  const refusals: Answer<Body>[] = [];
  let made = 0;
  while (refusals.length < 3) {
    const body = podBody({ generateName: 'p-' }, { requests: { cpu: '100m' } });
    const answer = await server.call<Body>('POST', `/api/v1/namespaces/${namespace}/pods`, { body });
    if (answer.code === 201) made++;
    else refusals.push(answer);
  }
  for (const { code, body } of refusals) {
    assert.equal(code, 403, body.message);
    const why = `is forbidden: exceeded quota: q, requested: pods=1, used: pods=${limit}, limited: pods=${limit}`;
    assert.ok(body.message.endsWith(why), body.message);
  }
  return made;
}

describe('resource quotas', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({
      config: {
        admission: {
          limitedResources: new Map([['pods.', [{ matchContains: ['example.com/gpu'], matchScopes: [] }]]]),
        },
      },
    });
  });
  after(() => server.stop());
  const post = (path: string, body: unknown) => server.call<Body>('POST', path, { body });

  it(`${CREATORS} concurrent clients use the quota exactly, and all rejections are due to the quota`, async () => {
    await newNamespace(server, 'crowded');
    await setQuota(server, 'crowded', { pods: '50', 'requests.cpu': '10', 'count/pods': '60' });
    const made = await Promise.all(Array.from({ length: CREATORS }, () => greedyCreator(server, 'crowded', 50)));
    assert.equal(
      made.reduce((sum, each) => sum + each, 0),
      50,
    );
    const { body } = await server.call<{ items: unknown[] }>('GET', '/api/v1/namespaces/crowded/pods');
    assert.equal(body.items.length, 50);
    assert.deepEqual(await usedOf(server, 'crowded'), { 'count/pods': '50', pods: '50', 'requests.cpu': '5' });
  });

  it('rejections name the exceeded resources, and resources whose usage is unknown', async () => {
    await newNamespace(server, 'careful');
    await setQuota(server, 'careful', { 'limits.cpu': '1' });
    const path = '/api/v1/namespaces/careful/pods';
    assert.equal(
      (await post(path, podBody({ name: 'p' }))).body.message,
      'pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c',
    );
    await setQuota(server, 'careful', { pods: '1' }, { name: 'r', used: {} });
    assert.equal(
      (await post(path, podBody({ name: 'p' }, { limits: { cpu: '1' } }))).body.message,
      'pods "p" is forbidden: status unknown for quota: r, resources: pods',
    );
    assert.deepEqual(await usedOf(server, 'careful'), { 'limits.cpu': '0' });
  });

  it('does not charge objects that are not stored: a conflicting name, a dry run', async () => {
    await newNamespace(server, 'honest');
    await setQuota(server, 'honest', { configmaps: '2', 'count/leases.coordination.k8s.io': '1' });
    const maps = '/api/v1/namespaces/honest/configmaps';
    assert.equal((await post(`${maps}?dryRun=All`, { metadata: { name: 'a' } })).code, 201);
    assert.deepEqual((await usedOf(server, 'honest'))?.['configmaps'], '0');
    assert.equal((await post(maps, { metadata: { name: 'a' } })).code, 201);
    const inUse = await Promise.all(Array.from({ length: 5 }, () => post(maps, { metadata: { name: 'a' } })));
    // Requests during a reservation may be rejected by the quota, but the reserved usage is refunded.
    for (const { code } of inUse) assert.ok(code === 409 || code === 403);
    assert.ok(inUse.some(({ code }) => code === 409));
    assert.equal((await usedOf(server, 'honest'))?.['configmaps'], '1');
    assert.equal((await post(maps, { metadata: { name: 'b' } })).code, 201);
    assert.match(
      (await post(maps, { metadata: { name: 'c' } })).body.message,
      /^configmaps "c" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=2, limited: configmaps=2$/,
    );
    const leases = '/apis/coordination.k8s.io/v1/namespaces/honest/leases';
    assert.equal((await post(leases, { metadata: { name: 'a' }, spec: {} })).code, 201);
    assert.match(
      (await post(leases, { metadata: { name: 'b' }, spec: {} })).body.message,
      /^leases\.coordination\.k8s\.io "b" is forbidden: exceeded quota: q, requested: count\/leases\.coordination\.k8s\.io=1, /,
    );
  });

  it('a resource quota charges updates for the added usage', async () => {
    await newNamespace(server, 'growing');
    await setQuota(server, 'growing', { 'services.nodeports': '2', 'requests.storage': '3Gi', 'requests.cpu': '1' });
    const at = (path: string) => `/api/v1/namespaces/growing/${path}`;
    const patch = (path: string, body: unknown) =>
      server.call<Body>('PATCH', at(path), { body, type: 'application/merge-patch+json' });
    const ports = [1, 2, 3].map((port) => ({ name: `p${port}`, port }));
    const service = { metadata: { name: 's' }, spec: { type: 'ClusterIP', selector: { a: 'b' }, ports } };
    assert.equal((await post(at('services'), service)).code, 201);
    assert.match(
      (await patch('services/s', { spec: { type: 'NodePort' } })).body.message,
      /exceeded quota: q, requested: services\.nodeports=3, used: services\.nodeports=0, limited: services\.nodeports=2$/,
    );
    assert.equal((await patch('services/s', { spec: { type: 'NodePort', ports: ports.slice(0, 2) } })).code, 200);
    assert.equal((await post(at('pods'), podBody({ name: 'p' }, { requests: { cpu: '600m' } }))).code, 201);
    const resize = (cpu: string) =>
      server.call<Body>('PATCH', at('pods/p/resize'), {
        body: { spec: { containers: [{ name: 'c', resources: { requests: { cpu } } }] } },
        type: 'application/strategic-merge-patch+json',
      });
    assert.match(
      (await resize('1100m')).body.message,
      /exceeded quota: q, requested: requests\.cpu=500m, used: requests\.cpu=600m, limited: requests\.cpu=1$/,
    );
    assert.equal((await resize('900m')).code, 200);
    assert.deepEqual(await usedOf(server, 'growing'), {
      'requests.cpu': '900m',
      'requests.storage': '0',
      'services.nodeports': '2',
    });
  });

  it('rejects a quota status that ignores recently created objects', async () => {
    await newNamespace(server, 'hasty');
    await setQuota(server, 'hasty', { configmaps: '5' });
    const say = (configmaps: string) =>
      server.call<Body>('PATCH', '/api/v1/namespaces/hasty/resourcequotas/q/status', {
        body: { status: { used: { configmaps } } },
        type: 'application/merge-patch+json',
      });
    assert.equal((await post('/api/v1/namespaces/hasty/configmaps', { metadata: { name: 'a' } })).code, 201);
    const hasty = await say('0');
    assert.equal(hasty.code, 409);
    assert.match(hasty.body.message, /usage was reserved within the last second/);
    assert.equal((await say('2')).code, 200);
    for (;;) {
      const later = await say('1');
      if (later.code === 200) break;
      assert.equal(later.code, 409);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  });

  it('requires a quota for resources that the configuration limits', async () => {
    await newNamespace(server, 'limited');
    const gpu = { 'example.com/gpu': '1' };
    const refused = await post(
      '/api/v1/namespaces/limited/pods',
      podBody({ name: 'p' }, { requests: gpu, limits: gpu }),
    );
    assert.equal(
      refused.body.message,
      'pods "p" is forbidden: insufficient quota to consume: requests.example.com/gpu',
    );
    await setQuota(server, 'limited', { 'requests.example.com/gpu': '1' });
    const made = await post('/api/v1/namespaces/limited/pods', podBody({ name: 'p' }, { requests: gpu, limits: gpu }));
    assert.equal(made.code, 201, made.text);
  });
});

describe('resource quotas and two servers', () => {
  it('two servers together do not exceed the quota', async () => {
    const store = createMemoryStore();
    const config = { soleWriter: false };
    const one = await startServer({ store, config });
    const two = await startServer({ store, config });
    try {
      await newNamespace(one, 'shared');
      await setQuota(one, 'shared', { pods: '20' });
      // Waits until both servers have the objects.
      await two.call('GET', '/api/v1/namespaces/shared/resourcequotas');
      await two.call('GET', '/api/v1/namespaces/shared/serviceaccounts');
      const made = await Promise.all(
        Array.from({ length: CREATORS }, (_, index) => greedyCreator(index % 2 === 0 ? one : two, 'shared', 20)),
      );
      assert.equal(
        made.reduce((sum, each) => sum + each, 0),
        20,
      );
      assert.deepEqual(await usedOf(one, 'shared'), { pods: '20' });
    } finally {
      await two.stop(true);
      await one.stop();
    }
  });
});
