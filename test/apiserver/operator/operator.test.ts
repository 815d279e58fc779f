/**
 * Life cycle of an operator: a definition with two versions and a conversion webhook, mutating and validating webhooks,
 * a status and a finalizer. Two operator processes elect a leader. One is killed, and the API server is restarted
 * meanwhile.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { createMemoryStore, type MemoryStore } from '../../conformance/memory-store.ts';
import { patchOf, type Review, WebhookServer } from '../admission/webhook-server.ts';
import { type Answer, startServer, type TestServer } from '../harness.ts';

const PATIENCE_MS = 60_000;
const CHILD = join(import.meta.dirname, 'operator.child.ts');
const at = (version: string): string => `/apis/lab.test/${version}/namespaces/default/backups`;

interface Doc {
  readonly metadata: { readonly generation: number; readonly finalizers?: string[]; readonly resourceVersion: string };
  readonly spec: Record<string, unknown>;
  readonly status?: { readonly phase?: string; readonly by?: string; readonly observedGeneration?: number };
  readonly data?: Record<string, string>;
  readonly message?: string;
}

const version = (name: string, properties: object, storage: boolean): object => ({
  name,
  served: true,
  storage,
  subresources: { status: {} },
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { ...properties, keep: { type: 'integer' } } },
        status: {
          type: 'object',
          properties: { phase: { type: 'string' }, observedGeneration: { type: 'integer' }, by: { type: 'string' } },
        },
      },
    },
  },
});

function specOf({ object }: Review['request']): { path: string; keep?: number } {
  return object?.['spec'] as { path: string; keep?: number };
}

/** v1 has `source: host:/path`, v2 has separate fields. */
function converted(object: { spec: Record<string, unknown> }, apiVersion: string): object {
  const { source, host, path, ...rest } = object.spec;
  const [first, second] = String(source).split(':');
  const spec =
    apiVersion === 'lab.test/v2' ? { host: first, path: second, ...rest } : { source: `${host}:${path}`, ...rest };
  return { ...object, apiVersion, spec };
}

