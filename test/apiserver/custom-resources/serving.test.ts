/** Custom resources on a complete server, from the definition to its deletion. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';
import { CRONTAB, cronTabs, until } from './crontab.ts';
import { define } from './definition.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const PATH = '/apis/stable.example.com/v1/namespaces/default/crontabs';

type Body = Record<string, unknown> & {
  metadata: Record<string, unknown>;
  spec: Record<string, unknown>;
  status: Record<string, unknown> & { conditions: { type: string; status: string; reason: string }[] };
  message: string;
  items: Body[];
  resources: Record<string, unknown>[];
  rows: { cells: unknown[] }[];
  columnDefinitions: { name: string; type: string }[];
};

describe('custom resources', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown, options = {}) =>
    server.call<Body>(method, path, { ...(body === undefined ? {} : { body }), ...options });
  const ct = (name: string, spec: unknown, more = {}) => ({
    apiVersion: 'stable.example.com/v1',
    kind: 'CronTab',
    metadata: { name },
    spec,
    ...more,
  });

  it('custom resources are not served before their definition exists', async () => {
    assert.equal((await call('GET', PATH)).code, 404);
  });

  it('custom resources are served once the definition is established', async () => {
    const created = await call('POST', DEFINITIONS, cronTabs());
    assert.equal(created.code, 201, created.text);
    assert.equal(created.body.metadata['generation'], 1);
    assert.deepEqual(created.body.status['storedVersions'], ['v1']);
    const definition = await until('established', async () => {
      const { body } = await call('GET', `${DEFINITIONS}/${CRONTAB}`);
      return body.status.conditions.some((each) => each.type === 'Established' && each.status === 'True') && body;
    });
    assert.deepEqual(
      definition.status.conditions.map((each) => [each.type, each.status, each.reason]),
      [
        ['NamesAccepted', 'True', 'NoConflicts'],
        ['Established', 'True', 'InitialNamesAccepted'],
      ],
    );
    await until('served', async () => (await call('GET', PATH)).code === 200);
    const list = await call('GET', PATH);
    assert.equal(list.body['kind'], 'CronTabList');
    assert.equal(list.body['apiVersion'], 'stable.example.com/v1');
  });

  it('custom resources with invalid stored fields are served without the fields, and can be updated and deleted', async () => {
    const stored = {
      ...ct('damaged', { cronSpec: '* * * * *', replicas: 1 }),
      metadata: {
        name: 'damaged',
        namespace: 'default',
        generation: null,
        odd: 1,
        annotations: { a: 1, b: 'x' },
        labels: { l: 'x y' },
      },
    };
    const key = '/registry/stable.example.com/crontabs/default/damaged';
    const put = () => server.store.commit({ guards: [], puts: [{ key, value: Buffer.from(JSON.stringify(stored)) }] });
    await put();
    const { metadata } = await until('in the cache', async () => {
      const { code, body } = await call('GET', `${PATH}/damaged`);
      return code === 200 && body;
    });
    const { resourceVersion: _, ...shown } = metadata;
    assert.deepEqual(shown, { name: 'damaged', namespace: 'default', generation: 1, labels: { l: 'x y' } });
    const patch = (labels: unknown) =>
      call('PATCH', `${PATH}/damaged`, { metadata: { labels } }, { type: 'application/merge-patch+json' });
    const refused = await patch({ other: 'y' });
    assert.equal(refused.code, 422, refused.text);
    const mended = await patch({ l: 'x' });
    assert.equal(mended.code, 200, mended.text);
    assert.equal((await call('DELETE', `${PATH}/damaged`)).code, 200);
  });

  it('custom resources get defaults of embedded metadata, without unknown metadata fields', async () => {
    const name = { type: 'string' };
    const meta = { type: 'object', properties: { name }, default: { name: 'Bar', odd: 1 } };
    const resource = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { metadata: meta },
    };
    await define(server, 'embedding.example.com', 'Box', { held: resource });
    const path = '/apis/embedding.example.com/v1/namespaces/default/boxs';
    const made = await until('served', async () => {
      const answer = await call('POST', path, {
        apiVersion: 'embedding.example.com/v1',
        kind: 'Box',
        metadata: { name: 'a' },
        held: { apiVersion: 'v1', kind: 'Thing', kept: 1 },
      });
      return answer.code === 201 && answer;
    });
    assert.deepEqual(made.body['held'], { apiVersion: 'v1', kind: 'Thing', kept: 1, metadata: { name: 'Bar' } });
    assert.deepEqual((await call('GET', `${path}/a`)).body['held'], made.body['held']);
    // Across all namespaces, custom resources can only be read.
    const above = '/apis/embedding.example.com/v1/boxs';
    assert.equal((await call('GET', above)).code, 200);
    assert.equal((await call('POST', above, {})).code, 404);
    assert.equal((await call('DELETE', above)).code, 404);
  });

  it('custom resources require apiVersion and kind', async () => {
    const answers = [
      ['null', 400, "unrecognized (must be of type CronTab): Object 'Kind' is missing in 'null' (6e756c6c)"],
      ['{"metadata":{}}', 400, `Object 'Kind' is missing in '{"metadata":{}}' ({"metadata":{}})`],
      ['{"kind":"CronTab"}', 400, 'the API version in the data () does not match the expected API version'],
      [
        '{"apiVersion":"stable.example.com/v1","kind":"Other","metadata":{"name":"x"}}',
        422,
        'Other.stable.example.com "x" is invalid: kind: Invalid value: "Other": must be CronTab',
      ],
    ] as const;
    for (const [text, code, message] of answers) {
      const answer = await call('POST', PATH, undefined, { raw: text });
      assert.equal(answer.code, code, text);
      assert.ok(answer.body.message.includes(message), answer.body.message);
    }
  });

  it('custom resources are in discovery', async () => {
    const groups = await call('GET', '/apis');
    assert.ok(groups.text.includes('"stable.example.com/v1"'));
    const { body } = await call('GET', '/apis/stable.example.com/v1');
    assert.deepEqual(
      body.resources.map((each) => each['name']),
      ['crontabs', 'crontabs/status', 'crontabs/scale'],
    );
    assert.deepEqual(body.resources[0]?.['shortNames'], ['ct']);
    const aggregated = await call('GET', '/apis', undefined, {
      headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' },
    });
    assert.ok(aggregated.text.includes('"resource":"crontabs"'));
  });

  it('custom resources are in OpenAPI', async () => {
    const v2 = await call('GET', '/openapi/v2');
    const { definitions, paths } = v2.body as unknown as Record<string, Record<string, Body>>;
    const definition = definitions?.['com.example.stable.v1.CronTab'] as unknown as Body & { properties: Body };
    assert.equal((definition.properties.spec['properties'] as Body)['cronSpec'] !== undefined, true);
    assert.ok(paths?.['/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}']);
    assert.ok(definitions?.['io.k8s.api.core.v1.Pod']);
    const index = (await call('GET', '/openapi/v3')).body as unknown as {
      paths: Record<string, { serverRelativeURL: string }>;
    };
    const url = index.paths['apis/stable.example.com/v1']?.serverRelativeURL ?? '';
    const v3 = await call('GET', url);
    assert.equal(v3.code, 200);
    assert.ok(v3.text.includes('"com.example.stable.v1.CronTabList"'));
    const SELECTABLE = 'x-kubernetes-selectable-fields';
    const { schemas } = (v3.body as unknown as { components: { schemas: Record<string, Body> } }).components;
    for (const schema of [
      definition,
      schemas['com.example.stable.v1.CronTab'],
      schemas['com.example.stable.v1.CronTabList'],
    ])
      assert.deepEqual((schema as unknown as Record<string, unknown>)[SELECTABLE], [{ fieldPath: 'spec.image' }]);
    assert.ok(v3.headers.etag);
    const again = await call('GET', url, undefined, { headers: { 'if-none-match': v3.headers.etag } });
    assert.equal(again.code, 304);
  });

  it('custom resources are pruned, defaulted and validated', async () => {
    const created = await call(
      'POST',
      PATH,
      ct('one', { cronSpec: '* * * * */5', image: 'a', extra: 1, free: { x: { y: 1 } } }),
    );
    assert.equal(created.code, 201, created.text);
    assert.deepEqual(created.body.spec, { cronSpec: '* * * * */5', image: 'a', free: { x: { y: 1 } }, replicas: 1 });
    assert.equal(created.body.metadata['generation'], 1);
    assert.match(String(created.headers['warning']), /unknown field \\?"spec\.extra/);
    const strict = await call('POST', `${PATH}?fieldValidation=Strict`, ct('two', { extra: 1 }));
    assert.equal(strict.code, 400);
    assert.match(strict.body.message, /strict decoding error: unknown field "spec.extra"/);
    const wrong = await call('POST', PATH, ct('two', { cronSpec: 'x', replicas: 'y' }));
    assert.equal(wrong.code, 422);
    assert.equal(
      wrong.body.message,
      'CronTab.stable.example.com "two" is invalid: [spec.cronSpec: Invalid value: "x": spec.cronSpec in body should match \'^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$\', spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", .spec.replicas: Invalid value: 0: .spec.replicas accessor error: y is of the type string, expected int64]',
    );
    const many = await call('POST', PATH, ct('two', { replicas: 11, tags: ['a', 'a'] }));
    assert.match(
      many.body.message,
      /spec\.replicas: Invalid value: 11: spec\.replicas in body should be less than or equal to 10/,
    );
    assert.match(many.body.message, /spec\.tags\[1\]: Duplicate value: "a"/);
  });

  it('custom resources accept JSON and merge patches, but no strategic merge patches', async () => {
    const merged = await call(
      'PATCH',
      `${PATH}/one`,
      { spec: { replicas: 3 } },
      { type: 'application/merge-patch+json' },
    );
    assert.equal(merged.code, 200, merged.text);
    assert.equal(merged.body.metadata['generation'], 2);
    const json = await call(
      'PATCH',
      `${PATH}/one`,
      [
        { op: 'replace', path: '/spec/size', value: '10%' },
        { op: 'test', path: '/spec/replicas', value: 3 },
      ].slice(1),
      {
        type: 'application/json-patch+json',
      },
    );
    assert.equal(json.code, 200, json.text);
    const strategic = await call(
      'PATCH',
      `${PATH}/one`,
      { spec: {} },
      { type: 'application/strategic-merge-patch+json' },
    );
    assert.equal(strategic.code, 415);
    const labelled = await call(
      'PATCH',
      `${PATH}/one`,
      { metadata: { labels: { a: 'b' } } },
      { type: 'application/merge-patch+json' },
    );
    assert.equal(labelled.body.metadata['generation'], 2);
  });

  it('custom resources merge lists by their keys in an apply', async () => {
    const apply = (manager: string, spec: unknown) =>
      call('PATCH', `${PATH}/applied?fieldManager=${manager}`, ct('applied', spec), {
        type: 'application/apply-patch+yaml',
      });
    assert.equal((await apply('a', { ports: [{ name: 'http', port: 80 }], tags: ['x'] })).code, 201);
    const second = await apply('b', { ports: [{ name: 'dns', port: 53 }], tags: ['y'] });
    assert.equal(second.code, 200, second.text);
    assert.deepEqual(second.body.spec, {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53 },
      ],
      tags: ['x', 'y'],
      replicas: 1,
    });
    const conflict = await apply('b', { ports: [{ name: 'http', port: 81 }] });
    assert.equal(conflict.code, 409);
    assert.match(conflict.body.message, /\.spec\.ports\[name="http"\]\.port/);
  });

  it('custom resources have status and scale subresources', async () => {
    const status = await call('PUT', `${PATH}/one/status`, {
      ...ct('one', { cronSpec: 'ignored' }),
      metadata: {
        name: 'one',
        labels: { ignored: 'yes' },
        resourceVersion: (await call('GET', `${PATH}/one`)).body.metadata['resourceVersion'],
      },
      status: { replicas: 2, labelSelector: 'app=x' },
    });
    assert.equal(status.code, 200, status.text);
    assert.deepEqual(status.body.status, { replicas: 2, labelSelector: 'app=x' });
    assert.equal(status.body.spec['cronSpec'], '* * * * */5');
    assert.deepEqual(status.body.metadata['labels'], { a: 'b' });
    assert.equal(status.body.metadata['generation'], 2);
    const scale = await call('GET', `${PATH}/one/scale`);
    assert.deepEqual(scale.body.spec, { replicas: 3 });
    assert.deepEqual(scale.body.status, { replicas: 2, selector: 'app=x' });
    const scaled = await call(
      'PATCH',
      `${PATH}/one/scale`,
      { spec: { replicas: 5 } },
      { type: 'application/merge-patch+json' },
    );
    assert.equal(scaled.code, 200, scaled.text);
    assert.equal((await call('GET', `${PATH}/one`)).body.spec['replicas'], 5);
    const strategic = { type: 'application/strategic-merge-patch+json' };
    assert.equal((await call('PATCH', `${PATH}/one/scale`, { spec: { replicas: 6 } }, strategic)).code, 415);
    const merge = { type: 'application/merge-patch+json' };
    const many = await call('PATCH', `${PATH}/one`, { spec: { replicas: 2 ** 31 } }, merge);
    assert.equal(many.code, 422);
    assert.match(many.body.message, /\.spec\.replicas: Invalid value: 2147483648: should be less than or equal to/);
    const put = await call('PUT', `${PATH}/one`, {
      ...(await call('GET', `${PATH}/one`)).body,
      status: { replicas: 9 },
    });
    assert.deepEqual(put.body.status, { replicas: 2, labelSelector: 'app=x' });
  });

  it('custom resources are shown as tables and selected by selectable fields', async () => {
    const table = await call('GET', PATH, undefined, {
      headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    });
    assert.deepEqual(
      table.body.columnDefinitions.map((each) => each.name),
      ['Name', 'Spec', 'Replicas', 'Age'],
    );
    assert.deepEqual(table.body.rows[1]?.cells.slice(0, 3), ['one', '* * * * */5', 5]);
    const found = await call('GET', `${PATH}?fieldSelector=spec.image%3Da`);
    assert.deepEqual(
      found.body.items.map((each) => each.metadata['name']),
      ['one'],
    );
    assert.equal((await call('GET', `${PATH}?fieldSelector=spec.cronSpec%3Da`)).code, 400);
    const partial = await call('GET', `${PATH}/one`, undefined, {
      headers: { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' },
    });
    assert.equal(partial.body['kind'], 'PartialObjectMetadata');
  });

  it('custom resources in the store get a new default of their definition', async () => {
    const changed = cronTabs();
    const versions = (changed['spec'] as Body)['versions'] as {
      schema: { openAPIV3Schema: { properties: { spec: { properties: Record<string, unknown> } } } };
    }[];
    Object.assign(versions[0]?.schema.openAPIV3Schema.properties.spec.properties ?? {}, {
      colour: { type: 'string', default: 'blue' },
    });
    const { body } = await call('GET', `${DEFINITIONS}/${CRONTAB}`);
    const updated = await call('PUT', `${DEFINITIONS}/${CRONTAB}`, { ...body, spec: changed['spec'] });
    assert.equal(updated.code, 200, updated.text);
    await until('default', async () => (await call('GET', `${PATH}/one`)).body.spec['colour'] === 'blue');
  });

  it('custom resources are deleted with their definition; objects with finalizers are deleted last', async () => {
    await call('POST', PATH, { ...ct('held', {}), metadata: { name: 'held', finalizers: ['example.com/hold'] } });
    const deleted = await call('DELETE', `${DEFINITIONS}/${CRONTAB}`);
    assert.equal(deleted.code, 200, deleted.text);
    await until('others gone', async () => (await call('GET', PATH)).body.items?.length === 1);
    const refused = await call('POST', PATH, ct('late', {}));
    assert.equal(refused.code, 405);
    const held = await call('GET', `${DEFINITIONS}/${CRONTAB}`);
    assert.deepEqual(held.body.metadata['finalizers'], ['customresourcecleanup.apiextensions.k8s.io']);
    await call('PATCH', `${PATH}/held`, { metadata: { finalizers: null } }, { type: 'application/merge-patch+json' });
    await until('definition gone', async () => (await call('GET', `${DEFINITIONS}/${CRONTAB}`)).code === 404);
    await until('no longer served', async () => (await call('GET', PATH)).code === 404);
    assert.equal((await call('GET', '/apis/stable.example.com/v1')).code, 404);
  });
});

