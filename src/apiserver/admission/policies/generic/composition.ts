/** Shared parts of admission policies: expressions, match conditions and variables. */

import type { Program } from '../../../../api/cel/compiled-expression.ts';
import { DYN, listOf, mapOf, type Type } from '../../../../api/cel/types.ts';
import { CelMap, EvaluationError, type MapKey, type Value } from '../../../../api/cel/values.ts';
import type { MatchCondition, MatchResources, Variable } from '../../../../api/generated/admissionregistration/v1.ts';
import { messageOf } from '../../../../base/errors.ts';
import { rethrowPending } from '../../authorizer.ts';
import {
  type CostBudget,
  compileExpression,
  type Expected,
  evaluate,
  explainProblem,
  FailedExpression,
  OutOfBudget,
} from '../../expressions.ts';
import { compileMatch, type MatchSpec } from '../../matching.ts';

/** A compiled expression, or the problem that prevented its compilation. */
export interface Expression {
  /** Field path in the policy. */
  readonly at: string;
  readonly source: string;
  readonly program: Program | undefined;
  readonly problem: string;
}

export interface Policy {
  readonly name: string;
  readonly match: MatchSpec;
  readonly ignoresFailure: boolean;
  readonly paramKind: ParamKind | undefined;
  readonly conditions: readonly (Expression & { readonly name: string })[];
  readonly variables: ReadonlyMap<string, Expression>;
}

interface WrittenPolicy {
  readonly metadata?: { readonly name?: string };
  readonly spec?: PolicySpec & {
    readonly failurePolicy?: string;
    readonly matchConstraints?: MatchResources;
  };
}

export interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Text of a kind in upstream's form, where the empty core group leaves a leading slash. */
export const gvkText = ({ apiVersion, kind }: ParamKind): string =>
  `${apiVersion.includes('/') ? '' : '/'}${apiVersion}, Kind=${kind}`;

/** Adds fields that the type declarations lack. */
interface PolicySpec {
  readonly paramKind?: { readonly apiVersion?: string; readonly kind?: string };
  readonly matchConditions?: readonly MatchCondition[];
  readonly variables?: readonly Variable[];
}

/**
 * Compiles the expressions of one policy. Variables are compiled in order, because they may refer to earlier variables.
 */
export class PolicyCompiler {
  readonly paramKind: ParamKind | undefined;
  readonly conditions: Policy['conditions'];
  readonly variables: Policy['variables'];
  readonly #always: readonly [string, Type][];
  readonly #fields = new Map<string, Type>();

  constructor(spec: PolicySpec) {
    const { paramKind } = spec;
    this.paramKind =
      paramKind === undefined ? undefined : { apiVersion: paramKind.apiVersion ?? '', kind: paramKind.kind ?? '' };
    this.#always = paramKind === undefined ? [] : [['params', DYN]];
    // Match conditions are compiled first, because they cannot use variables.
    this.conditions = (spec.matchConditions ?? []).map(({ name, expression }, index) => ({
      name,
      ...this.#compiled(`spec.matchConditions[${index}].expression`, expression, 'bool', this.#always),
    }));
    const variables = new Map<string, Expression>();
    // A variable may refer to earlier variables.
    for (const [index, { name, expression }] of (spec.variables ?? []).entries()) {
      const compiled = this.expression(`spec.variables[${index}].expression`, expression, 'any');
      variables.set(name, compiled);
      this.#fields.set(name, typeOfVariable(compiled.program?.type));
    }
    this.variables = variables;
  }

  expression(at: string, source: string | undefined, expected: Expected): Expression {
    return this.#compiled(at, source, expected, [
      ...this.#always,
      ['variables', { kind: 'object', name: 'kubernetes.variables', fields: new Map(this.#fields) }],
    ]);
  }

  #compiled(
    at: string,
    source: string | undefined,
    expected: Expected,
    variables: readonly (readonly [string, Type])[],
  ): Expression {
    try {
      return { at, source: source ?? '', program: compileExpression(source ?? '', expected, variables), problem: '' };
    } catch (error) {
      return { at, source: source ?? '', program: undefined, problem: explainProblem(error) };
    }
  }
}

/** Type that a variable has in other expressions. Structures, and types that exist only in CEL, become dynamic. */
export function typeOfVariable(type: Type = DYN): Type {
  switch (type.kind) {
    case 'list':
      return listOf(typeOfVariable(type.of));
    case 'map':
      return mapOf(typeOfVariable(type.key), typeOfVariable(type.value));
    case 'object':
    case 'opaque':
    case 'optional':
    case 'param':
    case 'type':
      return DYN;
    default:
      return { kind: type.kind };
  }
}

/** Parts that all kinds of policies share. `compiler` has compiled the spec of this policy. */
export function compileShared({ metadata, spec = {} }: WrittenPolicy, compiler: PolicyCompiler): Policy {
  const { conditions, paramKind, variables } = compiler;
  return {
    name: metadata?.name ?? '',
    match: compileMatch({ ...spec.matchConstraints, rules: spec.matchConstraints?.resourceRules }),
    ignoresFailure: spec.failurePolicy === 'Ignore',
    paramKind,
    conditions,
    variables,
  };
}

export function sharedExpressions(policy: Policy): Expression[] {
  return [...policy.conditions, ...policy.variables.values()];
}

/** Evaluates one expression. Throws an Error with the expression and the reason. */
export function evaluateOne(expression: Expression, variables: (name: string) => Value, budget: CostBudget): Value {
  if (expression.program === undefined) throw new Error(`compilation error: ${expression.problem}`);
  return evaluate(expression.program, expression.source, variables, budget);
}

/** Resolves the variables of `given` plus `variables` for the expressions of `policy`. */
export function composedVariables(
  policy: Policy,
  given: (name: string) => Value,
  budget: CostBudget,
): (name: string) => Value {
  const composed = new Composed(policy, (each) => evaluateOne(each, variables, budget));
  const variables = (name: string): Value => (name === 'variables' ? composed : given(name));
  return variables;
}

/** The map `variables`. Each variable is evaluated on first use, and only once. */
class Composed extends CelMap {
  readonly #policy: Policy;
  readonly #evaluate: (expression: Expression) => Value;
  readonly #known = new Map<string, { readonly value: Value } | { readonly error: unknown }>();

  constructor(policy: Policy, evaluateVariable: (expression: Expression) => Value) {
    super();
    this.#policy = policy;
    this.#evaluate = evaluateVariable;
  }

  get size(): number {
    return this.#policy.variables.size;
  }

  get(key: MapKey): Value | undefined {
    const expression = typeof key === 'string' ? this.#policy.variables.get(key) : undefined;
    if (expression === undefined || typeof key !== 'string') return undefined;
    let known = this.#known.get(key);
    if (known === undefined) {
      try {
        known = { value: this.#evaluate(expression) };
      } catch (error) {
        rethrowPending(error);
        if (error instanceof OutOfBudget) throw error;
        const why = error instanceof FailedExpression ? error.why : messageOf(error);
        known = {
          error: new EvaluationError(`composited variable ${JSON.stringify(key)} fails to evaluate: ${why}`),
        };
      }
      this.#known.set(key, known);
    }
    if ('error' in known) throw known.error;
    return known.value;
  }

  keys(): Iterable<MapKey> {
    return this.#policy.variables.keys();
  }
}