describe('life cycle of an operator', () => {
  let store: MemoryStore;
  let server: TestServer;
  let hooks: WebhookServer;
  const operators = new Map<string, ChildProcess>();
  const call = (method: string, path: string, body?: unknown): Promise<Answer<Doc>> =>
    server.call<Doc>(method, path, body === undefined ? {} : { body });

  /** Polls for long, because controllers are asynchronous and the machine may be busy. */
  async function eventually<T>(what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const found = await probe();
      if (found !== undefined && found !== false) return found;
      assert.ok(Date.now() < end, `${what} did not happen`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  const backup = async (name: string): Promise<Doc | undefined> => {
    const { code, body } = await call('GET', `${at('v2')}/${name}`);
    return code === 200 ? body : undefined;
  };
  const done = (name: string, generation: number): Promise<Doc> =>
    eventually(`${name} is done`, async () => {
      const found = await backup(name);
      return found?.status?.phase === 'Done' && found.status.observedGeneration === generation && found;
    });
  const leader = async (): Promise<string> =>
    String(
      (await call('GET', '/apis/coordination.k8s.io/v1/namespaces/default/leases/backup-operator')).body.spec?.[
        'holderIdentity'
      ],
    );

  before(async () => {
    store = createMemoryStore();
    server = await startServer({ store });
    hooks = await WebhookServer.start();
    hooks.on('/convert', (review) => {
      const { request } = review as unknown as {
        request: { uid: string; objects: { spec: Record<string, unknown> }[]; desiredAPIVersion: string };
      };
      const convertedObjects = request.objects.map((object) => converted(object, request.desiredAPIVersion));
      return JSON.stringify({
        ...review,
        response: { uid: request.uid, result: { status: 'Success' }, convertedObjects },
      });
    });
    hooks.on('/mutate', ({ request }) =>
      specOf(request).keep === undefined ? patchOf({ op: 'add', path: '/spec/keep', value: 3 }) : { allowed: true },
    );
    hooks.on('/validate', ({ request }) => {
      const { path } = specOf(request);
      return path.startsWith('/')
        ? { allowed: true }
        : { allowed: false, status: { message: `${path} is not absolute` } };
    });
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'backups.lab.test' },
      spec: {
        group: 'lab.test',
        scope: 'Namespaced',
        names: { plural: 'backups', kind: 'Backup' },
        versions: [
          version('v1', { source: { type: 'string' } }, false),
          version('v2', { host: { type: 'string' }, path: { type: 'string' } }, true),
        ],
        conversion: {
          strategy: 'Webhook',
          webhook: {
            conversionReviewVersions: ['v1'],
            clientConfig: (hooks.hook('/convert') as { clientConfig: object }).clientConfig,
          },
        },
      },
    };
    assert.equal((await call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)).code, 201);
    await eventually('served', async () => (await call('GET', at('v2'))).code === 200);
    const rules = [
      { operations: ['CREATE', 'UPDATE'], apiGroups: ['lab.test'], apiVersions: ['v2'], resources: ['backups'] },
    ];
    for (const kind of ['Mutating', 'Validating']) {
      const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
      const hook = hooks.hook(kind === 'Mutating' ? '/mutate' : '/validate', { rules });
      const body = {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: `${kind}WebhookConfiguration`,
        metadata: { name: 'backups' },
        webhooks: [hook],
      };
      assert.equal((await call('POST', path, body)).code, 201);
    }
    for (const name of ['left', 'right']) {
      const child = spawn(process.execPath, [CHILD, server.kubeconfig, name], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      operators.set(name, child);
    }
    // Waits until both have read their kubeconfig, which is deleted with the first API server.
    await Promise.all(Array.from(operators.values(), ({ stdout }) => once(stdout as Readable, 'data')));
  });
  after(async () => {
    for (const child of operators.values()) child.kill('SIGKILL');
    await hooks.stop();
    await server.stop();
    await store.close();
  });

  it('converts, mutates and validates objects created in the old version', async () => {
    const refused = await call('POST', at('v1'), {
      apiVersion: 'lab.test/v1',
      kind: 'Backup',
      metadata: { name: 'bad' },
      spec: { source: 'db:relative' },
    });
    assert.equal(refused.code, 400);
    assert.match(refused.body.message ?? '', /denied the request: relative is not absolute/);
    const made = await call('POST', at('v1'), {
      apiVersion: 'lab.test/v1',
      kind: 'Backup',
      metadata: { name: 'first' },
      spec: { source: 'db:/var/lib' },
    });
    assert.equal(made.code, 201);
    assert.deepEqual(made.body.spec, { source: 'db:/var/lib', keep: 3 });
    assert.deepEqual((await backup('first'))?.spec, { host: 'db', path: '/var/lib', keep: 3 });
  });

  it('only the leader reconciles, and a status update does not change the generation', async () => {
    const { status, metadata } = await done('first', 1);
    assert.equal(metadata.generation, 1);
    assert.deepEqual(metadata.finalizers, ['lab.test/cleanup']);
    const holders = store
      .history()
      .filter(({ event }) => event.kv.key.endsWith('/backup-operator'))
      .map(({ event }) => (JSON.parse(Buffer.from(event.kv.value).toString()) as Doc).spec['holderIdentity']);
    assert.ok(holders.includes(status?.by), `${status?.by} wrote, ${holders.join(', ')} held the lease`);
    const made = await call('GET', '/api/v1/namespaces/default/configmaps/made-for-first');
    assert.deepEqual(made.body.data, { source: 'db/var/lib', keep: '3' });
    assert.equal((await call('GET', `${at('v1')}/first`)).body.spec['source'], 'db:/var/lib');
  });

  it('an operator continues after a restart of the API server', async () => {
    const { port } = server;
    await server.stop(true);
    server = await startServer({ store, config: { port } });
    await eventually('served again', async () => (await call('GET', at('v2'))).code === 200);
    const changed = await server.call<Doc>('PATCH', `${at('v2')}/first`, {
      raw: '{"spec":{"keep":5}}',
      type: 'application/merge-patch+json',
    });
    assert.equal(changed.body.metadata.generation, 2);
    await done('first', 2);
    const made = await call('GET', '/api/v1/namespaces/default/configmaps/made-for-first');
    assert.equal(made.body.data?.['keep'], '5');
  });

  it('a standby takes over from a killed operator, and runs finalizers before the deletion', async () => {
    const killed = await leader();
    const child = operators.get(killed) as ChildProcess;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    const deleted = await call('DELETE', `${at('v2')}/first`);
    assert.equal(deleted.code, 200);
    assert.ok((await backup('first')) !== undefined, 'the finalizer holds it');
    await eventually('gone', async () => (await backup('first')) === undefined);
    assert.notEqual(await leader(), killed);
    assert.equal((await call('GET', '/api/v1/namespaces/default/configmaps/made-for-first')).code, 404);
    const types = store
      .history()
      .filter(({ event }) => event.kv.key.includes('/backups/') && event.kv.key.endsWith('/first'))
      .map(({ event }) => event.type);
    assert.equal(types.filter((type) => type === 'delete').length, 1);
  });
});
