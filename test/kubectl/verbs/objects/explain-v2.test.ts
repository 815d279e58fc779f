/** `explain --output=plaintext-openapiv2` prints the layout of kubectl 1.32. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startServer } from '../../../apiserver/harness.ts';
import { runClient } from '../../run-client.ts';

const WIDGETS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            description: [
              'A widget is a small part of a larger machine, and its long description is wrapped at the width.',
              '',
              'Second paragraph:',
              'follows a colon',
              'and continues',
              '- an item',
              '    code   stays',
              '1. one',
            ].join('\n'),
            properties: {
              spec: {
                type: 'object',
                description: 'Desired state.',
                required: ['size'],
                properties: {
                  size: { type: 'integer', description: 'Number of parts.' },
                  parts: {
                    type: 'array',
                    description: 'All parts.',
                    items: { type: 'object', description: 'One part.', properties: { a: { type: 'string' } } },
                  },
                  labels: { type: 'object', additionalProperties: { type: 'string', description: 'A value.' } },
                  port: { 'x-kubernetes-int-or-string': true, description: 'Port.' },
                  any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  matrix: { type: 'array', items: { type: 'array', items: { type: 'string' } } },
                },
              },
            },
          },
        },
      },
    ],
  },
};

describe('explain in the layout of version 2', () => {
  let server: Awaited<ReturnType<typeof startServer>>;

  before(async () => {
    server = await startServer();
    process.env['KUBECACHEDIR'] = server.directory;
    const { code, stderr } = await call(['apply', '-f', '-'], JSON.stringify(WIDGETS));
    assert.equal(code, 0, stderr);
    const established = await call(['wait', '--for=condition=Established', 'crd/widgets.example.com', '--timeout=20s']);
    assert.equal(established.code, 0, established.stderr);
  });
  after(() => server.stop());

  const call = (args: readonly string[], input?: string) =>
    runClient(['--kubeconfig', server.kubeconfig, ...args], input);
  const explain = (...args: readonly string[]) => call(['explain', '--output=plaintext-openapiv2', ...args]);

  test('prints the fields of an object with their types and descriptions', async () => {
    const { stdout } = await explain('widget.spec');
    assert.equal(
      stdout,
      `KIND:     Widget
VERSION:  example.com/v1

RESOURCE: spec <Object>

DESCRIPTION:
     Desired state.

FIELDS:
   any\t<>

   labels\t<map[string]string>

   matrix\t<[][]string>

   parts\t<[]Object>
     All parts.

   port\t<>
     Port.

   size\t<integer> -required-
     Number of parts.

`,
    );
  });

  test('fills paragraphs, and keeps lists, code and the line after a colon', async () => {
    const { stdout } = await explain('widget');
    assert.ok(
      stdout.startsWith(`KIND:     Widget
VERSION:  example.com/v1

DESCRIPTION:
     A widget is a small part of a larger machine, and its long description is
     wrapped at the width.

     Second paragraph:
     follows a colon and continues
     - an item
         code   stays
     1. one

FIELDS:
   apiVersion\t<string>
`),
      stdout,
    );
  });

  test('prints the descriptions of a list and of its items, and fields without objects', async () => {
    assert.match(
      (await explain('widget.spec.parts')).stdout,
      /DESCRIPTION:\n {5}All parts\.\n\n {5}One part\.\n\nFIELDS:/,
    );
    assert.equal(
      (await explain('deploy.spec.strategy.rollingUpdate.maxSurge')).stdout.split('\n')[3],
      'FIELD:    maxSurge <string>',
    );
    assert.equal(
      (await explain('widget.spec.matrix')).stdout,
      'KIND:     Widget\nVERSION:  example.com/v1\n\nFIELD:    matrix <[][]string>\n\nDESCRIPTION:\n     <empty>\n',
    );
  });

  test('prints the tree of all fields', async () => {
    const { stdout } = await explain('widget.spec', '--recursive');
    assert.ok(
      stdout.endsWith(
        'FIELDS:\n   any\t<>\n   labels\t<map[string]string>\n   matrix\t<[][]string>\n   parts\t<[]Object>\n      a\t<string>\n' +
          '   port\t<>\n   size\t<integer>\n',
      ),
      stdout,
    );
  });

  test('reports a field that does not exist, without a page', async () => {
    const { code, stdout, stderr } = await explain('widget.absent.a');
    assert.deepEqual(
      { code, stdout, stderr },
      { code: 1, stdout: '', stderr: 'error: field "absent" does not exist\n' },
    );
  });
});
