/**
 * Definitions in v1beta1, and resources with preserved unknown fields. The expectations are those of upstream's API
 * server
 * 1.20 (test/upstream/differential.ts, part `definitions`).
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';
import { until } from './crontab.ts';

const OLDER = '/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions';
const NEWER = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GROUP = 'older.example.com';
const THINGS = `/apis/${GROUP}/v1/namespaces/default/things`;
const MERGE = { 'content-type': 'application/merge-patch+json' };

type Json = Record<string, unknown>;
type Body = Json & {
  message: string;
  metadata: Json;
  spec: Json & { versions: Json[] };
  status: { conditions: { type: string; reason: string; message: string }[] };
  rows: { cells: unknown[] }[];
};

const definition = (spec: Json, version = 'v1beta1', metadata: Json = {}): Json => ({
  apiVersion: `apiextensions.k8s.io/${version}`,
  kind: 'CustomResourceDefinition',
  metadata: { name: `things.${GROUP}`, ...metadata },
  spec: { group: GROUP, names: { plural: 'things', kind: 'Thing' }, ...spec },
});
const validation = (openAPIV3Schema: Json): Json => ({ openAPIV3Schema });
const named = (name: string, more: Json = {}): Json => ({ name, served: true, storage: name === 'v1', ...more });

/** A schema without types, which is not structural. */
const LOOSE = {
  properties: {
    spec: {
      required: ['x'],
      properties: { x: { type: 'string', maxLength: 4 }, y: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
    },
  },
};

describe('CustomResourceDefinitions in v1beta1', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
    server.call<Body>(method, path, { ...(body === undefined ? {} : { body }), headers });
  const tried = async (body: Json, path = OLDER): Promise<string> => {
    const { code, body: answer } = await call('POST', `${path}?dryRun=All`, body);
    return code === 201 ? '' : answer.message.replace(/^.*? is invalid: /, '');
  };

  it('CustomResourceDefinitions in v1beta1 apply the validation of v1beta1', async () => {
    const text = validation({ type: 'object' });
    const list = [named('v1', { schema: text }), named('v2', { schema: text })];
    const facts: [Json, RegExp][] = [
      [{}, /spec.versions: Invalid value: .*: must have exactly one version marked as storage version/],
      [{ version: 'v1' }, /^$/],
      [{ version: 'v1', validation: validation(LOOSE) }, /^$/],
      [{ version: 'v1', validation: validation({ properties: { a: { type: 'foo' } } }) }, /^$/],
      [{ version: 'v1', validation: validation({ properties: { a: { pattern: '(?=a)' } } }) }, /^$/],
      [
        { version: 'v1', preserveUnknownFields: false },
        /openAPIV3Schema: Required value: because otherwise all fields/,
      ],
      [{ version: 'v1', preserveUnknownFields: false, validation: validation(LOOSE) }, /must not be empty at the root/],
      [{ version: 'v2', versions: [named('v1')] }, /^spec.version: Invalid value: "v2": must match the first version/],
      [{ versions: list }, /^spec.versions: .*: per-version schemas may not all be set to identical values/],
      [{ versions: list.slice(0, 1) }, /per-version schemas may not all be set to identical values/],
      [{ validation: text, versions: list }, /spec.validation: Forbidden: top-level and per-version schemas are/],
      [{ version: 'v1', validation: validation({ default: {} }) }, /default: Forbidden: must not be set \(cannot set/],
      [
        { version: 'v1', validation: validation({ properties: { a: { 'x-kubernetes-int-or-string': true } } }) },
        /openAPIV3Schema.type: Required value: must not be empty at the root/,
      ],
      [{ version: 'v1', conversion: { strategy: 'Webhook' } }, /must be None if spec.preserveUnknownFields is true/],
    ];
    for (const [spec, refusal] of facts) assert.match(await tried(definition(spec)), refusal, JSON.stringify(spec));
    // Groups of Kubernetes need the approval annotation only in v1.
    const own = { version: 'v1', group: 'x.k8s.io' };
    assert.equal(await tried(definition(own, 'v1beta1', { name: 'things.x.k8s.io' })), '');
    const newer = { scope: 'Namespaced', preserveUnknownFields: true, versions: [named('v1', { schema: text })] };
    assert.match(await tried(definition(newer, 'v1'), NEWER), /^spec.preserveUnknownFields: .*: cannot set to true/);
  });

  it('CustomResourceDefinitions in v1beta1 share their storage with v1, and are readable in both versions', async () => {
    const column = { name: 'X', type: 'string', JSONPath: '.spec.x' };
    const more = { subresources: { status: {} }, additionalPrinterColumns: [column], validation: validation(LOOSE) };
    const made = await call('POST', OLDER, definition({ version: 'v1', ...more }));
    assert.equal(made.code, 201, made.text);
    assert.match(made.headers['warning'] as string, /v1beta1 CustomResourceDefinition is deprecated in v1.16\+/);
    assert.deepEqual(made.body.spec, {
      ...(definition(more)['spec'] as Json),
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      scope: 'Namespaced',
      version: 'v1',
      versions: [named('v1')],
      conversion: { strategy: 'None' },
      preserveUnknownFields: true,
    });
    const { body } = await call('GET', `${NEWER}/things.${GROUP}`);
    assert.equal(body.spec['preserveUnknownFields'], true);
    assert.deepEqual(body.spec.versions, [
      named('v1', {
        schema: validation(LOOSE),
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: 'X', type: 'string', jsonPath: '.spec.x' }],
      }),
    ]);
    const stated = await until('judged', async () => {
      const { body: now } = await call('GET', `${OLDER}/things.${GROUP}`);
      return now.status.conditions.find((each) => each.type === 'NonStructuralSchema');
    });
    assert.equal(stated.reason, 'Violations');
    assert.match(
      stated.message,
      /^\[spec.preserveUnknownFields: Invalid value: true: must be false, spec.versions\[0\]/,
    );
  });

  it('CustomResourceDefinitions in v1beta1 keep unknown fields of resources, and validate known ones', async () => {
    await until('served', async () => (await call('GET', THINGS)).code === 200);
    const thing = (name: string, spec: unknown): Json => ({
      apiVersion: `${GROUP}/v1`,
      kind: 'Thing',
      metadata: { name },
      spec,
      more: { deep: [1, null, {}] },
    });
    const spec = { x: 'a', unknown: { list: [{ a: null }] }, none: null };
    const strict = await call('POST', `${THINGS}?fieldValidation=Strict`, thing('a', spec));
    assert.equal(strict.code, 201, strict.text);
    assert.deepEqual([strict.body.spec, strict.body['more']], [spec, { deep: [1, null, {}] }]);
    const patched = await call('PATCH', `${THINGS}/a`, { spec: { y: 7, other: { b: 1 } } }, MERGE);
    assert.deepEqual(patched.body.spec, { ...spec, y: 7, other: { b: 1 } });
    for (const [wrong, refusal] of [
      [{ x: 'abcde' }, /spec.x: Too long/],
      [{ x: 1 }, /spec.x: .* must be of type string/],
      [{ x: 'a', y: true }, /spec.y/],
      [{}, /spec.x: Required value/],
    ] as const)
      assert.match((await call('POST', THINGS, thing('b', wrong))).body.message, refusal);
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const list = (n: number): Json => ({ ...thing('c', { x: 'a', unknown: { keep: 1, n } }) });
    await call('PATCH', `${THINGS}/c?fieldManager=m`, list(1), apply);
    const applied = await call('PATCH', `${THINGS}/c?fieldManager=m`, list(2), apply);
    assert.deepEqual(applied.body.spec['unknown'], { keep: 1, n: 2 });
    const table = await call('GET', THINGS, undefined, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    assert.deepEqual(
      table.body.rows.map((each) => each.cells),
      [
        ['a', 'a'],
        ['c', 'a'],
      ],
    );
  });

  it('CustomResourceDefinitions in v1beta1 can be updated in v1 without rules that are newer than the object', async () => {
    const one = `${NEWER}/things.${GROUP}`;
    const kept = await call('PATCH', one, { spec: { names: { shortNames: ['th'] } } }, MERGE);
    assert.equal(kept.code, 200, kept.text);
    const pruning = await call('PATCH', one, { spec: { preserveUnknownFields: false } }, MERGE);
    assert.match(pruning.body.message, /must not be empty at the root/);
    const schema = validation({ type: 'object', properties: { spec: { type: 'object' } } });
    const mended = { preserveUnknownFields: false, versions: [named('v1', { schema })] };
    assert.equal((await call('PATCH', one, { spec: mended }, MERGE)).code, 200);
    const conditions = await until('judged anew', async () => {
      const { body } = await call('GET', one);
      const types = body.status.conditions.map((each) => each.type);
      return types.includes('NonStructuralSchema') ? undefined : types;
    });
    assert.deepEqual(conditions, ['NamesAccepted', 'Established']);
    await until('pruned', async () => {
      const { body } = await call('GET', `${THINGS}/a`);
      return !('more' in body) && body;
    });
    assert.match(
      (await call('PATCH', one, { spec: { preserveUnknownFields: true } }, MERGE)).body.message,
      /cannot set to true/,
    );
  });
});
