/** Integers that a double would round, in all operations on documents. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { define } from '../custom-resources/definition.ts';
import { startServer, type TestServer } from '../harness.ts';

const MAX = '9223372036854775807';
const ODD = '9007199254740993';
const PATH = '/apis/example.com/v1/namespaces/default/counters';
const PODS = '/api/v1/namespaces/default/pods';

describe('integers beyond the safe range', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    await define(server, 'example.com', 'Counter', {
      spec: {
        type: 'object',
        properties: {
          count: { type: 'integer', format: 'int64', minimum: 0 },
          bounded: { type: 'integer', maximum: 9_007_199_254_740_992, multipleOf: 3 },
          kept: { type: 'integer', default: 1, enum: [1, 2] },
          set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'integer' } },
          keyed: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['id'],
            items: {
              type: 'object',
              required: ['id'],
              properties: { id: { type: 'integer' }, text: { type: 'string' } },
            },
          },
          grows: {
            type: 'integer',
            'x-kubernetes-validations': [{ rule: 'self > oldSelf', message: 'must grow' }],
          },
          free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    });
    const accounts = '/api/v1/namespaces/default/serviceaccounts';
    await server.call('POST', accounts, { body: { metadata: { name: 'default' } } });
  });
  after(() => server.stop());

  const send = (method: string, path: string, text: string, type = 'application/json') =>
    server.call<{ message?: string }>(method, path, { raw: text, headers: { 'content-type': type } });
  const counter = (name: string, spec: string): string =>
    `{"apiVersion":"example.com/v1","kind":"Counter","metadata":{"name":"${name}"},"spec":${spec}}`;
  const specOf = (text: string): string => text.slice(text.indexOf('"spec":{')).replace(/}\s*$/, '');
  const made = async (name: string, spec: string): Promise<string> => {
    const answer = await send('POST', PATH, counter(name, spec));
    assert.equal(answer.code, 201, answer.text);
    return specOf(answer.text);
  };

  it('integers beyond the safe range are stored and returned exactly, in JSON, indented and in YAML', async () => {
    const spec = `{"count":${MAX},"free":{"negative":-${ODD},"list":[${ODD},1],"__proto__":${ODD}},"kept":1}`;
    assert.equal(await made('shown', spec), `"spec":${spec}`);
    for (const path of [`${PATH}/shown`, PATH]) {
      const { text } = await server.call('GET', path);
      assert.ok(text.includes(`"count":${MAX}`) && text.includes(`[${ODD},1]`), text);
      const pretty = await server.call('GET', `${path}?pretty=true`);
      assert.ok(pretty.text.includes(`"count": ${MAX}`) && pretty.text.includes(`"negative": -${ODD}`), pretty.text);
      const yaml = await server.call('GET', path, { headers: { accept: 'application/yaml' } });
      assert.ok(yaml.text.includes(`count: ${MAX}\n`) && yaml.text.includes(`- ${ODD}\n`), yaml.text);
    }
  });

  it('integers beyond the safe range are parsed from YAML, and become doubles beyond 64 bits', async () => {
    const yaml = `apiVersion: example.com/v1\nkind: Counter\nmetadata: {name: yaml}\nspec:\n  count: ${MAX}\n  free: {a: 18446744073709551615, b: 0x20000000000001, c: 1.5}\n`;
    const answer = await send('POST', PATH, yaml, 'application/yaml');
    assert.equal(answer.code, 201, answer.text);
    assert.ok(answer.text.includes(`{"a":18446744073709552000,"b":${ODD},"c":1.5}`), answer.text);
    assert.ok(answer.text.includes(`"count":${MAX}`), answer.text);
    const json = await send('POST', PATH, counter('wide', '{"count":9223372036854775808}'));
    assert.equal(json.code, 422, json.text);
  });

  it('integers beyond the safe range are compared exactly', async () => {
    const refused = async (spec: string, words: RegExp): Promise<void> => {
      const answer = await send('POST', PATH, counter('refused', spec));
      assert.equal(answer.code, 422, answer.text);
      assert.match(answer.body.message ?? '', words);
    };
    await refused(`{"count":-${ODD}}`, new RegExp(`Invalid value: -${ODD}: .*greater than or equal to 0`));
    await refused(`{"bounded":${ODD}}`, /less than or equal to 9007199254740992/);
    await refused('{"bounded":-9007199254740994}', /multiple of 3/);
    await refused(`{"set":[${ODD},9007199254740992,${ODD}]}`, new RegExp(`Duplicate value: ${ODD}`));
    await made('multiple', '{"bounded":-9007199254740993}');
    await made('set', `{"set":[${ODD},9007199254740992]}`);
    await made('grows', '{"grows":9007199254740992}');
    const same = await send(
      'PATCH',
      `${PATH}/grows`,
      '{"spec":{"grows":9007199254740991}}',
      'application/merge-patch+json',
    );
    assert.equal(same.code, 422, same.text);
    const grown = await send('PATCH', `${PATH}/grows`, `{"spec":{"grows":${ODD}}}`, 'application/merge-patch+json');
    assert.equal(grown.code, 200, grown.text);
  });

  it('integers beyond the safe range are patched and applied', async () => {
    await made('patched', `{"count":${ODD}}`);
    const path = `${PATH}/patched`;
    const test = `[{"op":"test","path":"/spec/count","value":${ODD}},{"op":"add","path":"/spec/free","value":{"n":${MAX}}}]`;
    const json = await send('PATCH', path, test, 'application/json-patch+json');
    assert.ok(json.text.includes(`"free":{"n":${MAX}}`), json.text);
    const wrong = test.replace(ODD, '9007199254740992');
    assert.equal((await send('PATCH', path, wrong, 'application/json-patch+json')).code, 422);
    const apply = (keyed: string, manager: string) =>
      send(
        'PATCH',
        `${path}?fieldManager=${manager}`,
        counter('patched', `{"keyed":${keyed},"set":[${ODD}]}`),
        'application/apply-patch+yaml',
      );
    await apply(`[{"id":${ODD},"text":"a"}]`, 'one');
    const second = await apply('[{"id":9007199254740992,"text":"b"}]', 'two');
    assert.ok(second.text.includes(`{"id":${ODD},"text":"a"},{"id":9007199254740992,"text":"b"}`), second.text);
    assert.ok(second.text.includes(String.raw`"k:{\"id\":${ODD}}"`), second.text);
    assert.ok(second.text.includes(`"v:${ODD}"`), second.text);
    // An item that a manager no longer applies is removed by its key.
    const gone = await apply('[]', 'one');
    assert.ok(!specOf(gone.text).includes(`{"id":${ODD}`) && gone.text.includes('"id":9007199254740992'), gone.text);
  });

  it('integers beyond the safe range of built-in kinds are exact in JSON and protobuf, and overflows are rejected', async () => {
    const pod = (name: string, seconds: string): string =>
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}"},"spec":{"containers":[{"name":"c","image":"i"}],"tolerations":[{"operator":"Exists","effect":"NoExecute","tolerationSeconds":${seconds}}]}}`;
    const answer = await send('POST', PODS, pod('long', MAX));
    assert.equal(answer.code, 201, answer.text);
    const { bytes } = await server.call('GET', `${PODS}/long`, {
      headers: { accept: 'application/vnd.kubernetes.protobuf' },
    });
    // Nine bytes of a varint with 63 bits set.
    assert.ok(bytes.includes(Buffer.from([0x28, ...Array<number>(8).fill(0xff), 0x7f])), bytes.toString('hex'));
    // An update with the same bytes changes nothing.
    const again = await server.call('PUT', `${PODS}/long`, {
      raw: bytes,
      headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
    });
    assert.equal(again.code, 200, again.text);
    assert.equal(again.text, answer.text);
    const wide = await send('POST', PODS, pod('wide', '9223372036854775808'));
    assert.equal(wide.code, 400, wide.text);
    assert.match(wide.body.message ?? '', /cannot unmarshal number .* of type int64/);
  });

  it('integers beyond the safe range are accepted as a grace period and a generation', async () => {
    const grace = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"grace"},"spec":{"nodeName":"n","terminationGracePeriodSeconds":${MAX},"containers":[{"name":"c","image":"i"}]}}`;
    const created = await send('POST', PODS, grace);
    assert.equal(created.code, 201, created.text);
    const deleted = await server.call<{ metadata: { deletionTimestamp: string } }>('DELETE', `${PODS}/grace`);
    assert.equal(deleted.code, 200, deleted.text);
    assert.equal(deleted.body.metadata.deletionTimestamp, '9999-12-31T23:59:59Z');
    assert.ok(deleted.text.includes(`"deletionGracePeriodSeconds":${MAX}`), deleted.text);
    const path = '/api/v1/namespaces/default/configmaps';
    const map = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"old","generation":${ODD},"finalizers":["a/b"]}}`;
    const old = await send('POST', path, map);
    assert.equal(old.code, 201, old.text);
    const marked = await server.call('DELETE', `${path}/old`);
    assert.equal(marked.code, 200, marked.text);
  });
});
