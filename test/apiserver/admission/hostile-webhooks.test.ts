/** Admission webhooks with malicious or invalid responses. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { slack } from '../../support/slack.ts';
import { startServer, type TestServer } from '../harness.ts';
import { configure, patchOf, unconfigure, WebhookServer } from './webhook-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

interface Answer {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: Record<string, unknown>;
  readonly metadata?: { readonly name?: string; readonly namespace?: string; readonly uid?: string };
  readonly data?: Record<string, string>;
}

describe('hostile admission webhooks', { concurrency: false, timeout: 120_000 }, () => {
  let server: TestServer;
  let hooks: WebhookServer;
  let serial = 0;
  before(async () => {
    [server, hooks] = [await startServer(), await WebhookServer.start()];
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  afterEach(() => unconfigure(server));
  const create = (accept?: string) =>
    server.call<Answer>('POST', MAPS, {
      body: { metadata: { name: `h${++serial}` } },
      ...(accept === undefined ? {} : { headers: { accept } }),
    });

  it('sanitizes webhook rejections whose details have wrong types, large sizes or line breaks', async () => {
    await configure(server, 'Validating', 'a', hooks.hook('/deny'));
    const hostile: readonly Record<string, unknown>[] = [
      { retryAfterSeconds: '5\r\nset-cookie: a=b' },
      { retryAfterSeconds: -1 },
      { retryAfterSeconds: 1e300 },
      { causes: 5 },
      { causes: [null, 'x', { message: 7, field: {}, reason: [] }] },
      { causes: Array.from({ length: 10_000 }, () => ({ message: 'x'.repeat(100) })) },
      { name: { a: 1 }, kind: ['x'], uid: 3, group: null },
      { name: 'n'.repeat(1 << 20) },
      JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"name": "x"}}') as Record<string, unknown>,
    ];
    for (const details of hostile) {
      hooks.on('/deny', () => ({ allowed: false, status: { message: 'no', code: 422, reason: 'toString', details } }));
      for (const accept of ['application/json', 'application/vnd.kubernetes.protobuf']) {
        const { code, text, headers } = await create(accept);
        const shown = JSON.stringify(details).slice(0, 100);
        assert.equal(code, 422, `${shown}: ${text.slice(0, 200)}`);
        assert.ok(text.length < 64 * 1024, `${shown}: ${text.length} bytes`);
        assert.equal(headers['set-cookie'], undefined);
        assert.match(String(headers['retry-after'] ?? '0'), /^\d{1,5}$/, shown);
      }
    }
    const { body } = await create();
    assert.equal(body.reason, 'Invalid');
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('rejects expensive, deep and destructive webhook patches within the time limit; prototype names are plain data', async () => {
    await configure(server, 'Mutating', 'a', hooks.hook('/patch'));
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const list = Array.from({ length: 500_000 }, () => 0);
    const bombs: readonly (() => object)[] = [
      () => ({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from(deep).toString('base64') }),
      () =>
        patchOf(
          { op: 'add', path: '/x', value: list },
          ...Array.from({ length: 9_000 }, () => ({ op: 'add', path: '/x/0', value: 0 })),
        ),
      () =>
        patchOf(
          { op: 'add', path: '/x', value: list },
          ...Array.from({ length: 9_000 }, () => ({ op: 'move', from: '/x/1', path: '/x/0' })),
        ),
      () =>
        patchOf(
          { op: 'add', path: '/x', value: ['x'.repeat(1000)] },
          ...Array.from({ length: 20 }, () => ({ op: 'copy', from: '/x', path: '/x/0' })),
        ),
      () => patchOf({ op: 'add', path: '', value: 5 }),
      () => patchOf({ op: 'remove', path: '/metadata' }),
      () => patchOf({ op: 'replace', path: '/metadata', value: null }),
      () => patchOf({ op: 'replace', path: '/metadata/labels', value: [] }),
    ];
    for (const [index, bomb] of bombs.entries()) {
      hooks.on('/patch', bomb);
      const began = performance.now();
      const { code, text } = await create();
      assert.ok(code >= 400 && code < 600, `${index}: ${code} ${text.slice(0, 200)}`);
      if (index === 1 || index === 2) assert.match(text, /may not shift more than 100000000 items/);
      assert.ok(performance.now() - began < 3_000 * slack(), `${index}: ${performance.now() - began} ms`);
    }
    hooks.on('/patch', () =>
      patchOf(
        { op: 'add', path: '/__proto__', value: { polluted: true } },
        { op: 'add', path: '/metadata/labels', value: {} },
        { op: 'add', path: '/metadata/labels/__proto__', value: 'x' },
        { op: 'add', path: '/constructor', value: { prototype: { polluted: true } } },
      ),
    );
    await create();
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
  });

  it('a webhook cannot change the identity of an object', async () => {
    const first = await create();
    assert.equal(first.code, 201, first.text);
    const { name = '', uid } = first.body.metadata ?? {};
    await configure(server, 'Mutating', 'a', hooks.hook('/identity'));
    for (const [field, value] of [
      ['name', 'other'],
      ['namespace', 'kube-system'],
      ['uid', 'forged'],
    ] as const) {
      hooks.on('/identity', () => patchOf({ op: 'add', path: `/metadata/${field}`, value }));
      const { code } = await server.call<Answer>('PUT', `${MAPS}/${name}`, {
        body: { metadata: { name }, data: { [field]: value } },
      });
      const now = await server.call<Answer>('GET', `${MAPS}/${name}`);
      assert.deepEqual([now.body.metadata?.name, now.body.metadata?.uid], [name, uid], field);
      if (code === 200) continue;
      assert.ok(code === 400 || code === 409 || code === 422, `${field}: ${code}`);
    }
    for (const [path, field, value] of [
      ['/api/v1/namespaces/kube-system/configmaps/other', 'namespace', 'kube-system'],
      [`${MAPS}/other`, 'name', 'other'],
    ] as const)
      assert.equal((await server.call('GET', path)).code, 404, `${field} ${value}`);
    hooks.on('/identity', () => patchOf({ op: 'add', path: '/metadata/namespace', value: 'kube-system' }));
    assert.equal((await create()).code, 400);
  });

  it('subresource bodies keep their kind after any webhook patch', async () => {
    const pods = '/api/v1/namespaces/default/pods';
    const pod = { metadata: { name: 'hostile' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const template = { metadata: { labels: { a: 'b' } }, spec: pod.spec };
    const deployments = '/apis/apps/v1/namespaces/default/deployments';
    const spec = { selector: { matchLabels: { a: 'b' } }, template, replicas: 0 };
    for (const [path, body] of [
      ['/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } }],
      [pods, pod],
      [deployments, { metadata: { name: 'hostile' }, spec }],
    ] as const) {
      const made = await server.call('POST', path, { body });
      assert.equal(made.code, 201, made.text);
    }
    const all = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['pods/*', 'deployments/*'] }];
    await configure(server, 'Mutating', 'a', hooks.hook('/sub', { rules: all }));
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'hostile' }, spec: { replicas: 1 } };
    for (const value of ['lots', { a: 1 }, 1.5, [], true]) {
      hooks.on('/sub', () => patchOf({ op: 'add', path: '/spec/replicas', value }));
      const { code } = await server.call('PUT', `${deployments}/hostile/scale`, { body: scale });
      assert.ok(code >= 400, `${JSON.stringify(value)}: ${code}`);
      const { body } = await server.call<{ spec: { replicas: unknown } }>('GET', `${deployments}/hostile`);
      assert.equal(body.spec.replicas, 0, JSON.stringify(value));
    }
    const binding = { metadata: { name: 'hostile' }, target: { kind: 'Node', name: 'n1' } };
    for (const [field, value] of [
      ['annotations', { a: { b: 'c' } }],
      ['annotations', 'text'],
      ['labels', { 'no label!': 'x' }],
      ['labels', { a: 'x'.repeat(64) }],
    ] as const) {
      hooks.on('/sub', () => patchOf({ op: 'add', path: `/metadata/${field}`, value }));
      const { code } = await server.call('POST', `${pods}/hostile/binding`, { body: binding });
      assert.ok(code >= 400, `${JSON.stringify(value)}: ${code}`);
    }
    hooks.on('/sub', () => patchOf({ op: 'add', path: '/metadata/annotations', value: { a: 'b' } }));
    const bound = await server.call('POST', `${pods}/hostile/binding`, { body: binding });
    assert.equal(bound.code, 201, bound.text);
    const { body } = await server.call<{ metadata: { annotations: unknown } }>('GET', `${pods}/hostile`);
    assert.deepEqual(body.metadata.annotations, { a: 'b' });
  });

  it('a field named like a prototype property is plain data of a custom resource', async () => {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const definition = {
      metadata: { name: 'odds.hostile.example.com' },
      spec: {
        group: 'hostile.example.com',
        scope: 'Namespaced',
        names: { plural: 'odds', kind: 'Odd' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
    const made = await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      body: { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', ...definition },
    });
    assert.equal(made.code, 201, made.text);
    const odds = '/apis/hostile.example.com/v1/namespaces/default/odds';
    while ((await server.call('GET', odds)).code !== 200) await new Promise((resolve) => setTimeout(resolve, 10));
    const rules = [{ operations: ['*'], apiGroups: ['hostile.example.com'], apiVersions: ['*'], resources: ['*'] }];
    hooks.on('/odd', () => patchOf({ op: 'add', path: '/__proto__', value: { spec: { polluted: true } } }));
    await configure(server, 'Mutating', 'a', hooks.hook('/odd', { rules }));
    const { code, text } = await server.call('POST', odds, {
      body: { apiVersion: 'hostile.example.com/v1', kind: 'Odd', metadata: { name: 'one' } },
    });
    assert.equal(code, 201, text);
    assert.match(text, /"__proto__":\{"spec":\{"polluted":true\}\}/);
    assert.equal(({} as Record<string, unknown>)['spec'], undefined);
  });
});