describe('validation rules of custom resources', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown) =>
    server.call<Body>(method, path, body === undefined ? {} : { body });
  const withRule = (rule: Record<string, unknown>): Record<string, unknown> => {
    const definition = cronTabs();
    const { versions } = definition['spec'] as {
      versions: { schema: { openAPIV3Schema: { properties: { spec: Record<string, unknown> } } } }[];
    };
    Object.assign(versions[0]?.schema.openAPIV3Schema.properties.spec ?? {}, { 'x-kubernetes-validations': [rule] });
    return definition;
  };

  it('validation rules of custom resources are compiled when the definition is written', async () => {
    const refused = await call('POST', DEFINITIONS, withRule({ rule: 'self.nope > 1' }));
    assert.equal(refused.code, 422);
    assert.match(
      refused.body.message,
      /x-kubernetes-validations\[0\]\.rule: Invalid value: {"Rule":"self\.nope > 1",.*}: compilation failed: ERROR: <input>:1:5: undefined field 'nope'/,
    );
    const costly = await call('POST', DEFINITIONS, withRule({ rule: 'self.tags.all(a, self.tags.all(b, a == b))' }));
    assert.match(costly.body.message, /estimated rule cost exceeds budget by factor of more than 100x/);
  });

  it('validation rules of custom resources are evaluated when resources are written', async () => {
    const rule = { rule: '!has(oldSelf.image) || self.image == oldSelf.image', message: 'image is immutable' };
    assert.equal((await call('POST', DEFINITIONS, withRule(rule))).code, 201);
    await until('served', async () => (await call('GET', PATH)).code === 200);
    const resource = {
      apiVersion: 'stable.example.com/v1',
      kind: 'CronTab',
      metadata: { name: 'r' },
      spec: { image: 'a' },
    };
    const created = await call('POST', PATH, resource);
    assert.equal(created.code, 201, created.text);
    const changed = await call('PUT', `${PATH}/r`, { ...created.body, spec: { image: 'b' } });
    assert.equal(changed.code, 422);
    assert.equal(
      changed.body.message,
      'CronTab.stable.example.com "r" is invalid: spec: Invalid value: image is immutable',
    );
  });
});

