/** A store that upstream's API server has written to: its protobuf is read, and becomes JSON when it is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryStore } from '../../conformance/memory-store.ts';
import { startServer, type TestServer } from './harness.ts';

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

test('what is there in protobuf at the start is read, listed, changed and deleted', async () => {
  const { json, protobuf } = await written();
  const store = createMemoryStore();
  const { revision } = await store.commit({ guards: [], puts: [{ key: KEY, value: protobuf }] });
  // One of a kind that is not known, and one that is damaged, keep nothing else from being read.
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

test('what comes in protobuf while a server runs is seen at once', async () => {
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
