/** ClusterResourceQuota: rejections by a complete API server, and the usage in the status. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { clusterTotals, holdsFor } from '../../../src/api/quota/cluster.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createMemoryStore, type MemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from '../harness.ts';

const QUOTA = {
  apiVersion: 'quota.openshift.io/v1',
  kind: 'ClusterResourceQuota',
  metadata: { name: 'blue' },
  spec: { selector: { labels: { matchLabels: { team: 'blue' } } }, quota: { hard: { configmaps: '3' } } },
};

describe('cluster resource quotas', { concurrency: false }, () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    for (const [name, labels] of [
      ['a', { team: 'blue' }],
      ['b', { team: 'blue' }],
      ['c', {}],
    ] as const)
      await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name, labels } } });
    const made = await server.call('POST', '/apis/quota.openshift.io/v1/clusterresourcequotas', { body: QUOTA });
    assert.equal(made.code, 201, made.text);
  });
  after(() => server.stop());

  const create = (namespace: string, name: string, query = '') =>
    server.call(`POST`, `/api/v1/namespaces/${namespace}/configmaps${query}`, { body: { metadata: { name } } });

  test('cluster resource quotas reject only objects that exceed the total of their projects', async () => {
    assert.equal((await create('a', 'dry', '?dryRun=All')).code, 201);
    const answers = await Promise.all(
      ['a', 'b', 'a', 'b', 'a', 'b'].map((namespace, index) => create(namespace, `m${index}`)),
    );
    assert.deepEqual(answers.map(({ code }) => code).sort(), [201, 201, 201, 403, 403, 403]);
    assert.match(
      answers.find(({ code }) => code === 403)?.text ?? '',
      /exceeded quota: blue, requested: configmaps=1, used: configmaps=3, limited: configmaps=3/,
    );
    assert.equal((await create('c', 'm')).code, 201);
  });

  test('cluster resource quotas are shown as AppliedClusterResourceQuotas in their projects', async () => {
    const list = async (namespace: string) => {
      const path = `/apis/quota.openshift.io/v1/namespaces/${namespace}/appliedclusterresourcequotas`;
      const { body } = await server.call<{ items: { kind: string; metadata: object }[] }>('GET', path);
      return body.items.map(({ metadata }) => metadata as { name: string; namespace: string });
    };
    assert.deepEqual(
      (await list('a')).map(({ name, namespace }) => [name, namespace]),
      [['blue', 'a']],
    );
    assert.deepEqual(await list('c'), []);
    const one = '/apis/quota.openshift.io/v1/namespaces/b/appliedclusterresourcequotas/blue';
    assert.equal((await server.call('GET', one)).code, 200);
    assert.equal((await server.call('GET', one.replace('/b/', '/c/'))).code, 404);
  });

  test('cluster resource quotas require a selector', async () => {
    const body = { ...QUOTA, metadata: { name: 'all' }, spec: { ...QUOTA.spec, selector: {} } };
    const { code, text } = await server.call('POST', '/apis/quota.openshift.io/v1/clusterresourcequotas', { body });
    assert.equal(code, 422);
    assert.match(text, /must restrict the selected projects/);
  });
});

test('cluster resource quotas are enforced while the store is slow, and waiting requests time out', async () => {
  const store = createMemoryStore();
  let hold: Promise<void> | undefined;
  const slow: MemoryStore = {
    ...store,
    commit: async (commit) => {
      if (commit.puts?.some(({ key }) => key.includes('/configmaps/')) === true) await hold;
      return store.commit(commit);
    },
  };
  const QUOTA_MS = 10_000;
  const clock: Clock = {
    ...systemClock,
    setTimer: (delayMs, callback) => systemClock.setTimer(delayMs === QUOTA_MS ? 300 : delayMs, callback),
  };
  const server = await startServer({ store: slow, clock });
  try {
    await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'a', labels: { team: 'blue' } } } });
    await server.call('POST', '/apis/quota.openshift.io/v1/clusterresourcequotas', { body: QUOTA });
    const create = (name: string) =>
      server.call<{ message: string }>('POST', '/api/v1/namespaces/a/configmaps', { body: { metadata: { name } } });
    const { promise, resolve } = Promise.withResolvers<void>();
    hold = promise;
    const pending = [0, 1, 2, 3, 4, 5].map((index) => create(`m${index}`));
    await new Promise((done) => setTimeout(done, 1_000));
    resolve();
    const answers = await Promise.all(pending);
    assert.deepEqual(answers.map(({ code }) => code).sort(), [201, 500, 500, 500, 500, 500]);
    for (const { code, body } of answers)
      if (code === 500) assert.equal(body.message, 'Internal error occurred: resource quota evaluation timed out');
    // Requests that timed out do not block later ones.
    const later = await Promise.all([6, 7, 8].map((index) => create(`m${index}`)));
    assert.deepEqual(later.map(({ code }) => code).sort(), [201, 201, 403]);
  } finally {
    await server.stop();
  }
});

test('cluster resource quotas count the total of all projects and of each project', () => {
  const quota = { spec: { selector: { annotations: { owner: 'ann' } }, quota: { hard: { configmaps: '5' } } } };
  assert.ok(holdsFor(quota, { metadata: { annotations: { owner: 'ann' } } }));
  assert.ok(!holdsFor(quota, { metadata: { annotations: { owner: 'bob' } } }));
  assert.ok(!holdsFor({ spec: {} }, { metadata: {} }));
  const objects = (_: object, namespace: string) => (namespace === 'a' ? [{}, {}] : [{}]) as never;
  const { total, namespaces } = clusterTotals(quota, ['b', 'a'], objects, 0);
  assert.deepEqual(total, { hard: { configmaps: '5' }, used: { configmaps: '3' } });
  assert.deepEqual(
    namespaces?.map(({ namespace, status }) => [namespace, status?.used]),
    [
      ['a', { configmaps: '2' }],
      ['b', { configmaps: '1' }],
    ],
  );
});
