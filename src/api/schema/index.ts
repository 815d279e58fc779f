export type { ListNode, MapNode, ObjectNode, PatchStrategy, ScalarNode, ScalarType, SchemaNode } from './node.ts';
export { nodeAt, schemaNameOf, schemaOf, schemaOfType, typeNames, typeOf } from './schemas.ts';
