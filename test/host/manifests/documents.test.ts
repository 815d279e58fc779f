import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parentName } from '../../../src/host/manifests/apply.ts';
import { readDocuments } from '../../../src/host/manifests/documents.ts';

const read = (text: string) => readDocuments(text, async () => {});

test('parses manifests with documents, lists, comments and empty documents', async () => {
  const objects = await read(`# a comment
---
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}}
  - {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
---
{"apiVersion": "lab.dev/v1", "kind": "Rig", "metadata": {"name": "c"}}
`);
  assert.deepEqual(
    objects.map(({ group, version, kind, name, namespace }) => [group, version, kind, name, namespace]),
    [
      ['', 'v1', 'ConfigMap', 'a', 'x'],
      ['apps', 'v1', 'Deployment', 'b', undefined],
      ['lab.dev', 'v1', 'Rig', 'c', undefined],
    ],
  );
});

test('the error of a manifest names the invalid document', async () => {
  const cases: [string, RegExp][] = [
    ['kind: [', /^document 1: /],
    ['a: 1\na: 2', /document 1: Map keys must be unique/],
    ['---\nx: 1', /document 2: apiVersion not set/],
    ['{apiVersion: v1, kind: Pod, metadata: {generateName: x-}}', /Pod: metadata\.name is required/],
    ['[1]', /document 1: not an object/],
    [
      `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]`,
      /document 1: Excessive alias count/,
    ],
  ];
  for (const [text, message] of cases) await assert.rejects(read(text), { message }, text);
});

test('generates different ApplySet names for similar file names', () => {
  const hash = (text: string): string => Buffer.from(text).toString('hex').slice(-12);
  assert.match(parentName('apps/Web Front.yaml', hash), /^manifest-apps-web-front-[0-9a-f]{8}$/);
  assert.notEqual(parentName('a-b.yaml', hash), parentName('a/b.yml', hash));
});
