/**
 * Compiles the CEL validation rules in the schemas of definitions. The declaration of the kind cannot do this, because
 * it must not depend on CEL.
 */

import { evaluateDefaults, rulesOf } from '../../api/cel/rule-run.ts';
import { validateRules } from '../../api/cel/validation-rules.ts';
import type { CustomResourceDefinition } from '../../api/generated/apiextensions/v1.ts';
import { customResourceDefinitions } from '../../api/kinds/cluster/customresourcedefinitions/index.ts';
import { schemasOf } from '../../api/kinds/cluster/customresourcedefinitions/rule-places.ts';
import type { CustomKindOptions } from '../../api/kinds/cluster/customresources/index.ts';
import { semanticEqual } from '../../api/meta/equality.ts';
import type { FieldError } from '../../api/meta/field-error.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { validateSchema } from '../../api/structural/definition-rules.ts';

export const customKindOptions: Pick<CustomKindOptions, 'compileRules'> = { compileRules: rulesOf };

/** Errors of CEL rules. Unchanged rules are not compiled again, because this takes long for large definitions. */
function ruleErrors(definition: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  return schemasOf(definition).flatMap(({ path, versions, parsed, status }) => {
    const unchanged = versions.every((version) => {
      const before = old?.spec?.versions?.find((each) => each.name === version.name);
      return before !== undefined && semanticEqual(before.schema, version.schema);
    });
    if (unchanged) return [];
    const result = validateSchema(parsed, path, status);
    // Rules of an invalid schema are skipped, because their errors would only repeat the errors of the schema.
    if (result.broken) return [];
    const sound = (place: string): boolean => !result.found.some(({ field }) => field.startsWith(place));
    const found = validateRules(parsed.schema, path, sound);
    return found.length > 0 ? found : evaluateDefaults(parsed.schema, path);
  });
}

const { strategy } = customResourceDefinitions;

const withRules: KindDefinition<CustomResourceDefinition> = {
  ...customResourceDefinitions,
  strategy: {
    ...strategy,
    validateCreate: (definition) => [
      ...(strategy.validateCreate?.(definition) ?? []),
      ...ruleErrors(definition, undefined),
    ],
    validateUpdate: (definition, old) => [
      ...(strategy.validateUpdate?.(definition, old) ?? []),
      ...ruleErrors(definition, old),
    ],
  },
};

/** Completes the declaration of a built-in kind by checks that need this server's components. */
export function refineKind(definition: KindDefinition): KindDefinition {
  return definition.kind === withRules.kind && definition.group === withRules.group ? withRules : definition;
}
