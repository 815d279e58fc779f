/**
 * Schema requirements of a definition. v1beta1 requires less than v1, and an update requires no more than what the
 * stored definition fulfilled. Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation
 * (requireStructuralSchema and related functions).
 */
import type { CustomResourceDefinition } from '../../../generated/apiextensions/v1.ts';
import { isBeta } from '../../../registry/versions.ts';
import { type SchemaRules, STRICT } from '../../../structural/definition-rules.ts';
import { SCHEMA_TYPES, type Schema } from '../../../structural/schema.ts';
import { structuralErrors } from '../../../structural/structural-rules.ts';
import { schemasOf, someSchema } from './rule-places.ts';

type Definition = CustomResourceDefinition;

export interface DefinitionRules extends SchemaRules {
  /** If true, every version needs a schema. If false, only served versions that drop unknown fields need one. */
  readonly schemas: boolean;
}

const NO_DEFAULTS =
  '(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use apiextensions.k8s.io/v1)';

/** Schema requirements of a definition. `old` is the stored definition; undefined for a create. */
export function rulesOfDefinition(definition: Definition, old: Definition | undefined): DefinitionRules {
  const beta = isBeta(definition);
  const schemas = !beta && (old === undefined || (old.spec?.versions ?? []).every(hasSchema));
  const wasOpen = old !== undefined && preservesUnknownFields(old);
  // Shortcut for most definitions: all rules apply, so the schemas need no inspection.
  if (!beta && !wasOpen) return { ...STRICT, schemas };
  const mayDefault = !beta || (wasOpen && someSchema(old, hasDefault));
  return {
    schemas,
    structural:
      !preservesUnknownFields(definition) ||
      (!beta && !(wasOpen && isNonStructural(old))) ||
      (mayDefault && someSchema(definition, hasDefault)) ||
      someSchema(definition, hasExtension),
    types: !beta && !(wasOpen && someSchema(old, hasNoType)),
    noDefaults: mayDefault ? undefined : NO_DEFAULTS,
  };
}

/** Whether unknown fields of the custom resources are kept. */
export const preservesUnknownFields = ({ spec }: Definition): boolean => spec?.preserveUnknownFields === true;

export const hasSchema = (version: Definition['spec']['versions'][number]): boolean =>
  version.schema?.openAPIV3Schema !== undefined;

export const hasDefault = (schema: Schema): boolean => schema.default !== undefined;

const hasNoType = ({ typeText }: Schema): boolean =>
  typeText !== '' && !(SCHEMA_TYPES as readonly string[]).includes(typeText);

/** Whether the schema has a keyword that is valid in structural schemas only. */
const hasExtension = (schema: Schema): boolean =>
  schema.embedded ||
  schema.intOrString ||
  schema.raw['x-kubernetes-preserve-unknown-fields'] !== undefined ||
  schema.listMapKeys.length > 0 ||
  schema.listType !== undefined ||
  schema.rules.length > 0;

const isNonStructural = (definition: Definition): boolean =>
  schemasOf(definition).some(
    ({ parsed, path }) => parsed.unsupported !== undefined || structuralErrors(parsed.schema, path).length > 0,
  );
