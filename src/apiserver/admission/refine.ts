/** Adds the compilation of CEL expressions to the validation of kinds that contain expressions. */

import { claimSelectors } from '../../api/devices/claims.ts';
import { MAX_EXPRESSION } from '../../api/devices/shared-rules.ts';
import type { ResourceClaim, ResourceClaimTemplate } from '../../api/devices/types.ts';
import type { MatchCondition, ValidatingAdmissionPolicy } from '../../api/generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../../api/meta/field-error.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { utf8Length } from '../../api/meta/validation.ts';
import type { KindDefinition } from '../../api/registry/definition.ts';
import { classSelectors, compileSelector, type SelectorReader } from './claims/device-selectors.ts';
import { compileExpression, explainProblem } from './expressions.ts';
import type { Expression } from './policies/generic/composition.ts';
import { compileMutating, mutatingExpressions } from './policies/mutating/compile.ts';
import { compileValidating, validatingExpressions } from './policies/validating/compile.ts';

/** Problem of an expression that compiles but is not allowed. */
interface Forbidden {
  readonly why: string;
}

interface Written {
  readonly at: string;
  readonly source: string;
  /** Returns the problem of the expression. Undefined if the expression is valid. */
  problem(): string | Forbidden | undefined;
}

const conditionsAt = (conditions: readonly Partial<MatchCondition>[] | undefined, path: string): Written[] =>
  (conditions ?? []).map(({ expression = '' }, index) => ({
    at: `${path}[${index}].expression`,
    source: expression,
    problem() {
      try {
        compileExpression(expression, 'bool');
        return undefined;
      } catch (error) {
        return explainProblem(error);
      }
    },
  }));

function webhookExpressions(object: KubeObject): Written[] {
  const { webhooks } = object as { webhooks?: { matchConditions?: MatchCondition[] }[] };
  return (webhooks ?? []).flatMap(({ matchConditions }, index) =>
    conditionsAt(matchConditions, `webhooks[${index}].matchConditions`),
  );
}

const policyExpressions = (expressions: readonly Expression[]): Written[] =>
  expressions.map(({ at, source, program, problem }) => ({
    at,
    source,
    problem: () => (program === undefined ? problem : undefined),
  }));

const READERS: Readonly<Record<string, (object: KubeObject) => Written[]>> = {
  MutatingWebhookConfiguration: webhookExpressions,
  ValidatingWebhookConfiguration: webhookExpressions,
  ValidatingAdmissionPolicy: (object) =>
    policyExpressions(validatingExpressions(compileValidating(object as ValidatingAdmissionPolicy))),
  MutatingAdmissionPolicy: (object) => policyExpressions(mutatingExpressions(compileMutating(object))),
};

/** Selectors of devices with CEL. `problem` skips expressions that are too long, because validation rejects them. */
const selectorExpressions =
  (read: SelectorReader) =>
  (object: KubeObject): Written[] =>
    read(object).map(([{ cel }, at]) => {
      const source = cel?.expression ?? '';
      return { at: `${at}.cel.expression`, source, problem: () => selectorProblem(source) };
    });

function selectorProblem(source: string): string | Forbidden | undefined {
  if (utf8Length(source) > MAX_EXPRESSION) return undefined;
  try {
    return compileSelector(source) ? undefined : { why: 'too complex, exceeds cost limit' };
  } catch (error) {
    return explainProblem(error);
  }
}

/** Errors of expressions that are new or changed. An unchanged expression is not checked again on update. */
function expressionErrors(read: (object: KubeObject) => Written[], object: KubeObject, old?: KubeObject): FieldError[] {
  const before = new Set(old === undefined ? [] : read(old).map(({ source }) => source));
  return read(object).flatMap(({ at, source, problem }) => {
    if (source.trim() === '' || before.has(source)) return [];
    const wrong = problem();
    if (wrong === undefined) return [];
    return [typeof wrong === 'string' ? fieldError.invalid(at, source, wrong) : fieldError.forbidden(at, wrong.why)];
  });
}

const EXPRESSIONS: Readonly<Record<string, typeof READERS>> = {
  'admissionregistration.k8s.io': READERS,
  'resource.k8s.io': {
    DeviceClass: selectorExpressions(classSelectors),
    ResourceClaim: selectorExpressions((object) => claimSelectors((object as ResourceClaim).spec, 'spec')),
    ResourceClaimTemplate: selectorExpressions((object) =>
      claimSelectors((object as ResourceClaimTemplate).spec?.spec, 'spec.spec'),
    ),
  },
};

export function refineAdmissionKind(definition: KindDefinition): KindDefinition {
  const read = EXPRESSIONS[definition.group]?.[definition.kind];
  if (read === undefined) return definition;
  const { strategy } = definition;
  return {
    ...definition,
    strategy: {
      ...strategy,
      validateCreate: (object) => [...(strategy.validateCreate?.(object) ?? []), ...expressionErrors(read, object)],
      validateUpdate: (object, old) => [
        ...(strategy.validateUpdate?.(object, old) ?? []),
        ...expressionErrors(read, object, old),
      ],
    },
  };
}
