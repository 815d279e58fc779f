/** Formats and versions of objects: protobuf, YAML, tables and older versions. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import type { JsonObject, JsonValue } from '../../../src/api/meta/object.ts';
import { decodeProtobuf } from '../../../src/apiserver/http/protobuf/decode.ts';
import { encodeMessage, envelope } from '../../../src/apiserver/http/protobuf/encode.ts';
import { Reader } from '../../../src/wire/protobuf/protobuf.ts';
import { startServer, type TestServer } from '../harness.ts';

const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const MAPS = '/api/v1/namespaces/default/configmaps';
const accept = { accept: PROTOBUF };

interface Unknown {
  readonly apiVersion: string;
  readonly kind: string;
  readonly raw: Buffer;
}

function opened(bytes: Buffer): Unknown {
  assert.equal(bytes.subarray(0, 4).toString('latin1'), 'k8s\0');
  let apiVersion = '';
  let kind = '';
  let raw = Buffer.alloc(0);
  const reader = new Reader(bytes.subarray(4));
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) {
      const type = new Reader(reader.bytes());
      for (let part = type.field(); part !== 0; part = type.field()) {
        if (part === 1) apiVersion = type.string();
        else kind = type.string();
      }
    } else if (key === 2) raw = Buffer.from(reader.bytes());
    else reader.skip();
  }
  return { apiVersion, kind, raw };
}

/** Encoded metadata and items of a list. */
function openedList(bytes: Buffer): Unknown & { readonly items: Buffer[]; readonly metadata: Buffer } {
  const whole = opened(bytes);
  const items: Buffer[] = [];
  let metadata = Buffer.alloc(0);
  const reader = new Reader(whole.raw);
  for (let key = reader.field(); key !== 0; key = reader.field()) {
    if (key === 1) metadata = Buffer.from(reader.bytes());
    else if (key === 2) items.push(Buffer.from(reader.bytes()));
    else reader.skip();
  }
  return { ...whole, items, metadata };
}

/** Types and objects of a watch stream. */
function frames(bytes: Buffer): { type: string; object: Buffer }[] {
  const found: { type: string; object: Buffer }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const reader = new Reader(bytes.subarray(at + 4, at + 4 + length));
    let type = '';
    let object = Buffer.alloc(0);
    for (let key = reader.field(); key !== 0; key = reader.field()) {
      if (key === 1) type = reader.string();
      else {
        const raw = new Reader(reader.bytes());
        assert.equal(raw.field(), 1);
        object = Buffer.from(raw.bytes());
      }
    }
    found.push({ type, object });
    at += 4 + length;
  }
  return found;
}

const named = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { a: 'ä' },
});
const metadataOf = (value: JsonValue | undefined): JsonObject => (value as { metadata: JsonObject }).metadata;

