/** OpenAPI documents of custom resources. kubectl 1.20 validates with version 2 and applies it literally. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { publishedSchema } from '../../../src/api/structural/openapi.ts';
import { parseSchema } from '../../../src/api/structural/schema.ts';

const published = (raw: JsonObject, version: 2 | 3): JsonObject =>
  publishedSchema(parseSchema(raw, 's').schema, version);
const specOf = (spec: JsonObject, version: 2 | 3): JsonObject =>
  (published({ type: 'object', properties: { spec } }, version)['properties'] as JsonObject)['spec'] as JsonObject;
const keep = { 'x-kubernetes-preserve-unknown-fields': true };

describe('OpenAPI documents of custom resources', () => {
  it('OpenAPI documents of custom resources list no fields in version 2 if any field is allowed', () => {
    const raw = { type: 'object', ...keep, description: 'free', properties: { spec: { type: 'object' } } };
    assert.deepEqual(published(raw, 2), { type: 'object' });
    assert.deepEqual(Object.keys(published(raw, 3)['properties'] as JsonObject), [
      'apiVersion',
      'kind',
      'metadata',
      'spec',
    ]);
  });

  it('OpenAPI documents of custom resources have no type in version 2 where a type would reject valid values', () => {
    const free = specOf({ type: 'object', ...keep, description: 'x', properties: { a: { type: 'string' } } }, 2);
    assert.deepEqual(free, { ...keep, description: 'x' });
    assert.deepEqual(specOf({ type: 'array', ...keep, items: { type: 'string' } }, 2), keep);
    assert.deepEqual(specOf({ type: 'string', nullable: true }, 2), {});
    assert.equal(specOf({ type: 'string', nullable: true }, 3)['nullable'], true);
  });

  it('OpenAPI documents of custom resources do not require nullable fields in version 2', () => {
    const properties = { a: { type: 'string', nullable: true }, b: { type: 'string' } };
    const both = { type: 'object', required: ['a', 'b'], properties };
    assert.deepEqual(specOf(both, 2)['required'], ['b']);
    assert.deepEqual(specOf(both, 3)['required'], ['a', 'b']);
    assert.equal('required' in specOf({ type: 'object', required: ['a'], properties }, 2), false);
    const map = { type: 'object', required: ['k'], additionalProperties: { type: 'string', nullable: true } };
    assert.equal('required' in specOf(map, 2), false);
  });

  it('OpenAPI documents of custom resources describe embedded resources', () => {
    const raw = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      required: ['kind'],
      properties: { spec: { type: 'object' } },
    };
    for (const version of [2, 3] as const) {
      const embedded = specOf(raw, version);
      assert.deepEqual(Object.keys(embedded['properties'] as JsonObject), ['apiVersion', 'kind', 'metadata', 'spec']);
      assert.deepEqual(embedded['required'], ['kind', 'apiVersion']);
    }
    assert.equal('properties' in specOf({ ...raw, ...keep }, 2), false);
    assert.ok('metadata' in (specOf({ ...raw, ...keep }, 3)['properties'] as JsonObject));
  });
});
