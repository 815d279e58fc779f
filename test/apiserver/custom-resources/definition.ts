import assert from 'node:assert/strict';
import type { TestServer } from '../harness.ts';

/** Defines a namespaced kind with these properties in version v1. */
export async function define(
  server: TestServer,
  group: string,
  kind: string,
  properties: Record<string, unknown>,
): Promise<void> {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: 'object', properties } };
  const made = await server.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: {
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        names: { kind, plural },
        scope: 'Namespaced',
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    },
  });
  assert.equal(made.code, 201, made.text);
}
