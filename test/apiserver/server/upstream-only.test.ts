/** The mode with only kube-apiserver's API, as envtest needs it, and definitions with names of built-in kinds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startServer, type TestServer } from '../harness.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

const definition = (group: string, version: string, plural: string, kind: string) => ({
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, kind },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', required: ['color'], properties: { color: { type: 'string' } } } },
          },
        },
      },
    ],
  },
});

async function usesOwnSchema(server: TestServer, group: string, plural: string, kind: string): Promise<void> {
  const path = `/apis/${group}/v1/namespaces/default/${plural}`;
  for (let tries = 0; (await server.call('GET', path)).code !== 200; tries++) {
    assert.ok(tries < 100, `${path} is not served`);
    await sleep(50);
  }
  const create = (spec: object) =>
    server.call<{ message: string; spec: object }>('POST', path, {
      body: { apiVersion: `${group}/v1`, kind, metadata: { name: 'own' }, spec },
    });
  const wrong = await create({});
  assert.equal(wrong.code, 422);
  assert.match(wrong.body.message, /spec\.color: Required value/);
  const made = await create({ color: 'red' });
  assert.equal(made.code, 201);
  assert.deepEqual(made.body.spec, { color: 'red' });
}

test('serves only groups, namespaces and objects of kube-apiserver, and custom resources in all other groups', async () => {
  const server = await startServer({ config: { upstreamOnly: true } });
  try {
    const groups = await server.call<{ groups: { name: string; versions: { groupVersion: string }[] }[] }>(
      'GET',
      '/apis',
    );
    const versions = groups.body.groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion));
    assert.deepEqual(versions.toSorted(), [
      'admissionregistration.k8s.io/v1',
      'apiextensions.k8s.io/v1',
      'apiregistration.k8s.io/v1',
      'apps/v1',
      'authentication.k8s.io/v1',
      'authorization.k8s.io/v1',
      'autoscaling/v1',
      'autoscaling/v2',
      'batch/v1',
      'certificates.k8s.io/v1',
      'coordination.k8s.io/v1',
      'discovery.k8s.io/v1',
      'events.k8s.io/v1',
      'flowcontrol.apiserver.k8s.io/v1',
      'networking.k8s.io/v1',
      'node.k8s.io/v1',
      'policy/v1',
      'rbac.authorization.k8s.io/v1',
      'resource.k8s.io/v1',
      'scheduling.k8s.io/v1',
      'storage.k8s.io/v1',
    ]);
    const names = async (path: string): Promise<string[]> => {
      const { body } = await server.call<{ items: { metadata: { name: string } }[] }>('GET', path);
      return body.items.map(({ metadata }) => metadata.name);
    };
    assert.deepEqual(await names('/api/v1/namespaces'), ['default', 'kube-node-lease', 'kube-public', 'kube-system']);
    const priorities = await names('/apis/scheduling.k8s.io/v1/priorityclasses');
    assert.deepEqual(priorities, ['system-cluster-critical', 'system-node-critical']);
    const openshift = (await names('/apis/rbac.authorization.k8s.io/v1/clusterroles')).filter((name) =>
      /openshift|olm|scc|image|machine|rig/.test(name),
    );
    assert.deepEqual(openshift, []);
    for (const [group, plural, kind] of [
      ['route.openshift.io', 'routes', 'Route'],
      ['user.openshift.io', 'users', 'User'],
      ['image.openshift.io', 'imagestreamtags', 'ImageStreamTag'],
    ] as const) {
      const made = await server.call('POST', DEFINITIONS, { body: definition(group, 'v1', plural, kind) });
      assert.equal(made.code, 201, made.text);
      await usesOwnSchema(server, group, plural, kind);
    }
  } finally {
    await server.stop();
  }
});

test('rejects a definition of a built-in kind with the reason, until the built-in version is disabled', async () => {
  const server = await startServer();
  try {
    const refusal = await server.call<{ message: string }>('POST', DEFINITIONS, {
      body: definition('route.openshift.io', 'v1', 'routes', 'Route'),
    });
    assert.equal(refusal.code, 422);
    assert.match(
      refusal.body.message,
      /spec\.names\.plural: Invalid value: "routes": routes\.route\.openshift\.io\/v1 is built into this server; use it without a definition, or switch the version off with --runtime-config=route\.openshift\.io\/v1=false/,
    );
  } finally {
    await server.stop();
  }
  const switched = await startServer({ config: { runtimeConfig: new Map([['machine.openshift.io/v1beta1', false]]) } });
  try {
    const group = 'machine.openshift.io';
    const body = definition(group, 'v1beta1', 'machines', 'Machine');
    body.spec.versions.push({ ...body.spec.versions[0], name: 'v1', storage: false } as never);
    assert.equal((await switched.call('POST', DEFINITIONS, { body })).code, 201);
    await usesOwnSchema(switched, group, 'machines', 'Machine');
  } finally {
    await switched.stop();
  }
});
