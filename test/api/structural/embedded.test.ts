/** Embedded resources in custom resources. Inputs with the responses of upstream's server. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validateEmbedded } from '../../../src/api/structural/embedded.ts';
import { parseSchema } from '../../../src/api/structural/schema.ts';

const { schema } = parseSchema(
  {
    type: 'object',
    properties: {
      e: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
  '',
);
const found = (e: object): string[] =>
  validateEmbedded(schema, { e } as never).map(({ field, message }) => `${field}: ${message}`);

test('validates kind and metadata of embedded resources', () => {
  assert.deepEqual(found({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'x-' } }), []);
  assert.deepEqual(found({ apiVersion: 'v1', kind: 'ConfigMap' }), []);
  const errors = found({
    apiVersion: 'v1',
    kind: '%',
    metadata: { name: '..', namespace: 'A', labels: { foo: 'x y' } },
  });
  assert.match(
    errors[0] ?? '',
    /^e\.kind: Invalid value: "%": may have mixed case, but should otherwise match: a DNS-1035/,
  );
  assert.match(errors[1] ?? '', /^e\.metadata\.name: Invalid value: "\.\.": may not be '\.\.'/);
  assert.match(errors[2] ?? '', /^e\.metadata\.namespace: Invalid value: "A"/);
  assert.match(errors[3] ?? '', /^e\.metadata\.labels: Invalid value: "x y"/);
  assert.equal(errors.length, 4);
});
