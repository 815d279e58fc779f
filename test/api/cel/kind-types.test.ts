/** CEL types of Kubernetes kinds. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { typeOfNode, typeOfPublished } from '../../../src/api/cel/kind-types.ts';
import { compile } from '../../../src/api/cel/language/compile.ts';
import { standardFunctions } from '../../../src/api/cel/library/index.ts';
import { DYN, formatType, type Type } from '../../../src/api/cel/types.ts';
import { schemaOf, schemaOfType } from '../../../src/api/schema/index.ts';

const typeIn = (object: Type, source: string): string =>
  formatType(compile(source, { functions: standardFunctions(), variables: new Map([['object', object]]) }).type);

describe('CEL types of kinds', () => {
  it('CEL types of kinds follow the schemas of built-in kinds', () => {
    const node = schemaOf({ group: '', version: 'v1', kind: 'Pod' });
    const pod = (node === undefined ? undefined : typeOfNode(node, 'Pod')) ?? DYN;
    const cases: [string, string][] = [
      ['object', 'Pod'],
      ['object.metadata.labels', 'map(string, string)'],
      ['object.spec.containers[0].ports[0].containerPort', 'int'],
      ['object.spec.containers[0].ports[0]', 'Pod.spec.containers.@idx.ports.@idx'],
      ['object.spec.containers[0].livenessProbe.httpGet.port', 'dyn'],
      ['object.metadata.creationTimestamp', 'timestamp'],
      ['object.metadata.managedFields[0].fieldsV1', 'dyn'],
    ];
    for (const [source, type] of cases) assert.equal(typeIn(pod, source), type, source);
    // Published quantities have several types, so they have no CEL type.
    for (const wrong of [
      'object.spec.containers[0].resources.limits',
      'object.spec.container',
      'object.metadata.name + 1',
      'object.spec.nodeName.size',
    ]) {
      assert.throws(() => typeIn(pod, wrong), /ERROR/, wrong);
    }
  });

  it('CEL types of kinds follow the published schemas of custom resources, without unknown fields', () => {
    const properties = {
      size: { type: 'integer' },
      ratio: { type: 'number' },
      'with-dash': { type: 'boolean' },
      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      port: { 'x-kubernetes-int-or-string': true },
      names: { type: 'object', additionalProperties: { type: 'string' } },
      when: { type: 'string', format: 'date-time' },
      ttl: { type: 'string', format: 'duration' },
      blob: { type: 'string', format: 'byte' },
      steps: { type: 'array', items: { type: 'object', properties: { in: { type: 'string' } } } },
    };
    const meta = schemaOfType('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
    assert.ok(meta);
    const metadata = { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' };
    const schema = { type: 'object', properties: { metadata, spec: { type: 'object', properties } } };
    const rig = typeOfPublished(schema, 'Rig', meta) ?? DYN;
    const cases: [string, string][] = [
      ['object.spec.size', 'int'],
      ['object.spec.ratio', 'double'],
      ['object.spec.with__dash__dash', 'bool'],
      ['object.spec.any', 'Rig.spec.any'],
      ['object.spec.port', 'dyn'],
      ["object.spec.names['a']", 'string'],
      ['object.spec.when', 'timestamp'],
      ['object.spec.ttl', 'duration'],
      ['object.spec.blob', 'bytes'],
      ['object.spec.steps[0].__in__', 'string'],
      ['object.metadata.annotations', 'map(string, string)'],
      ['object.metadata', 'Rig.metadata'],
    ];
    for (const [source, type] of cases) assert.equal(typeIn(rig, source), type, source);
    for (const field of ['spec.sise', 'spec.any.whatever', 'other'])
      assert.throws(() => typeIn(rig, `object.${field}`), /undefined field/, field);
  });
});
