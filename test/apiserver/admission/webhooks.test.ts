/** Admission webhooks over TLS. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it, test } from 'node:test';
import { readAnswer } from '../../../src/apiserver/admission/webhooks/review-response.ts';
import { identityFor } from '../../../src/apiserver/webhooks/identities.ts';
import { startServer, type TestServer } from '../harness.ts';
import { configure, patchOf, type Review, unconfigure, WebhookServer } from './webhook-server.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';

interface Body {
  message: string;
  reason: string;
  code: number;
  data?: Record<string, string>;
  metadata: { name: string; uid: string; labels?: Record<string, string>; creationTimestamp: string };
}

test('webhook responses of v1 must have apiVersion, kind and uid; responses of v1beta1 need not', () => {
  const patch = Buffer.from('[]').toString('base64');
  const bare = { response: { allowed: true, patch } };
  assert.deepEqual(readAnswer(bare, 'u', 'v1beta1', true).patch, []);
  assert.equal(readAnswer(bare, 'u', 'v1beta1', false).patch, undefined);
  assert.throws(() => readAnswer(bare, 'u', 'v1', true), /expected webhook response of admission.k8s.io\/v1/);
  const typed = { ...bare, apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };
  assert.throws(() => readAnswer(typed, 'u', 'v1', true), /expected response.uid="u", got ""/);
  const known = { ...typed, response: { ...bare.response, uid: 'u' } };
  assert.throws(() => readAnswer(known, 'u', 'v1', true), /response.patch but not response.patchType/);
  assert.throws(() => readAnswer(known, 'u', 'v1', false), /response.patch must be empty/);
});

test('kubeconfig users are matched by the exact host, then by suffix, then by `*`', () => {
  const as = (name: string) => [name, { authorization: name }] as const;
  const names = ['a.test:443', 'a.test', '*.test:8443', '*.b.test', '*.test', '*'];
  const users = new Map(names.map(as));
  const chosen = (target: string) =>
    identityFor({ users, current: { authorization: 'current' } }, target)?.authorization;
  assert.deepEqual(
    ['a.test:443', 'a.test:444', 'x.b.test:443', 'c.test:443', 'c.test:8443', '127.0.0.1:443'].map(chosen),
    ['a.test:443', '*', '*.b.test', '*.test', '*.test:8443', '*'],
  );
  users.delete('*');
  assert.equal(chosen('127.0.0.1:443'), 'current');
  users.delete('a.test:443');
  assert.equal(chosen('a.test:443'), 'a.test');
  assert.equal(identityFor({ users: new Map() }, 'a.test:443'), undefined);
});

test('webhooks get the credentials of their kubeconfig users', async () => {
  const hooks = await WebhookServer.start();
  const identity = (authorization: string) => ({ users: new Map([[`127.0.0.1:${hooks.port}`, { authorization }]]) });
  const admission = { mutatingAs: identity('Bearer m'), validatingAs: identity('Basic v') };
  const server = await startServer({ config: { admission } });
  const responses: unknown[] = [];
  try {
    for (const path of ['/m', '/v'])
      hooks.on(path, (_review, response) => {
        responses.push([path, response.req.headers.authorization]);
        return { allowed: true };
      });
    await configure(server, 'Mutating', 'a', hooks.hook('/m'));
    await configure(server, 'Validating', 'a', hooks.hook('/v'));
    assert.equal((await server.call('POST', MAPS, { body: { metadata: { name: 'x' } } })).code, 201);
    assert.deepEqual(responses, [
      ['/m', 'Bearer m'],
      ['/v', 'Basic v'],
    ]);
  } finally {
    await server.stop();
    await hooks.stop();
  }
});

describe('admission webhooks', () => {
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
  afterEach(async () => {
    await unconfigure(server);
    hooks.seen.length = 0;
  });
  const call = (method: string, path: string, body?: unknown) =>
    server.call<Body>(method, path, body === undefined ? {} : { body });
  const map = (more: object = {}, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `m${++serial}`, ...metadata },
    ...more,
  });

  it('admission webhooks receive the admission request, and a rejection contains their message', async () => {
    hooks.on('/deny', () => ({ allowed: false, status: { message: 'not today', code: 403, reason: 'Forbidden' } }));
    await configure(server, 'Validating', 'a', hooks.hook('/deny'));
    const refused = await call('POST', MAPS, map({ data: { a: '1' } }));
    assert.equal(refused.code, 403);
    assert.equal(refused.body.message, 'admission webhook "deny.example.com" denied the request: not today');
    assert.equal(refused.body.reason, 'Forbidden');
    const [request] = hooks.take('/deny');
    assert.equal(request?.operation, 'CREATE');
    assert.deepEqual(request?.['kind'], { group: '', version: 'v1', kind: 'ConfigMap' });
    assert.deepEqual(request?.['resource'], { group: '', version: 'v1', resource: 'configmaps' });
    assert.equal(request?.['namespace'], 'default');
    assert.equal((request?.['userInfo'] as { username: string } | undefined)?.username, 'system:admin');
    assert.equal((request?.['options'] as { kind: string } | undefined)?.kind, 'CreateOptions');
    assert.equal(request?.dryRun, false);
    assert.deepEqual(request?.object?.['data'], { a: '1' });
    assert.equal(request?.oldObject, null);
    hooks.on('/deny', () => ({ allowed: false }));
    const wordless = await call('POST', MAPS, map());
    assert.equal(wordless.code, 400);
    assert.equal(wordless.body.message, 'admission webhook "deny.example.com" denied the request without explanation');
  });

  it('admission webhooks get a time-out of at most the request’s remaining time, and are not called after its deadline', async () => {
    hooks.on('/one', () => ({ allowed: true }));
    hooks.on('/two', () => undefined);
    hooks.on('/three', () => ({ allowed: true }));
    const ignored = { failurePolicy: 'Ignore' };
    await configure(server, 'Mutating', 'a', hooks.hook('/one', { timeoutSeconds: 3 }), hooks.hook('/three'));
    await configure(server, 'Validating', 'b', hooks.hook('/three', { timeoutSeconds: 30 }));
    assert.equal((await call('POST', `${MAPS}?timeout=20s`, map())).code, 201);
    const paths = hooks.seen.map(({ path }) => path);
    assert.deepEqual(paths.slice(0, 2), ['/one?timeout=3s', '/three?timeout=10s']);
    // Less than 20 seconds remain, even on a busy machine.
    assert.match(paths[2] ?? '', /^\/three\?timeout=(?:20|1\d)s$/);
    await unconfigure(server);
    hooks.seen.length = 0;
    await configure(server, 'Mutating', 'a', hooks.hook('/two', ignored), hooks.hook('/three', ignored));
    const late = await call('POST', `${MAPS}?timeout=400ms`, map());
    assert.equal(late.code, 504);
    assert.match(late.body.message, /^request did not complete within requested timeout/);
    assert.equal(late.body.reason, 'Timeout');
    await unconfigure(server);
    // The server completes this request after all work of the request that timed out.
    assert.equal((await call('POST', MAPS, map())).code, 201);
    for (const { path } of hooks.seen) assert.equal(path, '/two?timeout=1s');
    const odd = await call('GET', `${MAPS}?timeout=soon`);
    assert.deepEqual(
      [odd.code, odd.body.message],
      [400, 'invalid timeout specified in the request URL - time: invalid duration "soon"'],
    );
  });

  it('admission webhooks are called over kept-alive connections', async () => {
    const sockets = new Set<unknown>();
    hooks.on('/kept', (_review, response) => {
      sockets.add(response.socket);
      return { allowed: true };
    });
    await configure(server, 'Validating', 'a', hooks.hook('/kept'));
    for (let times = 0; times < 5; times += 1) assert.equal((await call('POST', MAPS, map())).code, 201);
    assert.equal(sockets.size, 1);
  });

  it('admission webhooks receive the old object of deletes and updates', async () => {
    hooks.on('/see', () => ({ allowed: true, warnings: ['mind the gap'] }));
    await configure(server, 'Validating', 'a', hooks.hook('/see'));
    const created = map({ data: { a: '1' } });
    const answer = await call('POST', MAPS, created);
    assert.equal(answer.code, 201, answer.text);
    assert.match(String(answer.headers['warning']), /mind the gap/);
    await call('PUT', `${MAPS}/${created.metadata.name}`, { ...created, data: { a: '2' } });
    await call('DELETE', `${MAPS}/${created.metadata.name}`);
    const [, update, removal] = hooks.take('/see');
    assert.deepEqual([update?.object?.['data'], update?.oldObject?.['data']], [{ a: '2' }, { a: '1' }]);
    assert.deepEqual([removal?.operation, removal?.object, removal?.oldObject?.['data']], ['DELETE', null, { a: '2' }]);
    assert.equal(removal?.['name'], created.metadata.name);
  });

  it('admission webhooks receive no name in a deletecollection, as upstream', async () => {
    const labelled = map({ data: { a: '1' } });
    const metadata = { ...labelled.metadata, labels: { gone: 'together' } };
    assert.equal((await call('POST', MAPS, { ...labelled, metadata })).code, 201);
    hooks.on('/see', () => ({ allowed: true }));
    await configure(server, 'Validating', 'a', hooks.hook('/see'));
    hooks.take('/see');
    assert.equal((await call('DELETE', `${MAPS}?labelSelector=gone%3Dtogether`)).code, 200);
    const seen = hooks.take('/see');
    assert.deepEqual(
      seen.map((each) => [each.operation, each['name'], each.oldObject?.['data']]),
      [['DELETE', undefined, { a: '1' }]],
    );
  });

  it('admission webhooks mutate objects in name order, but cannot change fields that the server sets', async () => {
    hooks.on('/first', () => patchOf({ op: 'add', path: '/data', value: { first: 'yes' } }));
    hooks.on('/second', ({ request }) =>
      patchOf(
        { op: 'test', path: '/data/first', value: 'yes' },
        { op: 'add', path: '/data/second', value: String(request.object?.metadata.name) },
        { op: 'add', path: '/metadata/uid', value: 'forged' },
        { op: 'add', path: '/metadata/labels', value: { x: 'y' } },
      ),
    );
    await configure(server, 'Mutating', 'b', hooks.hook('/second'));
    await configure(server, 'Mutating', 'a', hooks.hook('/first'));
    const created = map();
    const answer = await call('POST', MAPS, created);
    assert.equal(answer.code, 201, answer.text);
    assert.deepEqual(answer.body.data, { first: 'yes', second: created.metadata.name });
    assert.deepEqual(answer.body.metadata.labels, { x: 'y' });
    assert.notEqual(answer.body.metadata.uid, 'forged');
  });

  it('changes of admission webhooks are not owned by the updater, and invalid managedFields of webhooks are dropped', async () => {
    interface Owned {
      metadata: { managedFields?: { manager: string; fieldsV1: Record<string, unknown> }[] };
    }
    const created = map({ data: { a: '1' } });
    const path = `${MAPS}/${created.metadata.name}`;
    assert.equal((await call('POST', `${MAPS}?fieldManager=maker`, created)).code, 201);
    hooks.on('/own', ({ request }) => {
      // The order of the entries depends on whether a second has passed between the two writes.
      const owners = (request.object as unknown as Owned).metadata.managedFields?.map(({ manager }) => manager).sort();
      return patchOf({ op: 'add', path: '/data/seen', value: String(owners) });
    });
    await configure(server, 'Mutating', 'a', hooks.hook('/own'));
    const put = await call('PUT', `${path}?fieldManager=changer`, { ...created, data: { a: '1', b: '2' } });
    assert.deepEqual(put.body.data, { a: '1', b: '2', seen: 'changer,maker' });
    const owners = async () => (await server.call<Owned>('GET', path)).body.metadata.managedFields ?? [];
    const fieldsOf = async (name: string) => (await owners()).find(({ manager }) => manager === name)?.fieldsV1;
    assert.deepEqual(await fieldsOf('changer'), { 'f:data': { 'f:b': {} } });

    for (const [entry, fault] of [
      [{ manager: 'x' }, 'operation must be `Apply` or `Update`'],
      [{ manager: 'x', operation: 'Update' }, 'apiVersion must not be empty'],
      [{ manager: 'x', operation: 'Update', apiVersion: 'v1' }, 'missing fieldsType in managed fields entry 0'],
    ] as const) {
      hooks.on('/own', () => patchOf({ op: 'add', path: '/metadata/managedFields', value: [entry] }));
      const patched = await server.call('PATCH', `${path}?fieldManager=patcher`, {
        body: { data: { c: fault } },
        type: 'application/merge-patch+json',
      });
      assert.equal(patched.code, 200, patched.text);
      const warning = String(patched.headers['warning']);
      assert.match(warning, /managedFields was in an invalid state after admission/);
      assert.ok(warning.includes(fault), warning);
      assert.deepEqual(await fieldsOf('patcher'), { 'f:data': { 'f:c': {} } });
      const made = await server.call<Owned>('POST', `${MAPS}?fieldManager=other`, { body: map({ data: { d: '1' } }) });
      assert.ok(String(made.headers['warning']).includes(fault));
      assert.deepEqual(made.body.metadata.managedFields?.[0]?.fieldsV1, { 'f:data': { '.': {}, 'f:d': {} } });
    }
  });

  it('admission webhooks receive a deleted object in the version of the request, not in the storage version', async () => {
    const version = (name: string, storage: boolean) => ({
      name,
      served: true,
      storage,
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    });
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'vans.gone.example.com' },
      spec: {
        group: 'gone.example.com',
        scope: 'Namespaced',
        names: { plural: 'vans', kind: 'Van' },
        versions: [version('v1', true), version('v2', false)],
      },
    };
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    assert.equal((await call('POST', definitions, definition)).code, 201);
    const vans = (v: string) => `/apis/gone.example.com/${v}/namespaces/default/vans`;
    while ((await call('GET', vans('v2'))).code !== 200) await new Promise((resolve) => setTimeout(resolve, 10));
    hooks.on('/gone', () => ({ allowed: true }));
    const rules = [{ operations: ['DELETE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['vans'] }];
    await configure(server, 'Validating', 'a', hooks.hook('/gone', { rules }));
    for (const v of ['v1', 'v2']) {
      const van = { apiVersion: `gone.example.com/${v}`, kind: 'Van', metadata: { name: 'one' } };
      assert.equal((await call('POST', vans(v), van)).code, 201);
      assert.equal((await call('DELETE', `${vans(v)}/one`)).code, 200);
      const [seen] = hooks.take('/gone');
      assert.equal(seen?.oldObject?.['apiVersion'], `gone.example.com/${v}`);
    }
  });

  it('admission webhooks are reinvoked if their policy allows it and a later webhook changed the object', async () => {
    hooks.on('/early', ({ request }) =>
      request.object?.['data'] === undefined
        ? { allowed: true }
        : patchOf({ op: 'add', path: '/data/early', value: 'saw it' }),
    );
    hooks.on('/late', () => patchOf({ op: 'add', path: '/data', value: { late: '1' } }));
    await configure(server, 'Mutating', 'a', hooks.hook('/early', { reinvocationPolicy: 'IfNeeded' }));
    await configure(server, 'Mutating', 'b', hooks.hook('/late'));
    const answer = await call('POST', MAPS, map());
    assert.deepEqual(answer.body.data, { late: '1', early: 'saw it' });
    assert.equal(hooks.take('/early').length, 2);
  });

  it('admission webhooks are selected by rules, selectors and match conditions', async () => {
    const allow = () => ({ allowed: true });
    for (const path of ['/labels', '/spaces', '/conditions', '/scope', '/all']) hooks.on(path, allow);
    const everything = [{ operations: ['CREATE'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
    await configure(
      server,
      'Validating',
      'a',
      hooks.hook('/labels', { objectSelector: { matchLabels: { watched: 'yes' } } }),
      hooks.hook('/spaces', { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }),
      hooks.hook('/conditions', {
        matchConditions: [
          { name: 'big', expression: "has(object.data) && object.data.size == 'big'" },
          { name: 'not-nodes', expression: "!('system:nodes' in request.userInfo.groups)" },
        ],
      }),
      hooks.hook('/scope', { rules: [{ ...everything[0], scope: 'Cluster' }] }),
      hooks.hook('/all', { rules: everything }),
    );
    const requested = (): string[] => {
      const paths = hooks.seen.map(({ path }) => path.split('?', 1)[0] ?? '').sort();
      hooks.seen.length = 0;
      return paths;
    };
    await call('POST', MAPS, map());
    assert.deepEqual(requested(), ['/all']);
    await call('POST', MAPS, map({}, { labels: { watched: 'yes' } }));
    assert.deepEqual(requested(), ['/all', '/labels']);
    await call('POST', '/api/v1/namespaces/kube-system/configmaps', map({ data: { size: 'big' } }));
    assert.deepEqual(requested(), ['/all', '/conditions', '/spaces']);
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'ns-of-hooks' } });
    assert.deepEqual(requested(), ['/all', '/scope']);
    // Errors for exceeding the cost limit, of one condition and of all together, in upstream's wording.
    const asks = "authorizer.group('').resource('pods').check('create').allowed()";
    for (const [name, count, each, expectedWarnings] of [
      ['one', 1, 3, /operation cancelled: actual cost limit exceeded/],
      ['all', 8, 2, /validation failed due to running out of cost budget, no further validation rules will be run/],
    ] as const) {
      const expression = Array.from({ length: each }, () => asks).join(' && ');
      const matchConditions = Array.from({ length: count }, (_, index) => ({ name: `c${index}`, expression }));
      await configure(server, 'Validating', name, hooks.hook('/labels', { matchConditions }));
      const dear = await server.call('POST', '/api/v1/namespaces/default/configmaps', { body: { metadata: { name } } });
      assert.match(dear.text, expectedWarnings);
      await server.call('DELETE', `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${name}`);
    }
    const wrong = hooks.hook('/labels', { matchConditions: [{ name: 'x', expression: 'object.' }] });
    await assert.rejects(configure(server, 'Validating', 'b', wrong), /matchConditions\[0\]\.expression/);
  });

  it('admission webhooks receive the version in their rules, unless the match policy is Exact', async () => {
    hooks.on('/known', () => patchOf({ op: 'add', path: '/metadata/labels', value: { seen: 'v1' } }));
    hooks.on('/exact', () => ({ allowed: true }));
    const rules = [{ operations: ['CREATE'], apiGroups: ['policy'], apiVersions: ['v1'], resources: ['*'] }];
    await configure(
      server,
      'Mutating',
      'a',
      hooks.hook('/known', { rules }),
      hooks.hook('/exact', { rules, matchPolicy: 'Exact' }),
    );
    const answer = await call('POST', '/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets', {
      apiVersion: 'policy/v1beta1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'p' },
      spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
    });
    assert.equal(answer.code, 201, answer.text);
    assert.deepEqual(answer.body.metadata.labels, { seen: 'v1' });
    const paths = hooks.seen.map(({ path }) => path.split('?', 1)[0]);
    assert.deepEqual(paths, ['/known']);
    const [request] = hooks.take('/known');
    assert.deepEqual(request?.['kind'], { group: 'policy', version: 'v1', kind: 'PodDisruptionBudget' });
    assert.deepEqual(request?.['requestKind'], { group: 'policy', version: 'v1beta1', kind: 'PodDisruptionBudget' });
    assert.equal(request?.object?.['apiVersion'], 'policy/v1');
  });

  it('admission webhooks are called for subresources: binding, eviction, scale', async () => {
    hooks.on('/subs', () => ({ allowed: false, status: { message: 'no' } }));
    const rules = [
      { operations: ['*'], apiGroups: ['', 'apps'], apiVersions: ['v1'], resources: ['*/scale', 'pods/*'] },
    ];
    const pod = { metadata: { name: 'p1' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'default' } });
    assert.equal((await call('POST', '/api/v1/namespaces/default/pods', pod)).code, 201);
    const template = { metadata: { labels: { a: 'b' } }, spec: pod.spec };
    const deployment = { metadata: { name: 'd1' }, spec: { selector: { matchLabels: { a: 'b' } }, template } };
    assert.equal((await call('POST', '/apis/apps/v1/namespaces/default/deployments', deployment)).code, 201);
    await configure(server, 'Validating', 'a', hooks.hook('/subs', { rules }));
    const at = '/api/v1/namespaces/default/pods/p1';
    const bound = await call('POST', `${at}/binding`, {
      metadata: { name: 'p1' },
      target: { kind: 'Node', name: 'n' },
    });
    const evicted = await call('POST', `${at}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p1' },
    });
    const scaled = await call('PATCH', '/apis/apps/v1/namespaces/default/deployments/d1/scale', undefined);
    assert.equal(scaled.code, 415);
    const put = await call('PUT', '/apis/apps/v1/namespaces/default/deployments/d1/scale', {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'd1' },
      spec: { replicas: 5 },
    });
    for (const each of [bound, evicted, put]) assert.match(each.body.message, /denied the request: no$/, each.text);
    const seen = hooks
      .take('/subs')
      .map((each) => [each.operation, (each['kind'] as { kind: string }).kind, each['subResource']]);
    assert.deepEqual(seen, [
      ['CREATE', 'Binding', 'binding'],
      ['CREATE', 'Eviction', 'eviction'],
      ['UPDATE', 'Scale', 'scale'],
    ]);
  });

  it('admission webhooks are called for reviews, legacy bindings, namespaces, evictions and pod connections', async () => {
    hooks.on('/all', () => ({ allowed: true }));
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
    const spec = { serviceAccountName: 'plain', containers: [{ name: 'c', image: 'i' }] };
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'plain' } });
    for (const name of ['p2', 'p3']) {
      const made = await call('POST', '/api/v1/namespaces/default/pods', { metadata: { name }, spec });
      assert.equal(made.code, 201, made.text);
    }
    await configure(server, 'Mutating', 'a', hooks.hook('/all', { rules }));
    const at = '/api/v1/namespaces/default';
    await call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      spec: { nonResourceAttributes: { path: '/x', verb: 'get' } },
    });
    await call('POST', `${at}/bindings`, { metadata: { name: 'p2' }, target: { kind: 'Node', name: 'n' } });
    await call('POST', '/api/v1/namespaces', { metadata: { name: 'inner' } });
    await call('PATCH', '/api/v1/namespaces/inner', undefined);
    await call('POST', `${at}/pods/p3/eviction`, {
      apiVersion: 'policy/v1beta1',
      kind: 'Eviction',
      metadata: { name: 'p3' },
    });
    await call('POST', `${at}/pods/nobody/exec?command=x`);
    const seen = hooks
      .take('/all')
      .map((each) => [
        each.operation,
        (each['resource'] as { resource: string }).resource,
        each['subResource'],
        (each['kind'] as { kind: string }).kind,
        each.object?.['apiVersion'],
        each['namespace'],
        each['name'],
      ]);
    assert.deepEqual(seen, [
      [
        'CREATE',
        'selfsubjectaccessreviews',
        undefined,
        'SelfSubjectAccessReview',
        'authorization.k8s.io/v1',
        undefined,
        undefined,
      ],
      ['CREATE', 'bindings', undefined, 'Binding', 'v1', 'default', 'p2'],
      ['CREATE', 'namespaces', undefined, 'Namespace', 'v1', 'inner', 'inner'],
      ['CREATE', 'pods', 'eviction', 'Eviction', 'policy/v1', 'default', 'p3'],
      ['CONNECT', 'pods', 'exec', 'PodExecOptions', 'v1', 'default', 'nobody'],
    ]);
  });

  it('admission webhooks are reinvoked if a built-in plug-in changed the object after the webhook', async () => {
    const classes = '/apis/scheduling.k8s.io/v1/priorityclasses';
    assert.equal((await call('POST', classes, { metadata: { name: 'high' }, value: 10 })).code, 201);
    await call('POST', '/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'plain' } });
    hooks.on('/class', ({ request }) =>
      (request.object?.['spec'] as { priorityClassName?: string } | undefined)?.priorityClassName === 'high'
        ? { allowed: true }
        : patchOf(
            { op: 'add', path: '/spec/priorityClassName', value: 'high' },
            { op: 'remove', path: '/spec/priority' },
          ),
    );
    hooks.on('/label', () => patchOf({ op: 'add', path: '/metadata/labels', value: { a: 'b' } }));
    const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }];
    const pod = (name: string) => ({
      metadata: { name },
      spec: { serviceAccountName: 'plain', containers: [{ name: 'c', image: 'i' }] },
    });
    for (const [path, calls] of [
      ['/class', 2],
      ['/label', 1],
    ] as const) {
      await configure(server, 'Mutating', path.slice(1), hooks.hook(path, { rules, reinvocationPolicy: 'IfNeeded' }));
      const made = await call('POST', '/api/v1/namespaces/default/pods', pod(`again-${calls}`));
      assert.equal(made.code, 201, made.text);
      assert.equal(hooks.take(path).length, calls);
      await unconfigure(server);
    }
  });

  it('admission webhooks are not called for webhook configurations', async () => {
    hooks.on('/none', () => ({ allowed: false }));
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }];
    await configure(server, 'Validating', 'a', hooks.hook('/none', { rules }));
    await configure(server, 'Validating', 'b', hooks.hook('/none', { rules }));
    await unconfigure(server);
    assert.equal(hooks.seen.length, 0);
  });
});

describe('faulty webhooks', () => {
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
  const create = () => server.call<Body>('POST', MAPS, { body: { metadata: { generateName: 'x-' } } });
  const hostile: Record<string, { behaviour: Parameters<WebhookServer['on']>[1]; says: RegExp; mutating?: boolean }> = {
    'that are slow': { behaviour: () => undefined, says: /Post "https:.*\?timeout=1s": context deadline exceeded/ },
    'with the UID of another request': {
      behaviour: () => ({ allowed: true, uid: 'x' }),
      says: /expected response\.uid=.*, got "x"/,
    },
    'with too large responses': {
      behaviour: (_, raw) => {
        raw.end(`"${'x'.repeat(17 * 1024 * 1024)}"`);
        return undefined;
      },
      says: /larger than/,
    },
    'that redirect to themselves': {
      behaviour: (_, raw) => {
        raw.writeHead(307, { location: '/good' }).end();
        return undefined;
      },
      says: /the webhook attempted to redirect the request, which is not permitted/,
    },
    'that redirect to a port of the control plane': {
      behaviour: (_, raw) => {
        raw.writeHead(302, { location: 'https://127.0.0.1:2379/v3/kv/range' }).end();
        return undefined;
      },
      says: /the webhook attempted to redirect the request, which is not permitted/,
    },
    'with a review without a response': {
      behaviour: () => '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
      says: /absent/,
    },
    'with a response that is not JSON': { behaviour: () => 'nonsense', says: /failed to call webhook/ },
    'with malformed patches': {
      behaviour: () => ({ allowed: true, patchType: 'JSONPatch', patch: Buffer.from('{"a"').toString('base64') }),
      says: /received invalid webhook response/,
      mutating: true,
    },
    'that validate and return a patch': {
      behaviour: () => patchOf({ op: 'add', path: '/data', value: {} }),
      says: /for validating webhook, response\.patch must be empty/,
    },
  };
  for (const [name, { behaviour, says, mutating }] of Object.entries(hostile)) {
    it(`faulty webhooks ${name} reject the request by default, and admit the request with failurePolicy Ignore`, async () => {
      const kind = mutating === true ? 'Mutating' : 'Validating';
      // Only the slow webhook has a short time-out, because large responses take long on a busy machine.
      const timeoutSeconds = name === 'that are slow' ? 1 : 20;
      hooks.on('/bad', behaviour);
      hooks.on('/good', () => ({ allowed: true }));
      await configure(server, kind, 'a', hooks.hook('/bad', { timeoutSeconds }));
      const refused = await create();
      assert.equal(refused.code, 500, refused.text);
      assert.match(refused.body.message, /^Internal error occurred: failed calling webhook "bad\.example\.com": /);
      assert.match(refused.body.message, says);
      await unconfigure(server);
      await configure(server, kind, 'a', hooks.hook('/bad', { timeoutSeconds, failurePolicy: 'Ignore' }));
      assert.equal((await create()).code, 201);
      assert.equal(hooks.take('/good').length, 0);
    });
  }

  it('normalizes the path of a webhook as client-go does', async () => {
    const allowed = (review: Review) => ({ allowed: review.request.operation === 'CREATE' });
    hooks.on('/a/b', allowed);
    for (const path of ['//a/b', '/a//b/', '/x/../a/./b']) {
      await configure(server, 'Validating', 'a', hooks.hook(path, { name: 'joined.example.com' }));
      const created = await create();
      assert.equal(created.code, 201, `${path}: ${created.text}`);
      assert.equal(hooks.take('/a/b').length, 1, path);
      await unconfigure(server);
    }
  });

  it('rejects a request if the patch of a webhook does not apply, and prevents patches of prototypes', async () => {
    hooks.on('/bad', () => patchOf({ op: 'replace', path: '/nowhere/at/all', value: 1 }));
    await configure(server, 'Mutating', 'a', hooks.hook('/bad', { failurePolicy: 'Ignore' }));
    assert.equal((await create()).code, 500);
    hooks.on('/bad', () => patchOf({ op: 'add', path: '/__proto__/polluted', value: 1 }));
    await create();
    assert.equal(({} as { polluted?: number }).polluted, undefined);
    hooks.on('/bad', () => patchOf({ op: 'replace', path: '/metadata', value: 5 }));
    const wrong = await create();
    assert.equal(wrong.code, 500, wrong.text);
  });

  it('counts calls and rejections of webhooks in metrics', async () => {
    hooks.on('/bad', () => ({ allowed: false }));
    await configure(server, 'Validating', 'a', hooks.hook('/bad'));
    await create();
    const { text } = await server.call('GET', '/metrics');
    assert.match(text, /apiserver_admission_webhook_rejection_count\{error_type="no_error",name="bad\.example\.com"/);
    assert.match(
      text,
      /apiserver_admission_webhook_fail_open_count\{name="bad\.example\.com",type="validating"\} [1-9]/,
    );
    assert.match(text, /apiserver_admission_webhook_admission_duration_seconds_count\{name="bad\.example\.com"/);
  });
});

describe('a webhook that is a service', () => {
  it('a webhook that is a service without ready endpoints rejects the request, and the error names the service', async () => {
    const [server, hooks] = [await startServer(), await WebhookServer.start()];
    try {
      const at = '/api/v1/namespaces/default/services';
      const spec = { clusterIP: 'None', ports: [{ name: 'https', port: 443 }] };
      await server.call('POST', at, { body: { metadata: { name: 'hook' }, spec } });
      const slice = {
        metadata: { name: 'hook-1', labels: { 'kubernetes.io/service-name': 'hook' } },
        addressType: 'IPv4',
        ports: [{ name: 'https', port: hooks.port, protocol: 'TCP' }],
        endpoints: [{ addresses: ['127.0.0.1'], conditions: { ready: true } }],
      };
      const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
      const made = await server.call('POST', slices, { body: slice });
      // Endpoints must not be loopback addresses, and the test's webhook listens only there.
      assert.equal(made.code, 422, made.text);
      const clientConfig = { service: { namespace: 'default', name: 'hook' }, caBundle: hooks.caBundle };
      await configure(server, 'Validating', 'a', hooks.hook('/x', { clientConfig }));
      const refused = await server.call<Body>('POST', MAPS, { body: { metadata: { name: 'x' } } });
      assert.match(
        refused.body.message,
        /Post "https:\/\/hook\.default\.svc:443\/\?timeout=10s": no endpoints available for service "hook"/,
      );
    } finally {
      await server.stop();
      await hooks.stop();
    }
  });
});

test('a webhook that rejects everything does not prevent a server from becoming ready', async () => {
  const first = await startServer();
  const hooks = await WebhookServer.start();
  let second: TestServer | undefined;
  try {
    const rules = [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }];
    hooks.on('/no', () => ({ allowed: false }));
    await configure(first, 'Validating', 'a', hooks.hook('/no', { rules }));
    assert.equal((await first.call('POST', MAPS, { body: { metadata: { name: 'x' } } })).code, 400);
    // The second server has another address, so it must write objects to start.
    second = await startServer({
      store: first.store,
      config: { advertiseAddress: '192.0.2.11', soleWriter: false },
    });
    const deadline = Date.now() + 30_000;
    while ((await second.call('GET', '/readyz')).code !== 200 && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal((await second.call('GET', '/readyz')).code, 200);
    assert.equal((await second.call('POST', MAPS, { body: { metadata: { name: 'x' } } })).code, 400);
  } finally {
    await second?.stop(true);
    await first.stop();
    await hooks.stop();
  }
});
