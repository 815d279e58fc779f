/**
 * Evaluation of one policy for one request. Source:
 * k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go.
 */

import type { Value } from '../../../../api/cel/values.ts';
import { utf8Length } from '../../../../api/meta/validation.ts';
import { messageOf } from '../../../../base/errors.ts';
import { rethrowPending } from '../../authorizer.ts';
import { CostBudget, conditionsHold, MAX_POLICY_COST, OutOfBudget } from '../../expressions.ts';
import { composedVariables, type Expression, evaluateOne } from '../generic/composition.ts';
import type { ValidatingPolicy } from './compile.ts';

const MAX_MESSAGE = 5 * 1024;

export interface Failure {
  readonly message: string;
  /** Reason for the rejection. Undefined if an expression could not be evaluated. */
  readonly reason: string | undefined;
  /** Index of the validation. 0 if the failure does not belong to a validation. */
  readonly index: number;
  readonly seconds: number;
}

interface PolicyResult {
  readonly failures: readonly Failure[];
  /** Failures that the failure policy ignores. */
  readonly ignored: readonly Failure[];
  readonly annotations: readonly (readonly [string, string])[];
  /** Failures of audit annotations. They reject the request whatever the validation actions are. */
  readonly unannotated: readonly Failure[];
}

const NOTHING: PolicyResult = { failures: [], ignored: [], annotations: [], unannotated: [] };

/**
 * Resolvers of variables, without the policy's own `variables`. Match conditions have a resolver of their own, because
 * they have no `namespaceObject`.
 */
export interface Given {
  readonly conditions: (name: string) => Value;
  readonly others: (name: string) => Value;
}

/** Evaluates the policy. Yields at the end of each turn. */
export function* evaluatePolicy(
  policy: ValidatingPolicy,
  given: Given,
  nowMs: () => number,
): Generator<undefined, PolicyResult> {
  const failed = (error: unknown): PolicyResult => {
    rethrowPending(error);
    const failure = { message: messageOf(error), reason: undefined, index: 0, seconds: 0 };
    return policy.ignoresFailure ? { ...NOTHING, ignored: [failure] } : { ...NOTHING, failures: [failure] };
  };
  const own = new CostBudget(MAX_POLICY_COST);
  try {
    const variables = composedVariables(policy, given.conditions, own);
    if (policy.conditions.length > 0 && !(yield* conditionsHold(policy.conditions, variables))) return NOTHING;
  } catch (error) {
    rethrowPending(error);
    // A policy with failurePolicy Ignore does not apply if its conditions cannot be evaluated.
    return policy.ignoresFailure ? NOTHING : failed(error);
  }
  const run = new Run(policy, nowMs);
  try {
    yield* run.validate(given.others);
    yield* run.annotate(given.others);
  } catch (error) {
    // The results of earlier validations are discarded too.
    if (error instanceof OutOfBudget) return failed(error);
    throw error;
  }
  return run;
}

class Run implements PolicyResult {
  readonly failures: Failure[] = [];
  readonly ignored: Failure[] = [];
  readonly annotations: [string, string][] = [];
  readonly unannotated: Failure[] = [];
  readonly #policy: ValidatingPolicy;
  readonly #nowMs: () => number;

  constructor(policy: ValidatingPolicy, nowMs: () => number) {
    this.#policy = policy;
    this.#nowMs = nowMs;
  }

  *validate(given: (name: string) => Value): Generator<undefined, void> {
    const budget = new CostBudget(MAX_POLICY_COST);
    const variables = composedVariables(this.#policy, given, budget);
    for (const [
      index,
      { expression, message, messageExpression, reason = 'Invalid' },
    ] of this.#policy.validations.entries()) {
      const began = this.#nowMs();
      const failed = (what: string, why: string | undefined): Failure => ({
        message: what,
        reason: why,
        index,
        seconds: (this.#nowMs() - began) / 1000,
      });
      const broken = (what: string): void =>
        void (this.#policy.ignoresFailure ? this.ignored : this.failures).push(failed(what, undefined));
      try {
        const holds = evaluateOne(expression, variables, budget) === true;
        if (budget.isTurnOver()) yield;
        if (holds) continue;
      } catch (error) {
        stopped(error);
        broken(messageOf(error));
        continue;
      }
      try {
        const evaluated = messageExpression === undefined ? '' : messageBy(messageExpression, variables, budget);
        const plain = evaluated === '' ? (message ?? '').trim() : evaluated;
        this.failures.push(failed(plain === '' ? `failed expression: ${expression.source.trim()}` : plain, reason));
      } catch (error) {
        rethrowPending(error);
        broken(`failed messageExpression: ${messageOf(error)}`);
      }
      if (budget.isTurnOver()) yield;
    }
  }

  *annotate(given: (name: string) => Value): Generator<undefined, void> {
    const budget = new CostBudget(MAX_POLICY_COST);
    const variables = composedVariables(this.#policy, given, budget);
    for (const { key, expression } of this.#policy.annotations) {
      const began = this.#nowMs();
      try {
        const value = evaluateOne(expression, variables, budget);
        if (typeof value === 'string' && value.trim() !== '') this.annotations.push([key, value.trim()]);
      } catch (error) {
        stopped(error);
        if (this.#policy.ignoresFailure) continue;
        const seconds = (this.#nowMs() - began) / 1000;
        this.unannotated.push({ message: messageOf(error), reason: undefined, index: 0, seconds });
      }
      if (budget.isTurnOver()) yield;
    }
  }
}

/** Rethrows errors that end the whole evaluation, not only one expression. */
function stopped(error: unknown): void {
  rethrowPending(error);
  if (error instanceof OutOfBudget) throw error;
}

/**
 * Evaluates a message expression. Returns '' if the value cannot be used, so that the plain message is used. Throws
 * OutOfBudget.
 */
function messageBy(expression: Expression, variables: (name: string) => Value, budget: CostBudget): string {
  try {
    const value = evaluateOne(expression, variables, budget);
    if (typeof value !== 'string') return '';
    const text = value.trim();
    return text.includes('\n') || utf8Length(text) > MAX_MESSAGE ? '' : text;
  } catch (error) {
    stopped(error);
    return '';
  }
}
