/** The NonStructuralSchema condition. Source: k8s.io/apiextensions-apiserver/pkg/controller/nonstructuralschema. */
import type { CustomResourceDefinition } from '../../../generated/apiextensions/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { parseSchema } from '../../../structural/schema.ts';
import { structuralErrors } from '../../../structural/structural-rules.ts';
import type { DefinitionCondition } from './conditions.ts';
import { preservesUnknownFields } from './schema-rules.ts';

const type = 'NonStructuralSchema';
/** Limits the number of errors in the condition, because it is stored in the definition. */
const MAX_REPORTED = 256;

/**
 * Returns the NonStructuralSchema condition; undefined if all schemas are structural. Definitions without
 * preserveUnknownFields need no check, because validation already requires structural schemas for them.
 */
export function structureCondition(definition: CustomResourceDefinition): DefinitionCondition | undefined {
  if (!preservesUnknownFields(definition)) return undefined;
  const found: FieldError[] = [fieldError.invalid('spec.preserveUnknownFields', true, 'must be false')];
  for (const [index, { name, schema }] of definition.spec.versions.entries()) {
    const raw = schema?.openAPIV3Schema;
    if (raw === undefined) continue;
    const path = `spec.versions[${index}].schema.openAPIV3Schema`;
    const parsed = parseSchema(raw, path);
    if (parsed.unsupported !== undefined) {
      const why = `OpenAPIV3Schema '${parsed.unsupported.replace('$schema', 'schema')}' is not supported`;
      const message = `failed to check validation schema for version ${name}: ${why}`;
      return { type, status: 'Unknown', reason: 'StructuralError', message };
    }
    found.push(...structuralErrors(parsed.schema, path));
  }
  const messages = [...new Set(found.slice(0, MAX_REPORTED).map(({ field, message }) => `${field}: ${message}`))];
  const message = messages.length === 1 ? (messages[0] ?? '') : `[${messages.join(', ')}]`;
  return { type, status: 'True', reason: 'Violations', message };
}
