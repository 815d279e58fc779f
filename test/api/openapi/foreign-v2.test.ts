import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonValue } from '../../../src/api/meta/object.ts';
import { partOfV2, withUniqueDefinitions } from '../../../src/api/openapi/foreign-v2.ts';
import { encodeOpenapiV2 } from '../../../src/api/openapi/v2-protobuf.ts';

const AT = { group: 'g.test', version: 'v1' };
const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
const gvk = { group: 'g.test', version: 'v1', kind: 'Thing' };

const DOCUMENT = {
  paths: {
    '/apis/g.test/v1/things': {
      get: { operationId: 'list', responses: { 200: { description: 'OK', schema: ref('List') } } },
      parameters: [{ name: 'limit', in: 'query', type: 'integer' }, ref('shared')],
    },
    '/apis/g.test/v10/things': { get: {} },
    '/apis/g.test': { get: {} },
    '/api/v1/pods': { get: { responses: { 200: { schema: ref('Unused') } } } },
  },
  definitions: {
    List: { type: 'object', properties: { items: { type: 'array', items: ref('Thing') } } },
    Thing: {
      type: 'object',
      properties: { meta: ref('Meta'), size: ref('Size'), lost: ref('Nowhere') },
      'x-kubernetes-group-version-kind': [gvk],
    },
    Meta: { properties: { owner: ref('Owner') } },
    Owner: { properties: { name: { type: 'string' } } },
    Size: { type: 'string', description: 'How large.' },
    Option: { type: 'object', 'x-kubernetes-group-version-kind': [gvk] },
    Unused: { type: 'object' },
  },
};

test('extracts the paths of an API group with exactly the definitions that the paths need', () => {
  const part = partOfV2(DOCUMENT, AT);
  assert.deepEqual(Object.keys(part.paths), ['/apis/g.test/v1/things']);
  assert.deepEqual(Object.keys(part.definitions).sort(), ['List', 'Meta', 'Option', 'Owner', 'Size', 'Thing']);
  assert.deepEqual(part.definitions['Thing']?.['properties'], { meta: ref('Meta'), size: ref('Size'), lost: {} });
  assert.deepEqual(part.paths['/apis/g.test/v1/things']?.parameters, [
    { name: 'limit', in: 'query', description: '', required: false, type: 'integer' },
  ]);
});

test('equal OpenAPI definitions are shared, and different definitions of the same name are renamed with their references', () => {
  const { Size, Owner, ...rest } = partOfV2(DOCUMENT, AT).definitions;
  const part = { ...partOfV2(DOCUMENT, AT), definitions: { ...rest, Size: Size ?? {}, Owner: Owner ?? {} } };
  const known = {
    // This definition equals the existing one except for the order of its fields and its kinds.
    Size: { description: 'How large.', type: 'string', 'x-kubernetes-group-version-kind': [] },
    // This definition equals the existing one, but refers to a definition that differs.
    Meta: { properties: { owner: ref('Owner') } },
    Owner: { properties: { name: { type: 'integer' } } },
    Owner_v2: { type: 'string' },
  };
  const added = withUniqueDefinitions(part, known);
  assert.deepEqual(Object.keys(added.definitions).sort(), ['List', 'Meta_v2', 'Option', 'Owner_v3', 'Thing']);
  assert.deepEqual(added.definitions['Meta_v2'], { properties: { owner: ref('Owner_v3') } });
  assert.deepEqual(added.definitions['Thing']?.['properties'], { meta: ref('Meta_v2'), size: ref('Size'), lost: {} });
  assert.deepEqual(withUniqueDefinitions(part, {}), part);
});

/** A small document of words that have a meaning in OpenAPI. */
function randomValue(random: () => number, depth: number): JsonValue {
  const words = [
    'get',
    'post',
    'parameters',
    'in',
    'body',
    'schema',
    '$ref',
    '#/definitions/Thing',
    'properties',
    'items',
  ];
  words.push(
    'required',
    'type',
    'responses',
    '200',
    'additionalProperties',
    'x-kubernetes-group-version-kind',
    '__proto__',
  );
  const word = (): string => words[Math.floor(random() * words.length)] as string;
  const kind = Math.floor(random() * (depth > 5 ? 4 : 7));
  if (kind < 1) return null;
  if (kind < 2) return word();
  if (kind < 3) return random() < 0.5;
  if (kind < 4) return Math.floor(random() * 100);
  const length = Math.floor(random() * 5);
  if (kind < 5) return Array.from({ length }, () => randomValue(random, depth + 1));
  const entries = Array.from({ length }, () => [word(), randomValue(random, depth + 1)] as const);
  return Object.fromEntries(entries);
}

test('drops malformed parts of an OpenAPI document and converts the rest to every output format', () => {
  let state = 7;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  for (let run = 0; run < 2_000; run++) {
    const document = {
      paths: { '/apis/g.test/v1/things': randomValue(random, 0), '/apis/g.test/v1/x': { get: randomValue(random, 0) } },
      definitions: { Thing: randomValue(random, 0), Meta: { properties: { a: randomValue(random, 0) } } },
    };
    const part = withUniqueDefinitions(partOfV2(document, AT), { Thing: { type: 'object' } });
    encodeOpenapiV2({ swagger: '2.0', info: { title: '', version: '' }, ...part }, 1024);
    const names = new Set(Object.keys(part.definitions)).add('Thing');
    for (const [, name] of JSON.stringify(part.paths).matchAll(/"\$ref":"#\/definitions\/([^"]*)"/g))
      assert.ok(names.has(name ?? ''), name);
  }
  for (const rubbish of [null, 1, 'x', [], { paths: [], definitions: 3 }])
    assert.deepEqual(partOfV2(rubbish as JsonValue, AT), { paths: {}, definitions: {} });
  assert.equal(({} as { get?: unknown }).get, undefined);
});
