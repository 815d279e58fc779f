/** Stores written by upstream's API server: protobuf values are read, and become JSON when they are written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from '../harness.ts';

const PATH = '/apis/apps/v1/namespaces/default/deployments';
const KEY = '/registry/deployments/default/web';
const deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', labels: { app: 'web' }, annotations: { note: 'ü"{' } },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'c', image: 'i', resources: { limits: { memory: '64Mi' } } }] },
    },
  },
};

interface Shown {
  metadata: Record<string, unknown>;
  spec: { replicas: number };
}

async function written(): Promise<{ readonly json: Shown; readonly protobuf: Buffer }> {
  const server = await startServer();
  try {
    await server.call('POST', PATH, { body: deployment });
    const json = (await server.call<Shown>('GET', `${PATH}/web`)).body;
    const { bytes } = await server.call('GET', `${PATH}/web`, {
      headers: { accept: 'application/vnd.kubernetes.protobuf' },
    });
    assert.equal(bytes.subarray(0, 4).toString('latin1'), 'k8s\0');
    return { json, protobuf: bytes };
  } finally {
    await server.stop();
  }
}

const shown = async (server: TestServer): Promise<Shown> => (await server.call<Shown>('GET', `${PATH}/web`)).body;
const without = ({ metadata: { resourceVersion: _, ...metadata }, ...rest }: Shown) => ({ ...rest, metadata });

test('reads, lists, changes and deletes protobuf values present at start', async () => {
  const { json, protobuf } = await written();
  const store = createMemoryStore();
  const { revision } = await store.commit({ guards: [], puts: [{ key: KEY, value: protobuf }] });
  // Values of an unknown kind and damaged values do not affect others.
  const unknown = Buffer.from(protobuf);
  unknown.write('Zeployment', unknown.indexOf('Deployment'));
  const key = (name: string): string => KEY.replace('web', name);
  await store.commit({ guards: [], puts: [{ key: key('unknown'), value: unknown }] });
  await store.commit({ guards: [], puts: [{ key: key('damaged'), value: protobuf.subarray(0, -7) }] });
  const server = await startServer({ store });
  try {
    const first = await shown(server);
    assert.deepEqual(without(first), without(json));
    assert.equal(first.metadata['resourceVersion'], String(revision));
    const list = await server.call<{ items: Shown[] }>('GET', `${PATH}?labelSelector=app%3Dweb`);
    assert.deepEqual(
      list.body.items.map(without).map(({ metadata }) => metadata),
      [without(json).metadata],
    );
    const patch = { type: 'application/merge-patch+json', body: { spec: { replicas: 5 } } };
    const patched = await server.call<Shown>('PATCH', `${PATH}/web`, patch);
    assert.equal(patched.code, 200, patched.text);
    assert.equal(patched.body.spec.replicas, 5);
    assert.equal(
      Buffer.from((await store.get(KEY)).kv?.value ?? [])
        .subarray(0, 1)
        .toString(),
      '{',
    );
    assert.equal((await server.call('DELETE', `${PATH}/web`)).code, 200);
    assert.equal((await store.get(KEY)).kv, undefined);
  } finally {
    await server.stop();
  }
});

test('reads protobuf values that are written while the server runs', async () => {
  const { json, protobuf } = await written();
  const store = createMemoryStore();
  const server = await startServer({ store, config: { soleWriter: false } });
  try {
    assert.equal((await server.call('GET', `${PATH}/web`)).code, 404);
    await store.commit({ guards: [], puts: [{ key: KEY, value: protobuf }] });
    assert.deepEqual(without(await shown(server)), without(json));
  } finally {
    await server.stop();
  }
});

test("reads stored objects in upstream's storage versions", async () => {
  const store = createMemoryStore();
  const metadata = (name: string) => ({ name, uid: 'u', creationTimestamp: '2021-01-01T00:00:00Z' });
  // The definition as kube-apiserver 1.20 stores it: in v1beta1, with the kind as first field.
  const definition = {
    kind: 'CustomResourceDefinition',
    apiVersion: 'apiextensions.k8s.io/v1beta1',
    metadata: { ...metadata('toys.example.com'), generation: 1 },
    spec: {
      group: 'example.com',
      version: 'v1',
      names: { plural: 'toys', singular: 'toy', kind: 'Toy', listKind: 'ToyList' },
      scope: 'Namespaced',
      validation: { openAPIV3Schema: { properties: { spec: { type: 'object' } } } },
      versions: [{ name: 'v1', served: true, storage: true }],
      conversion: { strategy: 'None' },
      preserveUnknownFields: true,
    },
    status: {
      conditions: [{ type: 'Established', status: 'True', lastTransitionTime: '2021-01-01T00:00:00Z' }],
      acceptedNames: { plural: 'toys', singular: 'toy', kind: 'Toy', listKind: 'ToyList' },
      storedVersions: ['v1'],
    },
  };
  const budget = {
    kind: 'PodDisruptionBudget',
    apiVersion: 'policy/v1beta1',
    metadata: { ...metadata('none'), namespace: 'default' },
    spec: { minAvailable: 1, selector: {} },
  };
  const toy = {
    apiVersion: 'example.com/v1',
    kind: 'Toy',
    metadata: { ...metadata('a'), namespace: 'default' },
    any: 1,
  };
  const puts = [
    ['apiextensions.k8s.io/customresourcedefinitions/toys.example.com', definition],
    ['poddisruptionbudgets/default/none', budget],
    ['example.com/toys/default/a', toy],
  ] as const;
  for (const [key, object] of puts)
    await store.commit({ guards: [], puts: [{ key: `/registry/${key}`, value: Buffer.from(JSON.stringify(object)) }] });
  const server = await startServer({ store });
  try {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.example.com';
    const { body } = await server.call<{ spec: { versions: Record<string, unknown>[] } }>('GET', path);
    assert.deepEqual(body.spec.versions[0]?.['schema'], definition.spec.validation);
    const toys = await server.call<{ any: number }>('GET', '/apis/example.com/v1/namespaces/default/toys/a');
    assert.equal(toys.body.any, 1, toys.text);
    const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    const none = await server.call<{ spec: { selector: object } }>('GET', `${budgets}/none`);
    assert.match(JSON.stringify(none.body.spec.selector), /"operator":"Exists"/, 'an empty selector chose nothing');
    assert.equal((await server.call('DELETE', `${budgets}/none`)).code, 200);
    assert.equal((await store.get('/registry/poddisruptionbudgets/default/none')).kv, undefined);
  } finally {
    await server.stop();
  }
});
