/**
 * Kinds as CEL's types: what an expression about an object may name. Source: k8s.io/apiserver/pkg/cel/common/schemas.go, and
 * pkg/cel/openapi. Lenient where a document's form says less than its schema: times and bytes are texts in JSON.
 */
import type { SchemaNode } from '../../api/schema/node.ts';
import { escapeName } from './schema.ts';
import { BOOL, DOUBLE, DYN, INT, listOf, mapOf, STRING, type Type } from './types.ts';

export function typeOfNode(node: SchemaNode): Type {
  switch (node.kind) {
    case 'object':
      return { kind: 'object', name: nameOf(node.typeName), fields: new NodeFields(node.fields) };
    case 'map':
      return mapOf(STRING, typeOfNode(node.items));
    case 'list':
      return listOf(typeOfNode(node.items));
    default:
      switch (node.type) {
        case 'string':
        case 'quantity':
          return STRING;
        case 'int32':
        case 'int64':
          return INT;
        case 'number':
          return DOUBLE;
        case 'boolean':
          return BOOL;
        default:
          return DYN;
      }
  }
}

const nameOf = (typeName: string): string => typeName.slice(typeName.lastIndexOf('.') + 1) || 'object';

/** Made when asked for: types may contain themselves. Names count as they are, and escaped. */
class NodeFields extends Map<string, Type> {
  readonly #nodes: ReadonlyMap<string, SchemaNode>;
  #escaped: ReadonlyMap<string, SchemaNode> | undefined;

  constructor(nodes: ReadonlyMap<string, SchemaNode>) {
    super();
    this.#nodes = nodes;
  }

  override get(name: string): Type | undefined {
    const known = super.get(name);
    if (known !== undefined) return known;
    const node = this.#nodes.get(name) ?? this.#byEscapedName(name);
    if (node === undefined) return undefined;
    const type = typeOfNode(node);
    super.set(name, type);
    return type;
  }

  #byEscapedName(name: string): SchemaNode | undefined {
    if (!name.includes('__')) return undefined;
    this.#escaped ??= new Map([...this.#nodes].map(([key, node]) => [escapeName(key) ?? key, node]));
    return this.#escaped.get(name);
  }
}
