/** The kinds that hold expressions about requests, completed by what only this server can check: that they can be compiled. */
import type { MatchCondition, ValidatingAdmissionPolicy } from 'kubernetes-types/admissionregistration/v1';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { compileExpression, explainProblem } from './expressions.ts';
import type { Expression } from './policies/generic/composition.ts';
import { compileMutating, mutatingExpressions } from './policies/mutating/compile.ts';
import { compileValidating, validatingExpressions } from './policies/validating/compile.ts';

interface Written {
  readonly at: string;
  readonly source: string;
  /** What is wrong with it; undefined: nothing. */
  problem(): string | undefined;
}

const conditionsAt = (conditions: readonly MatchCondition[] | undefined, path: string): Written[] =>
  (conditions ?? []).map(({ expression }, index) => ({
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

/** What was accepted once is not held against an update that leaves it as it is. */
function expressionErrors(read: (object: KubeObject) => Written[], object: KubeObject, old?: KubeObject): FieldError[] {
  const before = new Set(old === undefined ? [] : read(old).map(({ source }) => source));
  return read(object).flatMap(({ at, source, problem }) => {
    if (source.trim() === '' || before.has(source)) return [];
    const wrong = problem();
    return wrong === undefined ? [] : [fieldError.invalid(at, source, wrong)];
  });
}

export function refineAdmissionKind(definition: KindDefinition): KindDefinition {
  const read = definition.group === 'admissionregistration.k8s.io' ? READERS[definition.kind] : undefined;
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
