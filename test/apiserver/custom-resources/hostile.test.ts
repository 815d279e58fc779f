/** Malicious and very large definitions and resources, which must not affect other clients. */
import assert from 'node:assert/strict';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { after, before, describe, it } from 'node:test';
import { slack } from '../../support/slack.ts';
import { startServer, type TestServer } from '../harness.ts';
import { until } from './crontab.ts';

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

type Body = Record<string, unknown> & { message: string; spec: Record<string, unknown> };

const definition = (plural: string, properties: unknown, more = {}): Record<string, unknown> => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.bad.example.com` },
  spec: {
    group: 'bad.example.com',
    scope: 'Namespaced',
    names: { plural, kind: `K${plural}` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
        ...more,
      },
    ],
  },
});

describe('hostile CustomResourceDefinitions', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown) =>
    server.call<Body>(method, path, body === undefined ? {} : { body });
  const raw = (path: string, text: string) => server.call<Body>('POST', path, { raw: text });

  it('hostile CustomResourceDefinitions with backtracking patterns do not block the event loop', async () => {
    const created = await call(
      'POST',
      DEFINITIONS,
      definition('redos', {
        a: { type: 'string', pattern: '^(([a-z])+.)+[A-Z]([a-z])+$' },
        b: { type: 'string', pattern: '(x+x+)+y' },
      }),
    );
    assert.equal(created.code, 201, created.text);
    const path = '/apis/bad.example.com/v1/namespaces/default/redos';
    await until('served', async () => (await call('GET', path)).code === 200);
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const refused = await call('POST', path, {
      apiVersion: 'bad.example.com/v1',
      kind: 'Kredos',
      metadata: { name: 'x' },
      spec: { a: 'a'.repeat(100_000), b: 'x'.repeat(100_000) },
    });
    delay.disable();
    assert.equal(refused.code, 422);
    assert.ok(refused.text.length < 64 * 1024, 'a large wrong value makes no large answer');
    assert.ok(delay.max / 1e6 < 250 * slack(), `the loop stood still for ${delay.max / 1e6} ms`);
  });

  it('hostile CustomResourceDefinitions with too deep nesting are rejected', async () => {
    const depth = 400;
    const nested = `${'{"type":"object","properties":{"a":'.repeat(depth)}{"type":"string"}${'}}'.repeat(depth)}`;
    const body = JSON.stringify(definition('deep', { a: 'HERE' })).replace('"HERE"', nested);
    const refused = await raw(DEFINITIONS, body);
    assert.ok(refused.code === 400 || refused.code === 422, refused.text);
    const within = JSON.stringify(definition('deep', { a: 'HERE' })).replace(
      '"HERE"',
      `${'{"type":"object","properties":{"a":'.repeat(100)}{"type":"string"}${'}}'.repeat(100)}`,
    );
    const tooDeep = await raw(DEFINITIONS, within);
    assert.equal(tooDeep.code, 422);
    assert.match(tooDeep.body.message, /must not nest deeper than 64 levels/);
  });

  it('hostile CustomResourceDefinitions of several megabytes are accepted or rejected without blocking', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 7_000 }, (_, index) => [
        `property${index}`,
        { type: 'object', description: 'x'.repeat(100), properties: { a: { type: 'string', default: 'd' } } },
      ]),
    );
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const created = await call('POST', DEFINITIONS, definition('larges', properties));
    delay.disable();
    assert.equal(created.code, 201, created.text.slice(0, 500));
    assert.ok(delay.max / 1e6 < 1_000 * slack(), `the loop stood still for ${delay.max / 1e6} ms`);
    const path = '/apis/bad.example.com/v1/namespaces/default/larges';
    await until('served', async () => (await call('GET', path)).code === 200);
    const resource = await call('POST', path, {
      apiVersion: 'bad.example.com/v1',
      kind: 'Klarges',
      metadata: { name: 'x' },
      spec: { property5: {} },
    });
    assert.equal(resource.code, 201, resource.text.slice(0, 500));
    assert.deepEqual(resource.body.spec, { property5: { a: 'd' } });
  });

  it('rejects objects to which the defaults of their schema would add megabytes, without blocking', async () => {
    const items = {
      type: 'object',
      properties: {
        text: { type: 'string', default: 'x'.repeat(200) },
        map: { type: 'object', default: { a: 'b', c: [1, 2] }, 'x-kubernetes-preserve-unknown-fields': true },
      },
    };
    const created = await call('POST', DEFINITIONS, definition('swells', { list: { type: 'array', items } }));
    assert.equal(created.code, 201, created.text);
    const path = '/apis/bad.example.com/v1/namespaces/default/swells';
    await until('served', async () => (await call('GET', path)).code === 200);
    const swelling = (count: number, name: string): string =>
      `{"apiVersion":"bad.example.com/v1","kind":"Kswells","metadata":{"name":"${name}"},"spec":{"list":[${Array(count).fill('{}').join(',')}]}}`;
    const small = await raw(path, swelling(2, 'small'));
    assert.equal(small.code, 201, small.text);
    assert.deepEqual((small.body.spec['list'] as unknown[])[1], { text: 'x'.repeat(200), map: { a: 'b', c: [1, 2] } });
    const delay = monitorEventLoopDelay({ resolution: 5 });
    delay.enable();
    const refused = await raw(path, swelling(800_000, 'large'));
    delay.disable();
    assert.equal(refused.code, 413, refused.text);
    assert.match(refused.text, /the defaults of the schema would add more than 2097152 bytes to the object/);
    assert.ok(delay.max / 1e6 < 1_000 * slack(), `the loop stood still for ${delay.max / 1e6} ms`);
  });

  it('hostile CustomResourceDefinitions treat prototype names as plain data', async () => {
    const body = JSON.stringify(
      definition('protos', {
        HERE: 1,
        constructor: { type: 'object', properties: { prototype: { type: 'string', default: 'x' } } },
      }),
    ).replace(
      '"HERE":1',
      '"__proto__":{"type":"object","default":{"polluted":"yes"},"properties":{"polluted":{"type":"string"}}}',
    );
    const created = await raw(DEFINITIONS, body);
    assert.equal(created.code, 201, created.text);
    const path = '/apis/bad.example.com/v1/namespaces/default/protos';
    await until('served', async () => (await call('GET', path)).code === 200);
    const resource = await raw(
      path,
      '{"apiVersion":"bad.example.com/v1","kind":"Kprotos","metadata":{"name":"x"},"spec":{"constructor":{},"toString":1}}',
    );
    assert.equal(resource.code, 201, resource.text);
    assert.match(resource.text, /"__proto__":\{"polluted":"yes"\}/);
    assert.match(resource.text, /"constructor":\{"prototype":"x"\}/);
    assert.doesNotMatch(resource.text, /toString/);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
    const merged = await server.call<Body>('PATCH', `${path}/x`, {
      raw: '{"spec":{"__proto__":{"polluted":"no"}}}',
      type: 'application/merge-patch+json',
    });
    assert.equal(merged.code, 200, merged.text);
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
    assert.equal((await call('GET', '/openapi/v2')).code, 200);
    assert.equal((await call('GET', '/openapi/v3/apis/bad.example.com/v1')).code, 200);
  });

  it('hostile CustomResourceDefinitions with scale paths to prototypes are rejected', async () => {
    const refused = await call(
      'POST',
      DEFINITIONS,
      definition(
        'scales',
        { replicas: { type: 'integer' } },
        { subresources: { scale: { specReplicasPath: '.spec.__proto__.x', statusReplicasPath: '.status.replicas' } } },
      ),
    );
    assert.equal(refused.code, 422);
  });

  it('hostile CustomResourceDefinitions of any shape get a response', async () => {
    const base = JSON.stringify(definition('shapes', {}));
    const shapes = [
      'null',
      '[]',
      '"x"',
      '5',
      '{"type":5}',
      '{"type":"object","properties":[]}',
      '{"type":"object","properties":{"a":null}}',
      '{"type":"object","properties":{"a":5}}',
      '{"type":"object","x-kubernetes-validations":{"rule":1}}',
      '{"type":"object","x-kubernetes-validations":[1,null,{"rule":5}]}',
      '{"type":"object","required":{"a":1}}',
      '{"type":"object","additionalProperties":"x"}',
      '{"type":"object","properties":{"a":{"type":"array","items":5}}}',
      '{"type":"object","properties":{"a":{"type":"string","enum":5,"default":{}}}}',
      '{"type":"object","anyOf":[null,5,{"not":5}]}',
    ];
    for (const shape of shapes) {
      const text = base.replace('{"type":"object","properties":{"spec":{"type":"object","properties":{}}}}', shape);
      assert.notEqual(text, base);
      const answered = await raw(`${DEFINITIONS}?dryRun=All`, text);
      assert.ok([201, 400, 422].includes(answered.code), `${shape}: ${answered.code} ${answered.text}`);
    }
    for (const change of [
      { group: 'nodots' },
      { group: '' },
      { names: null },
      { names: { plural: 'Shapes', kind: '' } },
      { versions: [] },
      { versions: null },
      { scope: 'Galaxy' },
      { conversion: { strategy: 'Magic' } },
      { conversion: { strategy: 'Webhook' } },
      {
        conversion: {
          strategy: 'Webhook',
          webhook: { conversionReviewVersions: ['v1'], clientConfig: { url: 'http://plain.example.com' } },
        },
      },
    ]) {
      const changed = definition('shapes', {});
      Object.assign(changed['spec'] as object, change);
      const answered = await call('POST', `${DEFINITIONS}?dryRun=All`, changed);
      assert.ok([400, 422].includes(answered.code), `${JSON.stringify(change)}: ${answered.code} ${answered.text}`);
    }
  });

  it('hostile CustomResourceDefinitions with names of other kinds are not established', async () => {
    const first = definition('names', {});
    await call('POST', DEFINITIONS, first);
    await until(
      'served',
      async () => (await call('GET', '/apis/bad.example.com/v1/namespaces/default/names')).code === 200,
    );
    const second = definition('others', {});
    (second['spec'] as { names: Record<string, unknown> }).names = {
      plural: 'others',
      singular: 'another',
      kind: 'Knames',
      shortNames: ['names'],
    };
    await call('POST', DEFINITIONS, second);
    type Conditions = { status: { conditions: { type: string; status: string; reason: string; message: string }[] } };
    const conditions = await until('judged', async () => {
      const { body } = await call('GET', `${DEFINITIONS}/others.bad.example.com`);
      const found = (body as unknown as Conditions).status.conditions;
      return found.length > 0 && found;
    });
    assert.deepEqual(
      conditions.map((each) => [each.type, each.status, each.reason]),
      [
        ['NamesAccepted', 'False', 'ShortNamesConflict'],
        ['Established', 'False', 'NotAccepted'],
      ],
    );
    assert.equal((await call('GET', '/apis/bad.example.com/v1/namespaces/default/others')).code, 404);
    await call('DELETE', `${DEFINITIONS}/names.bad.example.com`);
    await until(
      'served at last',
      async () => (await call('GET', '/apis/bad.example.com/v1/namespaces/default/others')).code === 200,
    );
  });
});
