/**
 * Validation of the schema in a definition. The order of the errors is upstream's. Source:
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation (validateCustomResourceDefinitionValidation).
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject } from '../meta/object.ts';
import { defaultErrors } from './default-rules.ts';
import { keywordErrors } from './keyword-rules.ts';
import { fieldOf, type ParsedSchema, type Schema } from './schema.ts';
import { structuralErrors } from './structural-rules.ts';

/**
 * Keywords that are forbidden at the root if the status subresource is enabled, because upstream extracts the schema of
 * `status` from it. In upstream's order.
 */
const NOT_BESIDE_STATUS = [
  'id',
  '$schema',
  '$ref',
  'nullable',
  'enum',
  'maxProperties',
  'minProperties',
  'allOf',
  'oneOf',
  'anyOf',
  'not',
  'additionalProperties',
  'patternProperties',
  'dependencies',
  'additionalItems',
  'definitions',
  'default',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
];
const BESIDE_STATUS =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations';

export interface SchemaResult {
  readonly found: readonly FieldError[];
  /** Whether the schema is too broken for its CEL rules to be checked. */
  readonly broken: boolean;
}

/** Requirements for a schema that depend on the definition. */
export interface SchemaRules {
  /** Whether every value must have exactly one known type. */
  readonly structural: boolean;
  /** Whether types must be valid. */
  readonly types: boolean;
  /** Error text if defaults are not allowed, otherwise undefined. */
  readonly noDefaults: string | undefined;
}

export const STRICT: SchemaRules = { structural: true, types: true, noDefaults: undefined };

/**
 * All errors of a schema, including those of single keywords. `status`: whether the version has the status subresource.
 */
export function validateSchema(
  parsed: ParsedSchema,
  path: string,
  status = false,
  demands: SchemaRules = STRICT,
): SchemaResult {
  const { schema, errors } = parsed;
  const unsupported = demands.structural ? parsed.unsupported : undefined;
  const found: FieldError[] = status ? statusSubresourceErrors(schema, path) : [];
  if (schema.nullable) found.push(fieldError.forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  const isChecked = demands.structural && unsupported === undefined;
  const shape = [...errors, ...(isChecked ? structuralErrors(schema, path) : [])];
  if (isChecked && shape.length === 0) shape.push(...defaultErrors(schema, path));
  found.push(...shape, ...keywordErrors(schema, path, demands));
  if (found.length === 0 && unsupported !== undefined)
    found.push(
      fieldError.invalid(path, '', `OpenAPIV3Schema '${unsupported.replace('$schema', 'schema')}' is not supported`),
    );
  return { found, broken: unsupported !== undefined || shape.length > 0 };
}

function statusSubresourceErrors(schema: Schema, path: string): FieldError[] {
  if (schema.typeText !== '' && schema.typeText !== 'object') {
    return [
      fieldError.invalid(
        `${path}.type`,
        schema.typeText,
        'only "object" is allowed as the type at the root of the schema if the status subresource is enabled',
      ),
    ];
  }
  if (!NOT_BESIDE_STATUS.some((name) => isGiven(schema.raw, name))) return [];
  return [
    fieldError.invalid(
      path,
      schema.raw,
      `only [${BESIDE_STATUS}] fields are allowed at the root of the schema if the status subresource is enabled`,
    ),
  ];
}

function isGiven(raw: JsonObject, name: string): boolean {
  const value = fieldOf(raw, name);
  return value !== undefined && value !== null && value !== '' && value !== false;
}
