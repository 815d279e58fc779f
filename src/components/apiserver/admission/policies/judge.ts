/** One policy's judgement of one request. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go. */
import type { JsonValue } from '../../../../api/meta/object.ts';
import { messageOf } from '../../../../base/errors.ts';
import { CelMap, EvaluationError, type MapKey, type Value } from '../../../../core/cel/values.ts';
import { conditionsHold, type Documents, evaluate, variablesOf } from '../expressions.ts';
import type { Expression, Policy } from './compile.ts';

/** What all expressions of a policy together may cost for one request, and its conditions. */
const MAX_POLICY_COST = 10_000_000;
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

export function judge(
  policy: Policy,
  documents: Documents & { readonly params?: JsonValue | undefined; readonly namespaceObject?: JsonValue | undefined },
): Judgement {
  const left = { cost: MAX_POLICY_COST };
  const given = variablesOf(documents);
  const composed = new Composed(policy, (each) => evaluated(each, variables, left));
  const variables = (name: string): Value => (name === 'variables' ? composed : given(name));
  try {
    if (policy.conditions.length > 0 && !conditionsHold(policy.conditions, variables)) return NOTHING;
  } catch (error) {
    // A policy whose failures are ignored and that cannot tell whether it is meant, is not.
    if (policy.ignoresFailure) return NOTHING;
    return { failures: [{ message: messageOf(error), reason: undefined, index: undefined }], annotations: [] };
  }
  const failures: Failure[] = [];
  const annotations: [string, string][] = [];
  const broken = (error: unknown, index: number | undefined): void => {
    if (!policy.ignoresFailure) failures.push({ message: messageOf(error), reason: undefined, index });
  };
  for (const [index, { expression, message, messageExpression, reason }] of policy.validations.entries()) {
    try {
      if (evaluated(expression, variables, left) === true) continue;
      const said = messageExpression === undefined ? undefined : messageBy(messageExpression, variables, left);
      failures.push({ message: said ?? message ?? `failed expression: ${expression.source.trim()}`, reason, index });
    } catch (error) {
      broken(error, index);
    }
  }
  for (const { key, expression } of policy.annotations) {
    try {
      const value = evaluated(expression, variables, left);
      if (typeof value === 'string' && value.trim() !== '') {
        annotations.push([`${policy.name}/${key}`, value.trim().slice(0, MAX_ANNOTATION)]);
      }
    } catch (error) {
      broken(error, undefined);
    }
  }
  return { failures, annotations };
}

function evaluated(expression: Expression, variables: (name: string) => Value, left: { cost: number }): Value {
  if (expression.program === undefined) throw new Error(`compilation error: ${expression.problem}`);
  return evaluate(expression.program, expression.source, variables, left);
}

/** Undefined where it yields nothing that can stand in a message: then the plain message does. */
function messageBy(
  expression: Expression,
  variables: (name: string) => Value,
  left: { cost: number },
): string | undefined {
  try {
    const value = evaluated(expression, variables, left);
    if (typeof value !== 'string') return undefined;
    const text = value.trim();
    return text === '' || text.includes('\n') || text.length > MAX_MESSAGE ? undefined : text;
  } catch {
    return undefined;
  }
}

/** `variables`: each worked out when it is first asked for, and once. */
class Composed extends CelMap {
  readonly #policy: Policy;
  readonly #evaluate: (expression: Expression) => Value;
  readonly #known = new Map<string, { readonly value: Value } | { readonly error: unknown }>();

  constructor(policy: Policy, evaluateOne: (expression: Expression) => Value) {
    super();
    this.#policy = policy;
    this.#evaluate = evaluateOne;
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
        known = {
          error: new EvaluationError(
            `composited variable ${JSON.stringify(key)} fails to evaluate: ${messageOf(error)}`,
          ),
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
