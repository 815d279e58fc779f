/**
 * The rules of schemas, compiled; what the declaration of definitions itself cannot do, because it knows no
 * expressions.
 */
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1';
import { customResourceDefinitions } from '../../../api/kinds/customresourcedefinitions/index.ts';
import { schemasOf } from '../../../api/kinds/customresourcedefinitions/places.ts';
import type { CustomKindOptions } from '../../../api/kinds/customresources/index.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { FieldError } from '../../../api/meta/field-error.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { validateSchema } from '../../../api/structural/rules.ts';
import { judgeDefaults, rulesOf } from '../../../core/cel/rule-run.ts';
import { validateRules } from '../../../core/cel/rules.ts';

export const customKindOptions: Pick<CustomKindOptions, 'compileRules'> = { compileRules: rulesOf };

/** Rules that were there before are not compiled again: those of a large definition take their time. */
function ruleErrors(definition: CustomResourceDefinition, old: CustomResourceDefinition | undefined): FieldError[] {
  return schemasOf(definition).flatMap(({ path, versions, parsed, status }) => {
    const unchanged = versions.every((version) => {
      const before = old?.spec?.versions?.find((each) => each.name === version.name);
      return before !== undefined && semanticEqual(before.schema, version.schema);
    });
    if (unchanged) return [];
    const verdict = validateSchema(parsed, path, status);
    // Rules over a schema that is wrong itself would only repeat that.
    if (verdict.broken) return [];
    const sound = (place: string): boolean => !verdict.found.some(({ field }) => field.startsWith(place));
    const found = validateRules(parsed.schema, path, sound);
    return found.length > 0 ? found : judgeDefaults(parsed.schema, path);
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

/** The declarations of built-in kinds, completed by what only this server can check. */
export function refineKind(definition: KindDefinition): KindDefinition {
  return definition.kind === withRules.kind && definition.group === withRules.group ? withRules : definition;
}