describe('cluster-scoped custom resources', () => {
  let server: TestServer;
  const ROOT = '/apis/lab.example.com/v1/racks';
  const rack = (name: string, more = {}) => ({
    apiVersion: 'lab.example.com/v1',
    kind: 'Rack',
    metadata: { name, ...more },
    slots: [],
  });
  before(async () => {
    server = await startServer();
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'racks.lab.example.com' },
      spec: {
        group: 'lab.example.com',
        scope: 'Cluster',
        names: { plural: 'racks', kind: 'Rack' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            deprecated: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  slots: { type: 'array', items: { type: 'integer' } },
                  template: {
                    type: 'object',
                    'x-kubernetes-embedded-resource': true,
                    'x-kubernetes-preserve-unknown-fields': true,
                  },
                },
              },
            },
          },
        ],
      },
    };
    assert.equal((await server.call('POST', DEFINITIONS, { body: definition })).code, 201);
    await until('served', async () => (await server.call('GET', ROOT)).code === 200);
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown, options = {}) =>
    server.call<Body>(method, path, { ...(body === undefined ? {} : { body }), ...options });

  it('cluster-scoped custom resources are not served in namespaces', async () => {
    assert.equal((await call('GET', '/apis/lab.example.com/v1/namespaces/default/racks')).code, 404);
    const created = await call('POST', ROOT, rack('', { generateName: 'rack-' }));
    assert.equal(created.code, 201, created.text);
    assert.match(String(created.body.metadata['name']), /^rack-[a-z0-9]{5}$/);
    assert.match(String(created.headers['warning']), /lab\.example\.com\/v1 Rack is deprecated/);
  });

  it('cluster-scoped custom resources distinguish an empty list from an absent list', async () => {
    const created = await call('POST', ROOT, rack('one'));
    assert.deepEqual(created.body['slots'], []);
    const { slots: _slots, ...without } = created.body as Record<string, unknown>;
    const updated = await call('PUT', `${ROOT}/one`, without);
    assert.equal(updated.body['slots'], undefined);
    assert.equal(updated.body.metadata['generation'], 2);
  });

  it('cluster-scoped custom resources validate embedded resources', async () => {
    const refused = await call('POST', ROOT, { ...rack('two'), template: { spec: { x: 1 } } });
    assert.match(refused.body.message, /template\.apiVersion: Required value/);
    const created = await call('POST', ROOT, {
      ...rack('two'),
      template: { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 'b' }, nope: 1 }, spec: { x: 1 } },
    });
    assert.deepEqual(created.body['template'], {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { labels: { a: 'b' } },
      spec: { x: 1 },
    });
    const wrong = await call('POST', ROOT, { ...rack('three'), metadata: { name: 'three', labels: 5 } });
    assert.equal(wrong.code, 400);
  });

  it('cluster-scoped custom resources are protected by RBAC', async () => {
    const as = await server.user('reader');
    assert.equal((await call('GET', ROOT, undefined, { as })).code, 403);
    const rules = [{ apiGroups: ['lab.example.com'], resources: ['racks'], verbs: ['get', 'list'] }];
    await call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', { metadata: { name: 'racks' }, rules });
    await call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', {
      metadata: { name: 'racks' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'racks' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
    });
    assert.equal((await call('GET', ROOT, undefined, { as })).code, 200);
    assert.equal((await call('POST', ROOT, rack('mine'), { as })).code, 403);
    assert.equal((await call('DELETE', ROOT, undefined, { as })).code, 403);
  });

  it('cluster-scoped custom resources support dry run, paged lists and deletecollection', async () => {
    assert.equal((await call('POST', `${ROOT}?dryRun=All`, rack('dry'))).code, 201);
    assert.equal((await call('GET', `${ROOT}/dry`)).code, 404);
    const page = await call('GET', `${ROOT}?limit=1`);
    assert.equal(page.body.items.length, 1);
    const rest = await call(
      'GET',
      `${ROOT}?limit=10&continue=${encodeURIComponent(String(page.body.metadata['continue']))}`,
    );
    assert.equal(rest.body.items.length, 2);
    assert.equal((await call('DELETE', ROOT)).code, 200);
    assert.equal((await call('GET', ROOT)).body.items.length, 0);
  });
});
