import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { applyManifest, placedProblems } from '../../../../src/console/data/api/apply.ts';
import { CONFIG_MAPS } from '../../../../src/console/data/api/resources.ts';
import { SchemaHelp } from '../../../../src/console/data/manifests/schema-help.ts';
import { parseManifests } from '../../../../src/console/data/manifests/yaml.ts';
import { yamlPosition } from '../../../../src/console/data/manifests/yaml-path.ts';
import { FakeApi, json } from '../fake-api.ts';

const TEXT = `apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: app
        ports:
        - containerPort: 80
        image: |x
        
      volumes:
        - name: v
`;

/** Position of the first character after `mark` in the text. */
const after = (mark: string, text = TEXT) => yamlPosition(text, text.indexOf(mark) + mark.length);

suite('the field at a position', () => {
  test('the field at a position has the kind of its document and a path without list indexes', () => {
    assert.deepEqual(after('replicas'), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      parents: ['spec'],
      key: 'replicas',
      isInValue: false,
    });
    assert.equal(after('replicas: ')?.isInValue, true);
    assert.deepEqual(after('- containerPort')?.parents, ['spec', 'template', 'spec', 'containers', 'ports']);
    assert.deepEqual(after('image')?.parents, ['spec', 'template', 'spec', 'containers']);
    assert.deepEqual(after('- name: v')?.parents, ['spec', 'template', 'spec', 'volumes']);
    assert.equal(after('kind: ConfigMap')?.kind, 'ConfigMap');
    assert.deepEqual(after('image: |x\n        '), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      parents: ['spec', 'template', 'spec', 'containers'],
      key: '',
      isInValue: false,
    });
  });

  test('the field at a position is found also in hostile and incomplete texts', () => {
    for (const text of ['', '---', '- - - a', ':', '\t: x', '__proto__: {', 'a:\n'.repeat(20_000), '- '.repeat(10_000)])
      for (const offset of [0, text.length]) assert.doesNotThrow(() => yamlPosition(text, offset));
  });
});

const reference = (name: string): object => ({ allOf: [{ $ref: `#/components/schemas/${name}` }] });
const schemas = {
  Deployment: {
    'x-kubernetes-group-version-kind': [{ group: 'apps', version: 'v1', kind: 'Deployment' }],
    description: 'A deployment.',
    properties: { spec: { ...reference('Spec'), description: 'Desired.' } },
  },
  Spec: {
    required: ['template'],
    properties: {
      replicas: { type: 'integer', description: 'Number of pods.' },
      template: reference('Loop'),
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      containers: { type: 'array', items: reference('Container') },
      paused: { type: 'boolean' },
    },
  },
  Container: { properties: { name: { type: 'string' }, policy: { type: 'string', enum: ['Always', 'Never'] } } },
  Loop: reference('Loop'),
};

function book(url = '/openapi/v3/apis/apps/v1?hash=x') {
  const server = new FakeApi();
  server.answer = ({ pathname }) =>
    json(
      pathname === '/openapi/v3'
        ? { paths: { 'apis/apps/v1': { serverRelativeURL: url } } }
        : { components: { schemas } },
    );
  return { server, help: new SchemaHelp(server.api) };
}

suite('help from schemas', () => {
  const at = (parents: string[], key: string, apiVersion = 'apps/v1') => ({
    apiVersion,
    kind: 'Deployment',
    parents,
    key,
    isInValue: false,
  });

  test('help from schemas describes a field and its sibling fields, with one request for each document', async () => {
    const { server, help } = book();
    const replicas = await help.field(at(['spec'], 'replicas'));
    assert.deepEqual(
      [replicas?.path, replicas?.type, replicas?.description],
      ['spec.replicas', 'integer', 'Number of pods.'],
    );
    const spec = await help.around(at(['spec'], ''));
    assert.deepEqual(
      spec?.fields.map(({ name, type, isRequired }) => [name, type, isRequired]),
      [
        ['replicas', 'integer', false],
        ['template', 'value', true],
        ['labels', 'map of string', false],
        ['containers', 'list of value', false],
        ['paused', 'boolean', false],
      ],
    );
    assert.deepEqual((await help.field(at(['spec', 'containers'], 'policy')))?.values, ['Always', 'Never']);
    assert.deepEqual((await help.field(at(['spec'], 'paused')))?.values, ['true', 'false']);
    assert.equal((await help.around(at([], '')))?.path, 'Deployment');
    assert.equal(server.requests.length, 2);
  });

  test('unknown kinds, hostile keys, endless references and foreign URLs of schemas yield no help', async () => {
    const { server, help } = book();
    assert.equal(await help.field(at(['spec'], '__proto__')), undefined);
    assert.equal(await help.field(at(['constructor'], 'prototype')), undefined);
    assert.equal(await help.around(at(['spec', 'template', 'x'], '')), undefined);
    assert.equal(await help.around(at([], '', '../../secrets')), undefined);
    assert.ok(server.requests.every(({ url }) => url.pathname.startsWith('/openapi/v3')));
    const other = book('https://evil.test/openapi/v3/x');
    assert.equal(await other.help.around(at([], '')), undefined);
    assert.equal(other.server.requests.length, 1);
  });
});

test('errors of the server are mapped to lines of their document', () => {
  const text =
    'apiVersion: v1\nkind: A\nmetadata:\n  name: a\n---\napiVersion: v1\nkind: B\nmetadata:\n  name: b\nspec:\n  x: 1\n  y: 2\n';
  const [, place] = parseManifests(text).places;
  assert.ok(place !== undefined);
  const causes = [{ reason: 'FieldValueInvalid', field: 'spec.y', message: 'too large' }];
  assert.deepEqual(placedProblems({ causes, message: '' }, place.text, place.line), [
    { line: 12, message: 'spec.y: too large' },
  ]);
  const message = 'strict decoding error: unknown field "spec.x", unknown field "spec.z"';
  assert.deepEqual(placedProblems({ causes: [], message }, place.text, place.line), [
    { line: 11, message: 'unknown field "spec.x"' },
    { line: 10, message: 'unknown field "spec.z"' },
  ]);
  const untyped = 'failed to create typed patch object (n/b; /v1, Kind=B): ';
  assert.deepEqual(
    placedProblems({ causes: [], message: `${untyped}.spec.y: field not declared in schema` }, place.text, place.line),
    [{ line: 12, message: 'spec.y: field not declared in schema' }],
  );
  assert.equal(
    placedProblems({ causes: [], message: `${untyped}.spec[name="a"].b: wrong` }, place.text, place.line)[0]?.line,
    10,
  );
  assert.deepEqual(placedProblems({ causes: [], message: 'no' }, place.text, place.line), [
    { line: undefined, message: 'no' },
  ]);
});

test('reports an object that does not fit the schema of server-side apply as invalid', async () => {
  const server = new FakeApi();
  const message = 'failed to create typed patch object (n/a; /v1, Kind=ConfigMap): .x: field not declared in schema';
  server.answer = () => json({ kind: 'Status', status: 'Failure', code: 500, message }, 500);
  const manifest = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'n' } };
  assert.equal((await applyManifest(server.api, CONFIG_MAPS, manifest)).outcome, 'invalid');
  server.answer = () => json({ kind: 'Status', status: 'Failure', code: 500, message: 'other' }, 500);
  await assert.rejects(applyManifest(server.api, CONFIG_MAPS, manifest), /other/);
});
