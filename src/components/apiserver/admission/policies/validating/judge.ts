/** One policy's judgement of one request. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go. */
import { messageOf } from '../../../../../base/errors.ts';
import type { Value } from '../../../../../core/cel/values.ts';
import { rethrowPending } from '../../authorizer.ts';
import { CostBudget, conditionsHold, MAX_POLICY_COST } from '../../expressions.ts';
import { composedVariables, type Expression, evaluateOne } from '../generic/composition.ts';
import type { ValidatingPolicy } from './compile.ts';

const MAX_MESSAGE = 5 * 1024;
const MAX_ANNOTATION = 10 * 1024;

export interface Failure {
  readonly message: string;
  readonly reason: string | undefined;
  /** Which of the validations; undefined where it was none of them. */
  readonly index: number | undefined;
}

interface Judgement {
  readonly failures: readonly Failure[];
  readonly annotations: readonly (readonly [string, string])[];
}

const NOTHING: Judgement = { failures: [], annotations: [] };

/**
 * `given`: the variables of expressions, but for those that the policy itself defines. Stops where others should have their turn.
 */
export function* judge(policy: ValidatingPolicy, given: (name: string) => Value): Generator<undefined, Judgement> {
  const budget = new CostBudget(MAX_POLICY_COST);
  const variables = composedVariables(policy, given, budget);
  try {
    if (policy.conditions.length > 0 && !(yield* conditionsHold(policy.conditions, variables))) return NOTHING;
  } catch (error) {
    rethrowPending(error);
    // A policy whose failures are ignored and that cannot tell whether it is meant, is not.
    if (policy.ignoresFailure) return NOTHING;
    return { failures: [{ message: messageOf(error), reason: undefined, index: undefined }], annotations: [] };
  }
  const failures: Failure[] = [];
  const annotations: [string, string][] = [];
  const broken = (error: unknown, index: number | undefined): void => {
    rethrowPending(error);
    if (!policy.ignoresFailure) failures.push({ message: messageOf(error), reason: undefined, index });
  };
  for (const [index, { expression, message, messageExpression, reason }] of policy.validations.entries()) {
    try {
      const holds = evaluateOne(expression, variables, budget) === true;
      if (budget.isTurnOver()) yield;
      if (holds) continue;
      const said = messageExpression === undefined ? undefined : messageBy(messageExpression, variables, budget);
      failures.push({ message: said ?? message ?? `failed expression: ${expression.source.trim()}`, reason, index });
    } catch (error) {
      broken(error, index);
    }
    if (budget.isTurnOver()) yield;
  }
  for (const { key, expression } of policy.annotations) {
    try {
      const value = evaluateOne(expression, variables, budget);
      if (typeof value === 'string' && value.trim() !== '') {
        annotations.push([`${policy.name}/${key}`, value.trim().slice(0, MAX_ANNOTATION)]);
      }
    } catch (error) {
      broken(error, undefined);
    }
    if (budget.isTurnOver()) yield;
  }
  return { failures, annotations };
}

/** Undefined where it yields nothing that can stand in a message: then the plain message does. */
function messageBy(expression: Expression, variables: (name: string) => Value, budget: CostBudget): string | undefined {
  try {
    const value = evaluateOne(expression, variables, budget);
    if (typeof value !== 'string') return undefined;
    const text = value.trim();
    return text === '' || text.includes('\n') || text.length > MAX_MESSAGE ? undefined : text;
  } catch (error) {
    rethrowPending(error);
    return undefined;
  }
}
