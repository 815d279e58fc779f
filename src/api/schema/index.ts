export type { ListNode, MapNode, ObjectNode, PatchStrategy, ScalarNode, ScalarType, SchemaNode } from './node.ts';
export { schemaNameOf, schemaNodeAt, schemaOf, schemaOfType, typeNames, typeOf } from './schemas.ts';