describe('media types of responses and bodies', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'default' } } });
  });
  after(() => server.stop());

  it('reads and writes objects in protobuf', async () => {
    const created = await server.call('POST', MAPS, {
      raw: envelope('v1', 'ConfigMap', encodeMessage('io.k8s.api.core.v1.ConfigMap', named('one'))),
      type: PROTOBUF,
      headers: accept,
    });
    assert.equal(created.code, 201, created.text);
    assert.equal(created.headers['content-type'], PROTOBUF);
    const read = await server.call('GET', `${MAPS}/one`, { headers: accept });
    const json = await server.call('GET', `${MAPS}/one`);
    assert.deepEqual(decodeProtobuf(read.bytes), json.body);
    assert.deepEqual(decodeProtobuf(created.bytes), json.body);
    const both = await server.call('GET', `${MAPS}/one`, { headers: { accept: `${PROTOBUF},application/json` } });
    assert.ok(both.bytes.equals(read.bytes));
  });

  it('returns errors and statuses in protobuf', async () => {
    const missing = await server.call('GET', `${MAPS}/nobody`, { headers: accept });
    assert.equal(missing.code, 404);
    assert.equal(missing.headers['content-type'], PROTOBUF);
    assert.equal(decodeProtobuf(missing.bytes)['reason'], 'NotFound');
    await server.call('POST', MAPS, { body: named('gone') });
    const deleted = await server.call('DELETE', `${MAPS}/gone`, {
      headers: accept,
      raw: envelope(
        'v1',
        'DeleteOptions',
        encodeMessage('io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions', { propagationPolicy: 'Background' }),
      ),
      type: PROTOBUF,
    });
    assert.equal(deleted.code, 200, deleted.text);
    assert.equal(decodeProtobuf(deleted.bytes)['status'], 'Success');
  });

  it('returns lists in protobuf, as objects and as metadata', async () => {
    const json = await server.call<{ metadata: JsonObject; items: JsonObject[] }>('GET', MAPS);
    const list = openedList((await server.call('GET', MAPS, { headers: accept })).bytes);
    assert.deepEqual([list.apiVersion, list.kind], ['v1', 'ConfigMapList']);
    const items = list.items.map((item) => decodeProtobuf(envelope('v1', 'ConfigMap', item)));
    assert.deepEqual(
      items,
      json.body.items.map((item) => ({ ...item, apiVersion: 'v1', kind: 'ConfigMap' })),
    );
    assert.ok(list.metadata.includes(String(json.body.metadata['resourceVersion'])));
    const form = `${PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`;
    const partial = openedList((await server.call('GET', MAPS, { headers: { accept: form } })).bytes);
    assert.deepEqual([partial.apiVersion, partial.kind], ['meta.k8s.io/v1', 'PartialObjectMetadataList']);
    // Metadata is field 1 of every object, so it decodes as an object without other fields.
    const [first] = partial.items.map((item) => decodeProtobuf(envelope('v1', 'ConfigMap', item)));
    assert.deepEqual(metadataOf(first), metadataOf(items[0]));
    assert.equal(first?.['data'], undefined);
  });

  it('returns watch events in protobuf', async () => {
    const { body } = await server.call<{ metadata: { resourceVersion: string } }>('GET', MAPS);
    await server.call('POST', MAPS, { body: named('seen') });
    await server.call('DELETE', `${MAPS}/seen`);
    const since = body.metadata.resourceVersion;
    const path = `${MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=${since}`;
    const stream = await server.call('GET', path, { headers: accept });
    assert.equal(stream.headers['content-type'], `${PROTOBUF};stream=watch`);
    const seen = frames(stream.bytes).map(({ type, object }) => [type, metadataOf(decodeProtobuf(object))['name']]);
    assert.deepEqual(seen.slice(0, 2), [
      ['ADDED', 'seen'],
      ['DELETED', 'seen'],
    ]);
    const initial = `${MAPS}?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;
    const state = frames((await server.call('GET', initial, { headers: accept })).bytes);
    const bookmark = state.find(({ type }) => type === 'BOOKMARK');
    assert.ok(bookmark);
    assert.deepEqual(metadataOf(decodeProtobuf(bookmark.object))['annotations'], {
      'k8s.io/initial-events-end': 'true',
    });
    const yaml = await server.call('GET', `${MAPS}?watch=1&timeoutSeconds=1`, {
      headers: { accept: 'application/yaml' },
    });
    assert.equal(yaml.code, 406);
    assert.match(
      yaml.text.replaceAll(/\s+/g, ' '),
      /accepted: application\/json;stream=watch, application\/vnd\.kubernetes\.protobuf;stream=watch/,
    );
    // An unknown form is rejected as for every read.
    const table = await server.call<{ message: string }>('GET', `${MAPS}?watch=1&timeoutSeconds=1`, {
      headers: { accept: `${PROTOBUF};as=Table;g=meta.k8s.io;v=v1` },
    });
    assert.equal(table.code, 406);
    const yamlTable = await server.call<{ message: string }>('GET', `${MAPS}?watch=1&timeoutSeconds=1`, {
      headers: { accept: 'application/yaml;as=Table;g=meta.k8s.io;v=v1' },
    });
    assert.match(yamlTable.body.message, /: application\/json;stream=watch, /);
    const plain = `only the following media types are accepted: application/json, application/yaml, ${PROTOBUF}`;
    assert.equal(table.body.message, plain);
    const either = { headers: { accept: 'application/yaml, application/json' } };
    assert.equal((await server.call('GET', `${MAPS}?watch=1&timeoutSeconds=1`, either)).code, 200);
  });

  it('returns YAML for every request that returns objects', async () => {
    for (const path of ['/api', '/apis', '/api/v1', '/apis/apps']) {
      const shown = await server.call('GET', path, { headers: { accept: 'application/yaml' } });
      assert.equal(shown.headers['content-type'], 'application/yaml');
      assert.deepEqual(parse(shown.text), (await server.call('GET', path)).body);
    }
  });

  it('reports unsupported forms in upstream’s wording', async () => {
    const versionOfNothing = { headers: { accept: 'application/json;g=meta.k8s.io;v=v1' } };
    assert.equal((await server.call('GET', MAPS, versionOfNothing)).code, 406);
    const table = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
    const { code, body } = await server.call<{ message: string }>('GET', `${MAPS}?includeObject=some`, table);
    assert.equal(code, 400);
    assert.equal(
      body.message,
      `Unable to convert to Table as requested: includeObject: Invalid value: "some": must be 'Metadata', 'Object', 'None', or empty`,
    );
  });

  it('accepts the core group’s version with a leading slash', async () => {
    const made = await server.call<{ apiVersion: string }>('POST', MAPS, {
      body: { ...named('nameless-group'), apiVersion: '/v1' },
    });
    assert.deepEqual([made.code, made.body.apiVersion], [201, 'v1']);
  });

  it('returns reviews, scales and discovery in protobuf', async () => {
    const review = await server.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      body: { spec: { nonResourceAttributes: { path: '/x', verb: 'get' } } },
      headers: accept,
    });
    assert.equal((decodeProtobuf(review.bytes)['status'] as JsonObject)['allowed'], true);
    const groups = opened((await server.call('GET', '/apis', { headers: accept })).bytes);
    assert.deepEqual([groups.apiVersion, groups.kind], ['v1', 'APIGroupList']);
    assert.ok(groups.raw.includes('autoscaling/v2beta2'));
  });

  it('kinds that are not stored have no table form', async () => {
    const body = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { nonResourceAttributes: { path: '/', verb: 'get' } },
    };
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    assert.equal((await server.call('POST', path, { body, headers: { accept: table } })).code, 406);
    const either = await server.call<JsonObject>('POST', path, {
      body,
      headers: { accept: `${table},application/json` },
    });
    assert.deepEqual([either.code, either.body['kind']], [201, 'SelfSubjectAccessReview']);
  });

  it('returns objects and errors in YAML', async () => {
    const yaml = await server.call('GET', `${MAPS}/one`, { headers: { accept: 'application/yaml' } });
    assert.equal(yaml.headers['content-type'], 'application/yaml');
    const json = await server.call('GET', `${MAPS}/one`);
    assert.deepEqual(parse(yaml.text), json.body);
    const missing = await server.call('GET', `${MAPS}/nobody`, { headers: { accept: 'application/yaml' } });
    assert.equal((parse(missing.text) as JsonObject)['code'], 404);
  });

  it('returns tables and metadata in YAML', async () => {
    for (const path of [MAPS, `${MAPS}/one`]) {
      const isList = path === MAPS;
      for (const as of ['Table', isList ? 'PartialObjectMetadataList' : 'PartialObjectMetadata']) {
        const form = `;as=${as};v=v1;g=meta.k8s.io`;
        const yaml = await server.call('GET', path, { headers: { accept: `application/yaml${form}` } });
        assert.equal(yaml.headers['content-type'], 'application/yaml');
        const json = await server.call<JsonObject>('GET', path, { headers: { accept: `application/json${form}` } });
        assert.equal(json.body['kind'], as);
        // The ages differ by the time between the two requests.
        const ageless = (value: unknown): string => JSON.stringify(value).replaceAll(/"\d+[smh]\w*"/g, '""');
        assert.equal(ageless(parse(yaml.text)), ageless(json.body));
      }
    }
  });

  it("accepts only upstream's media types", async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'typed' } };
    const send = (type: string) =>
      server.call<{ message: string }>('POST', `${MAPS}?dryRun=All`, { body, headers: { 'content-type': type } });
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;a="b c" ; d=e;', 'application/yaml'])
      assert.equal((await send(type)).code, 201, type);
    for (const type of [
      'application/json;x',
      'application/json;=x',
      'application/x-yaml',
      'text/json',
      'json',
      'text/plain',
    ]) {
      const refused = await send(type);
      assert.equal(refused.code, 415, type);
      assert.equal(
        refused.body.message,
        `the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, ${PROTOBUF}`,
      );
    }
  });

  it('rejects unknown media types as upstream’s routes do', async () => {
    const types = `application/json, application/yaml, ${PROTOBUF}`;
    const streams = `application/json;stream=watch, ${PROTOBUF};stream=watch`;
    for (const [method, path, available] of [
      ['GET', `${MAPS}/none`, types],
      ['GET', MAPS, `${types}, ${streams}`],
      ['GET', `${MAPS}?watch=1`, `${types}, ${streams}`],
      ['DELETE', `${MAPS}/none`, types],
    ] as const) {
      const { code, body } = await server.call(method, path, { headers: { accept: 'text/html, image/png;q=0.5' } });
      const message = `406: Not Acceptable\n\nAvailable representations: ${available}`;
      assert.deepEqual(
        [code, body['message'], body['reason'], body['details']],
        [406, message, 'NotAcceptable', {}],
        path,
      );
    }
    const patch = await server.call('PATCH', `${MAPS}/none`, { raw: '{}', type: 'application/json' });
    assert.deepEqual(
      [patch.code, patch.body['message'], patch.body['reason'], patch.body['details']],
      [415, '415: Unsupported Media Type', 'UnsupportedMediaType', {}],
    );
  });

  it('falls back to JSON for kinds without protobuf, or returns 406', async () => {
    const path = '/apis/route.openshift.io/v1/routes';
    const both = await server.call('GET', path, { headers: { accept: `${PROTOBUF},application/json` } });
    assert.equal(both.headers['content-type'], 'application/json');
    const only = await server.call('GET', path, { headers: accept });
    assert.equal(only.code, 406);
    assert.match(only.text, /only the following media types are accepted: application\/json, application\/yaml/);
  });

  it('warns about deprecated kinds, and about deletions of jobs that orphan their pods', async () => {
    const warning = async (method: string, path: string, body?: object) =>
      (await server.call(method, path, body === undefined ? {} : { body })).headers['warning'];
    const endpoints = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"';
    assert.equal(await warning('GET', '/api/v1/endpoints'), endpoints);
    assert.equal(
      await warning('GET', '/api/v1/componentstatuses'),
      '299 - "v1 ComponentStatus is deprecated in v1.19+"',
    );
    const { text } = await server.call('GET', '/metrics');
    assert.match(
      text,
      /apiserver_requested_deprecated_apis\{group="",removed_release="",resource="endpoints",subresource="",version="v1"\} 1/,
    );
    const jobs = '/apis/batch/v1/namespaces/default/jobs';
    const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } };
    for (const name of ['a', 'b'])
      await server.call('POST', jobs, { body: { metadata: { name }, spec: { template } } });
    assert.match(
      String(await warning('DELETE', `${jobs}/a`)),
      /child pods are preserved by default when jobs are deleted/,
    );
    assert.equal(await warning('DELETE', `${jobs}/b`, { propagationPolicy: 'Background' }), undefined);
    assert.match(String(await warning('DELETE', jobs)), /child pods are preserved/);
  });

  it('serves an object in several versions, and warns about deprecated versions', async () => {
    const budgets = (version: string): string => `/apis/policy/${version}/namespaces/default/poddisruptionbudgets`;
    const created = await server.call('POST', budgets('v1beta1'), {
      body: { metadata: { name: 'web' }, spec: { minAvailable: 1, selector: {} } },
    });
    assert.equal(created.code, 201, created.text);
    assert.equal(created.body['apiVersion'], 'policy/v1beta1');
    assert.equal(
      created.headers['warning'],
      '299 - "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 PodDisruptionBudget"',
    );
    const current = await server.call<{ apiVersion: string; spec: JsonObject }>('GET', `${budgets('v1')}/web`);
    assert.equal(current.body.apiVersion, 'policy/v1');
    assert.equal(current.headers['warning'], undefined);
    assert.ok(JSON.stringify(current.body.spec['selector']).includes('deprecated-v1beta1-empty-selector-match'));
    const old = await server.call<{ spec: JsonObject }>('GET', `${budgets('v1beta1')}/web`, { headers: accept });
    assert.deepEqual((decodeProtobuf(old.bytes)['spec'] as JsonObject)['selector'], {});
    const patched = await server.call('PATCH', `${budgets('v1beta1')}/web`, {
      body: { spec: { minAvailable: '50%' } },
      type: 'application/merge-patch+json',
    });
    assert.equal(patched.code, 200, patched.text);
    const slices = await server.call<{ items: { apiVersion: string }[] }>(
      'GET',
      '/apis/coordination.k8s.io/v1beta1/leases',
    );
    assert.equal(slices.code, 200);
    const events = await server.call('GET', '/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dx');
    assert.equal(events.code, 200, events.text);
    const wrong = await server.call('GET', '/apis/events.k8s.io/v1/events?fieldSelector=involvedObject.name%3Dx');
    assert.equal(wrong.code, 400);
  });

  it('serves versions with the same schema without parsing the stored object', async () => {
    const path = (version: string): string => `/apis/scheduling.k8s.io/${version}/priorityclasses`;
    await server.call('POST', path('v1'), { body: { metadata: { name: 'fast' }, value: 7 } });
    const one = await server.call('GET', `${path('v1')}/fast`);
    const beta = await server.call('GET', `${path('v1beta1')}/fast`);
    assert.equal(beta.text, one.text.replace('scheduling.k8s.io/v1"', 'scheduling.k8s.io/v1beta1"'));
  });
});
