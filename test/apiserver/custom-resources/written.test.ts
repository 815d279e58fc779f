/**
 * Unusual writes of custom resources, with the responses of upstream's API server 1.36. test/upstream/extensions.ts
 * compares them with upstream.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type CallOptions, startServer, type TestServer } from '../harness.ts';
import { until } from './crontab.ts';

interface Entry {
  manager: string;
  operation: string;
  subresource?: string;
  time?: string;
  fieldsV1: object;
}
interface Thing {
  message: string;
  metadata: { name: string; resourceVersion: string; managedFields: Entry[]; generation: number };
  spec: Record<string, unknown>;
  status?: Record<string, unknown>;
}

const GROUP = 'written.example.com';
const THINGS = `/apis/${GROUP}/v1/namespaces/default/things`;
const text = { type: 'string' };
const object = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `things.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'things', kind: 'Thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: {
          openAPIV3Schema: object({
            spec: object({
              replicas: { type: 'integer', default: 1 },
              color: text,
              nested: object({ a: text, b: text }),
              any: { 'x-kubernetes-preserve-unknown-fields': true },
              ports: {
                type: 'array',
                'x-kubernetes-list-type': 'map',
                'x-kubernetes-list-map-keys': ['port'],
                items: object({ port: { type: 'integer' } }, { required: ['port'] }),
              },
            }),
            status: object({ replicas: { type: 'integer' }, phase: text }),
          }),
        },
      },
    ],
  },
};
const thing = (name: string, spec: object, rest: object = {}) => ({
  apiVersion: `${GROUP}/v1`,
  kind: 'Thing',
  metadata: { name },
  spec,
  ...rest,
});

describe('unusual writes of custom resources', () => {
  let server: TestServer;
  const call = (method: string, path: string, options?: CallOptions) => server.call<Thing>(method, path, options);
  const patch = (path: string, type: string, body: unknown) =>
    call('PATCH', path, { body: body as object, headers: { 'content-type': `application/${type}` } });
  const merge = (path: string, body: object) => patch(path, 'merge-patch+json', body);
  const apply = (name: string, manager: string, body: object, query = '') =>
    patch(`${THINGS}/${name}?fieldManager=${manager}${query}`, 'apply-patch+yaml', body);
  const made = async (name: string, spec: object) => {
    const answer = await call('POST', THINGS, { body: thing(name, spec) });
    assert.equal(answer.code, 201, answer.body.message);
    return `${THINGS}/${name}`;
  };
  before(async () => {
    server = await startServer();
    assert.equal(
      (await call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: DEFINITION })).code,
      201,
    );
    for (;;) {
      if ((await call('GET', THINGS)).code === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  after(() => server.stop());

  it('custom resources require kind and resourceVersion after a patch', async () => {
    const one = await made('named', { color: 'red' });
    for (const body of [{ metadata: null }, { metadata: { name: null } }]) {
      const refused = await merge(one, body);
      assert.equal(refused.code, 400);
      assert.equal(
        refused.body.message,
        'the name of the object (named based on URL) was undeterminable: name must be provided',
      );
    }
    const moved = await merge(one, { metadata: { namespace: 'other' } });
    assert.equal(
      moved.body.message,
      'the namespace of the provided object does not match the namespace sent on the request',
    );
    for (const resourceVersion of [null, '']) {
      const refused = await merge(one, { metadata: { resourceVersion } });
      assert.equal(refused.code, 422);
      assert.equal(
        refused.body.message,
        `things.${GROUP} "named" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`,
      );
    }
  });

  it('custom resources reject an apply with unknown fields or managedFields', async () => {
    for (const validation of ['', '&fieldValidation=Strict', '&fieldValidation=Ignore']) {
      const unknown = await apply('applied', 'a', thing('applied', { nosuch: 1 }), validation);
      assert.equal(unknown.code, 500);
      assert.match(unknown.body.message, /\.spec\.nosuch: field not declared in schema/);
    }
    const owned = await apply('applied', 'a', {
      ...thing('applied', {}),
      metadata: { name: 'applied', managedFields: [] },
    });
    assert.equal(owned.code, 400);
    assert.equal(owned.body.message, 'metadata.managedFields must be nil');
    assert.equal((await apply('applied', 'a', { apiVersion: `${GROUP}/v1`, kind: 'Thing' })).code, 400);
    const made = await apply('applied', 'a', thing('applied', { color: 'red' }));
    assert.equal(made.code, 201, made.body.message);
    // An apply to an existing object need not contain its name.
    assert.equal(
      (await apply('applied', 'a', { apiVersion: `${GROUP}/v1`, kind: 'Thing', spec: { color: 'red' } })).code,
      200,
    );
  });

  it('custom resources reject an apply while managedFields refers to a version that the definition no longer has', async () => {
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const [template] = DEFINITION.spec.versions;
    const group = 'removed.example.com';
    const definitionOf = (versions: object[]) => ({
      ...DEFINITION,
      metadata: { name: `things.${group}` },
      spec: { ...DEFINITION.spec, group, versions },
    });
    const made = await call('POST', definitions, {
      body: definitionOf([
        { ...template, storage: false },
        { ...template, name: 'v2' },
      ]),
    });
    assert.equal(made.code, 201, made.body.message);
    const at = (version: string) => `/apis/${group}/${version}/namespaces/default/things`;
    const applied = async (version: string, manager: string, spec: object) => {
      const body = { ...thing('old', spec), apiVersion: `${group}/${version}` };
      return patch(`${at(version)}/old?fieldManager=${manager}`, 'apply-patch+yaml', body);
    };
    await until('version v1', async () => (await call('GET', at('v1'))).code === 200);
    assert.equal((await applied('v1', 'a', { color: 'red' })).code, 201);
    const owned = await applied('v2', 'b', { nested: { a: '1' } });
    assert.equal(owned.code, 200, owned.body.message);
    const removed = await merge(`${definitions}/things.${group}`, {
      spec: { versions: [{ ...template, name: 'v2' }] },
    });
    assert.equal(removed.code, 200, removed.body.message);
    await until('removal of v1', async () => (await call('GET', at('v1'))).code === 404);
    const refused = await applied('v2', 'b', { nested: { a: '2' } });
    assert.equal(refused.code, 500);
    assert.equal(refused.body.message, `request to convert CR to an invalid group/version: ${group}/v1`);
  });

  it('an apply of null keeps fields of other managers below the structure; untyped fields keep null', async () => {
    await apply('nulls', 'a', thing('nulls', { nested: { a: '1' }, ports: [{ port: 1 }] }));
    const kept = await apply('nulls', 'b', thing('nulls', { nested: null, any: { x: null } }));
    assert.deepEqual(kept.body.spec['nested'], { a: '1' });
    assert.deepEqual(kept.body.spec['any'], { x: null });
    const emptied = await apply('nulls', 'a', thing('nulls', { nested: { a: '1' }, ports: [] }));
    assert.equal(Object.hasOwn(emptied.body.spec, 'ports'), false);
    const own = emptied.body.metadata.managedFields.find(({ manager }) => manager === 'a');
    assert.deepEqual(own?.fieldsV1, { 'f:spec': { 'f:nested': { 'f:a': {} } } });
  });

  it('custom resources reject null for non-nullable fields in an apply; other writes remove the field', async () => {
    for (const [name, code] of [
      ['null-new', 201],
      ['null-there', 200],
    ] as const) {
      if (code === 200) await made(name, { color: 'red' });
      const refused = await apply(name, 'a', thing(name, { color: null, ports: null }), '&force=true');
      assert.equal(refused.code, 422, name);
      for (const field of ['color in body must be of type string', 'ports in body must be of type array'])
        assert.ok(refused.body.message.includes(`${field}: "null"`), refused.body.message);
      assert.equal((await apply(name, 'a', thing(name, { replicas: null, any: null }), '&force=true')).code, code);
    }
    const merged = await patch(`${THINGS}/null-there`, 'json-patch+json', [
      { op: 'add', path: '/spec/color', value: null },
    ]);
    assert.equal(merged.code, 200, merged.body.message);
    assert.equal(Object.hasOwn(merged.body.spec, 'color'), false);
  });

  it('custom resources reject a patch that removes or changes apiVersion or kind', async () => {
    const one = await made('itself', { color: 'red' });
    for (const kind of [null, '']) {
      const nameless = await merge(one, { kind });
      assert.equal(nameless.code, 422);
      assert.match(nameless.body.message, /^ "" is invalid: patch: Invalid value: .*: Object 'Kind' is missing in '/);
    }
    for (const [apiVersion, subject] of [
      [`${GROUP}/v9`, `Thing.${GROUP}`],
      ['v2', 'Thing'],
    ] as const) {
      const other = await merge(one, { apiVersion });
      assert.equal(other.code, 422);
      assert.equal(
        other.body.message,
        `${subject} "itself" is invalid: apiVersion: Invalid value: "${apiVersion}": must be ${GROUP}/v1`,
      );
    }
  });

  it('an apply without changes keeps the time of the manager in a custom resource', async () => {
    await made('same', { color: 'red' });
    const { body } = await apply('same', 'b', thing('same', { color: 'red' }));
    const entry = body.metadata.managedFields.find(({ manager }) => manager === 'b');
    assert.deepEqual(entry?.fieldsV1, { 'f:spec': { 'f:color': {} } });
    assert.equal(entry?.time, undefined);
    assert.equal(body.metadata.generation, 1);
  });

  it('custom resources validate status separately, require an integer for scale, and warn about finalizer names', async () => {
    const one = await made('judged', { color: 'red' });
    const status = await merge(`${one}/status`, { spec: { replicas: 'x' }, status: { replicas: 'y', phase: 1 } });
    assert.equal(status.code, 422);
    for (const reported of [
      'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"',
      '.status.replicas: Invalid value: 0: .status.replicas accessor error: y is of the type string, expected int64',
    ])
      assert.ok(status.body.message.includes(reported), status.body.message);
    assert.ok(!status.body.message.includes('spec'), status.body.message);
    const spec = await merge(one, { spec: 'x' });
    assert.match(
      spec.body.message,
      /\.spec\.replicas accessor error: x is of the type string, expected map\[string\]interface\{\}/,
    );
    const warned = await merge(one, { metadata: { finalizers: ['x'] } });
    assert.match(
      String(warned.headers['warning']),
      /metadata.finalizers: ..x..: prefer a domain-qualified finalizer name to avoid accidental conflicts/,
    );
    assert.equal((await merge(one, { metadata: { finalizers: null } })).code, 200);
  });

  it('custom resources report duplicate fields of patches and YAML', async () => {
    const one = await made('twice', {});
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = '{"spec":{"color":"red","color":"blue"}}';
    const warned = await call('PATCH', one, { raw: body, headers });
    assert.equal(warned.body.spec['color'], 'blue');
    assert.match(String(warned.headers['warning']), /duplicate field/);
    const refused = await call('PATCH', `${one}?fieldValidation=Strict`, { raw: body, headers });
    assert.equal(refused.code, 422);
    assert.match(refused.body.message, /strict decoding error: duplicate field "spec.color"/);
    const yaml = `apiVersion: ${GROUP}/v1\nkind: Thing\nmetadata: {name: twice}\nspec:\n  color: red\n  color: green\n`;
    const applied = (query: string) =>
      call('PATCH', `${one}?fieldManager=y&force=true${query}`, {
        raw: yaml,
        headers: { 'content-type': 'application/apply-patch+yaml' },
      });
    const reported = await applied('');
    assert.equal(reported.body.spec['color'], 'green');
    assert.match(String(reported.headers['warning']), /line 6: key ..color.. already set in map/);
    assert.equal((await applied('&fieldValidation=Strict')).code, 400);
  });

  it('custom resources name the resource in errors for unknown subresources and verbs, and support HEAD', async () => {
    const one = await made('one', {});
    assert.equal((await call('GET', `${one}/nosuch`)).body.message, `things.${GROUP} "one" not found`);
    const refused = await call('DELETE', `${one}/status`);
    assert.equal(refused.code, 405);
    assert.equal(refused.body.message, `delete is not supported on resources of kind "things.${GROUP}"`);
    assert.equal((await call('HEAD', one)).code, 200);
    assert.equal((await call('HEAD', `${THINGS}/absent`)).code, 404);
    // `watch=true` is ignored for a single object.
    assert.equal((await call('GET', `${one}?watch=true`)).body.metadata.name, 'one');
    const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io';
    assert.equal((await call('GET', THINGS, { headers: { accept: partial } })).code, 406);
    assert.equal((await call('GET', `${THINGS}?limit=-1`)).code, 200);
    const limited = await call('GET', `${THINGS}?limit=x`);
    assert.equal(limited.body.message, 'strconv.ParseInt: parsing "x": invalid syntax');
    const foreign = await call('DELETE', `${one}?uid=x`);
    assert.equal(foreign.code, 409);
    assert.match(foreign.body.message, /the UID in the precondition \(x\) does not match/);
  });

  it('scaling custom resources conflicts with the owner of the replicas unless forced', async () => {
    const one = `${THINGS}/scaled`;
    const scale = (replicas: number) => ({
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'scaled' },
      spec: { replicas },
    });
    const applied = (manager: string, replicas: number, query = '') =>
      patch(`${one}/scale?fieldManager=${manager}${query}`, 'apply-patch+yaml', scale(replicas));
    assert.equal((await apply('scaled', 'owner', thing('scaled', { replicas: 2, color: 'red' }))).code, 201);
    const refused = await applied('scaler', 5);
    assert.equal(refused.code, 409);
    assert.match(refused.body.message, /conflict with "owner"/);
    const forced = await applied('scaler', 5, '&force=true');
    assert.equal(forced.code, 200, forced.body.message);
    assert.equal(forced.body.spec['replicas'], 5);
    const { body } = await call('GET', one);
    const owners = Object.fromEntries(body.metadata.managedFields.map((each) => [each.manager, each]));
    assert.deepEqual(owners['owner']?.fieldsV1, { 'f:spec': { 'f:color': {} } });
    assert.deepEqual(owners['scaler']?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
    assert.equal(owners['scaler']?.subresource, 'scale');
    const back = await apply('scaled', 'owner', thing('scaled', { replicas: 2, color: 'red' }));
    assert.equal(back.code, 409);
    assert.match(back.body.message, /conflict with "scaler" with subresource "scale"/);
    assert.equal((await patch(`${one}/scale?fieldManager=x`, 'apply-patch+yaml', { spec: { replicas: 3 } })).code, 400);
    assert.equal((await call('PUT', `${one}/scale`, { body: { spec: { replicas: 3 } } })).code, 400);
    const negative = await merge(`${one}/scale`, { spec: { replicas: -1 } });
    assert.match(negative.body.message, new RegExp(`^Thing.${GROUP} "scaled" is invalid`));
  });
});
