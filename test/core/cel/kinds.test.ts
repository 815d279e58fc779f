/** Kinds as types of expressions: what may be named, and as what. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { schemaOf } from '../../../src/api/schema/index.ts';
import { mergeSchemaOf } from '../../../src/api/structural/merge-schema.ts';
import { parseSchema } from '../../../src/api/structural/schema.ts';
import { compile } from '../../../src/core/cel/compile.ts';
import { typeOfNode } from '../../../src/core/cel/kinds.ts';
import { standardFunctions } from '../../../src/core/cel/library/index.ts';
import { DYN, formatType, type Type } from '../../../src/core/cel/types.ts';

const typeIn = (object: Type, source: string): string =>
  formatType(compile(source, { functions: standardFunctions(), variables: new Map([['object', object]]) }).type);

describe('types of kinds', () => {
  it('are those of the built-in schemas', () => {
    const node = schemaOf({ group: '', version: 'v1', kind: 'Pod' });
    const pod = node === undefined ? DYN : typeOfNode(node);
    const cases: [string, string][] = [
      ['object', 'Pod'],
      ['object.metadata.labels', 'map(string, string)'],
      ['object.spec.containers[0].ports[0].containerPort', 'int'],
      ['object.spec.containers[0].resources.limits', 'map(string, string)'],
      ['object.spec.containers[0].livenessProbe.httpGet.port', 'dyn'],
      ['object.metadata.creationTimestamp', 'dyn'],
      ['object.metadata.managedFields[0].fieldsV1', 'dyn'],
    ];
    for (const [source, type] of cases) assert.equal(typeIn(pod, source), type, source);
    for (const wrong of ['object.spec.container', 'object.metadata.name + 1', 'object.spec.nodeName.size']) {
      assert.throws(() => typeIn(pod, wrong), /ERROR/, wrong);
    }
  });

  it('are those of custom resources’ schemas, open where these are', () => {
    const raw = {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: {
            size: { type: 'integer' },
            ratio: { type: 'number' },
            'with-dash': { type: 'boolean' },
            any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            port: { 'x-kubernetes-int-or-string': true },
            names: { type: 'object', additionalProperties: { type: 'string' } },
          },
        },
      },
    };
    const { schema } = parseSchema(raw, 'openAPIV3Schema');
    const rig = typeOfNode(mergeSchemaOf(schema));
    const cases: [string, string][] = [
      ['object.spec.size', 'int'],
      ['object.spec.ratio', 'double'],
      ['object.spec.with__dash__dash', 'bool'],
      ['object.spec.any.whatever.else', 'dyn'],
      ['object.spec.port', 'dyn'],
      ["object.spec.names['a']", 'string'],
      ['object.metadata.annotations', 'map(string, string)'],
      ['object.kind', 'string'],
    ];
    for (const [source, type] of cases) assert.equal(typeIn(rig, source), type, source);
    assert.throws(() => typeIn(rig, 'object.spec.sise'), /undefined field 'sise'/);
  });
});
