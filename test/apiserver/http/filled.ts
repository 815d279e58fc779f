/** Creates a document of each type with every field set, always with the same values. */
import type { JsonObject, JsonValue } from '../../../src/api/meta/object.ts';
import type { ScalarType, SchemaNode } from '../../../src/api/schema/index.ts';

const SCALARS: Readonly<Record<ScalarType, (field: string) => JsonValue>> = {
  string: (field) => `${field} ü`,
  boolean: () => true,
  int32: (field) => 300 + field.length,
  int64: (field) => -(2 ** 40) - field.length,
  number: (field) => field.length + 0.5,
  'int-or-string': (field) => (field.length % 2 === 0 ? 70_000 + field.length : `${field.length}%`),
  quantity: (field) => `${field.length}Mi`,
  'date-time': (field) => new Date(field.length * 1e11).toISOString().replace('.000', ''),
  'date-time-micro': (field) => new Date(field.length * 1e11).toISOString().replace('.000', '.000123'),
  byte: (field) => Buffer.from(field).toString('base64'),
  any: (field) => ({ [field]: [1, { deep: true }] }),
};

export function filledDocument(node: SchemaNode, field = ''): JsonValue {
  switch (node.kind) {
    case 'scalar':
      return SCALARS[node.type](field);
    case 'list':
      return [filledDocument(node.items, field), filledDocument(node.items, `${field}2`)];
    case 'map':
      return { b: filledDocument(node.items, field), a: filledDocument(node.items, `${field}2`) };
    case 'object': {
      const document: JsonObject = {};
      for (const [name, each] of node.fields) document[name] = filledDocument(each, name);
      return document;
    }
  }
}
