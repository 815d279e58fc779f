/** Built-in APIs that are switched off: they are not served, but their objects are kept. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from '../harness.ts';

const start = (store: TestServer['store'], ...settings: [string, boolean][]): Promise<TestServer> =>
  startServer({ store, config: { runtimeConfig: new Map(settings) } });

const codeOf = async (server: TestServer, path: string): Promise<number> => (await server.call('GET', path)).code;

describe('--runtime-config', () => {
  it('removes groups, versions and resources from paths, documents and registrations', async () => {
    const store = createMemoryStore();
    const everything = await start(store);
    try {
      assert.equal(await codeOf(everything, '/apis/apiregistration.k8s.io/v1/apiservices/v1.batch'), 200);
    } finally {
      await everything.stop(true);
    }
    const server = await start(store, ['api/beta', false], ['batch/v1', false], ['apps/v1/deployments', false]);
    try {
      for (const gone of [
        '/apis/batch',
        '/apis/batch/v1',
        '/apis/batch/v1/jobs',
        '/apis/apps/v1/deployments',
        '/apis/apps/v1/namespaces/default/deployments/x/scale',
        '/apis/policy/v1beta1',
        '/apis/extensions',
        '/openapi/v3/apis/batch/v1',
        '/apis/apiregistration.k8s.io/v1/apiservices/v1.batch',
        '/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.policy',
      ]) {
        assert.equal(await codeOf(server, gone), 404, gone);
      }
      for (const left of [
        '/apis/apps/v1/replicasets',
        '/apis/policy/v1',
        '/apis/apiregistration.k8s.io/v1/apiservices/v1.apps',
      ])
        assert.equal(await codeOf(server, left), 200, left);
      const { body: apps } = await server.call<{ resources: { name: string }[] }>('GET', '/apis/apps/v1');
      assert.ok(!apps.resources.some(({ name }) => name.startsWith('deployments')));
      const groups = (await server.call('GET', '/apis')).text;
      assert.doesNotMatch(groups, /"batch|v1beta1|"extensions/);
      const aggregated = await server.call('GET', '/apis', {
        headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' },
      });
      assert.match(aggregated.text, /"replicasets"/);
      assert.doesNotMatch(aggregated.text, /"deployments"|"cronjobs"|v1beta1/);
      const { body: v2 } = await server.call<{ paths: object; definitions: object }>('GET', '/openapi/v2');
      assert.deepEqual(
        Object.keys(v2.paths).filter((path) => /batch|deployments|v1beta1|\/extensions\//.test(path)),
        [],
      );
      assert.ok(!Object.keys(v2.definitions).some((name) => /\.(Deployment|CronJob)$/.test(name)));
      const { body: v3 } = await server.call<{ paths: object }>('GET', '/openapi/v3');
      assert.ok(!('apis/batch/v1' in v3.paths) && 'apis/apps/v1' in v3.paths);
      assert.doesNotMatch((await server.call('GET', '/openapi/v3/apis/apps/v1')).text, /deployments/);
    } finally {
      await server.stop();
    }
  });

  it('serves objects stored in a disabled version in enabled versions, and in all versions after re-enabling', async () => {
    const store = createMemoryStore();
    const path = (version: string): string =>
      `/apis/autoscaling/${version}/namespaces/default/horizontalpodautoscalers`;
    const autoscaler = {
      metadata: { name: 'one' },
      spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' } },
    };
    const server = await start(store, ['autoscaling/v2', false]);
    try {
      assert.equal((await server.call('POST', path('v2'), { body: autoscaler })).code, 404);
      assert.equal((await server.call('POST', path('v1'), { body: autoscaler })).code, 201);
      const { body } = await server.call<{ preferredVersion: object }>('GET', '/apis/autoscaling');
      assert.deepEqual(body.preferredVersion, { groupVersion: 'autoscaling/v1', version: 'v1' });
    } finally {
      await server.stop(true);
    }
    const later = await start(store);
    try {
      assert.equal((await later.call<typeof autoscaler>('GET', `${path('v2')}/one`)).body.spec.maxReplicas, 3);
    } finally {
      await later.stop();
    }
  });

  it('--runtime-config cannot disable kinds that the server itself needs', async () => {
    const server = await start(createMemoryStore(), ['api/all', false], ['v1', true]);
    try {
      assert.equal((await server.call('GET', '/readyz')).code, 200);
      const { body } = await server.call<{ groups: unknown[] }>('GET', '/apis');
      assert.deepEqual(body.groups, []);
      const configMap = { metadata: { name: 'one' } };
      assert.equal((await server.call('POST', '/api/v1/namespaces/default/configmaps', { body: configMap })).code, 201);
      const reader = await server.user('somebody');
      assert.equal((await server.call('GET', '/api/v1/configmaps', { as: reader })).code, 403);
    } finally {
      await server.stop();
    }
  });

  it('--runtime-config does not affect custom resources and aggregated APIs', async () => {
    const server = await start(createMemoryStore(), ['v1', false]);
    try {
      assert.equal(await codeOf(server, '/api/v1/pods'), 404);
      assert.deepEqual((await server.call<{ versions: string[] }>('GET', '/api')).body.versions, []);
      assert.equal(await codeOf(server, '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'), 200);
    } finally {
      await server.stop();
    }
  });
});
