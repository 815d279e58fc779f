/**
 * What is asked of a definition: less in v1beta1 than in v1, and no more than when it was taken. Source:
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation (requireStructuralSchema and its like).
 */
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1';
import { isBeta } from '../../registry/versions.ts';
import { type SchemaDemands, STRICT } from '../../structural/rules.ts';
import { SCHEMA_TYPES, type Schema } from '../../structural/schema.ts';
import { structuralErrors } from '../../structural/structural-rules.ts';
import { schemasOf, someSchema } from './places.ts';

type Definition = CustomResourceDefinition;

export interface Demands extends SchemaDemands {
  /** Every version has a schema; else those that are served have one where unknown fields are dropped. */
  readonly schemas: boolean;
}

const NO_DEFAULTS =
  '(cannot set default values in apiextensions.k8s.io/v1beta1 CRDs, must use apiextensions.k8s.io/v1)';

/** `old`: what is there already, undefined for a new one. */
export function demandsOf(definition: Definition, old: Definition | undefined): Demands {
  const beta = isBeta(definition);
  const schemas = !beta && (old === undefined || (old.spec?.versions ?? []).every(hasSchema));
  const wasOpen = old !== undefined && preserves(old);
  // Most by far: nothing needs to be looked through.
  if (!beta && !wasOpen) return { ...STRICT, schemas };
  const mayDefault = !beta || (wasOpen && someSchema(old, hasDefault));
  return {
    schemas,
    structural:
      !preserves(definition) ||
      (!beta && !(wasOpen && isNonStructural(old))) ||
      (mayDefault && someSchema(definition, hasDefault)) ||
      someSchema(definition, hasExtension),
    types: !beta && !(wasOpen && someSchema(old, hasNoType)),
    noDefaults: mayDefault ? undefined : NO_DEFAULTS,
  };
}

/** Whether unknown fields of its resources are kept. */
export const preserves = ({ spec }: Definition): boolean => spec?.preserveUnknownFields === true;

export const hasSchema = (version: Definition['spec']['versions'][number]): boolean =>
  version.schema?.openAPIV3Schema !== undefined;

export const hasDefault = (schema: Schema): boolean => schema.default !== undefined;

const hasNoType = ({ typeText }: Schema): boolean =>
  typeText !== '' && !(SCHEMA_TYPES as readonly string[]).includes(typeText);

/** Keywords that mean something only where every value has one known type. */
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
