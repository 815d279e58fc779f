/**
 * CEL expressions on requests: match conditions of webhooks, and policies. Source:
 * k8s.io/apiserver/pkg/admission/plugin/cel, pkg/admission/plugin/webhook/matchconditions.
 */

import { Budget, type Program, TURN_COST } from '../../api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../api/cel/documents.ts';
import { CompileError } from '../../api/cel/language/ast.ts';
import { compile } from '../../api/cel/language/compile.ts';
import { AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE } from '../../api/cel/library/authorizer.ts';
import { standardFunctions } from '../../api/cel/library/index.ts';
import { APPLY_TYPE, mutationStructure, PATCH_TYPE } from '../../api/cel/mutation.ts';
import {
  BOOL,
  DYN,
  declaredName,
  INT,
  listOf,
  mapOf,
  parseType,
  STRING,
  structureOf,
  type Type,
} from '../../api/cel/types.ts';
import { BudgetError, type Value } from '../../api/cel/values.ts';
import type { MatchCondition } from '../../api/generated/admissionregistration/v1.ts';
import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { messageOf } from '../../base/errors.ts';
import { rethrowPending } from './authorizer.ts';

/** Upstream's cost limit of one expression. MAX_CONDITIONS_COST limits all match conditions of a webhook together. */
const MAX_CALL_COST = 1_000_000;
/**
 * Cost limit of an expression including the variables that it evaluates first. The event loop does not run in between.
 */
const MAX_TURN_COST = MAX_CALL_COST + TURN_COST;
export const MAX_CONDITIONS_COST = 2_500_000;
/** Cost limit of all expressions of a validating policy, or of one mutation, per request. */
export const MAX_POLICY_COST = 10_000_000;

const TIMESTAMP = parseType('timestamp');
const KIND = structureOf('kubernetes.GroupVersionKind', { group: STRING, version: STRING, kind: STRING });
const RESOURCE = structureOf('kubernetes.GroupVersionResource', { group: STRING, version: STRING, resource: STRING });
const USER = structureOf('kubernetes.UserInfo', {
  username: STRING,
  uid: STRING,
  groups: listOf(STRING),
  extra: mapOf(STRING, listOf(STRING)),
});
const REQUEST = structureOf('kubernetes.AdmissionRequest', {
  kind: KIND,
  resource: RESOURCE,
  subResource: STRING,
  requestKind: KIND,
  requestResource: RESOURCE,
  requestSubResource: STRING,
  name: STRING,
  namespace: STRING,
  operation: STRING,
  userInfo: USER,
  dryRun: BOOL,
  options: DYN,
});

/** Fields of a namespace that are visible to expressions. */
const NAMESPACE = structureOf('kubernetes.Namespace', {
  metadata: structureOf('kubernetes.NamespaceMetadata', {
    name: STRING,
    generateName: STRING,
    namespace: STRING,
    labels: mapOf(STRING, STRING),
    annotations: mapOf(STRING, STRING),
    UID: STRING,
    creationTimestamp: TIMESTAMP,
    deletionGracePeriodSeconds: INT,
    deletionTimestamp: TIMESTAMP,
    generation: INT,
    resourceVersion: STRING,
    finalizers: listOf(STRING),
  }),
  spec: structureOf('kubernetes.NamespaceSpec', { finalizers: listOf(STRING) }),
  status: structureOf('kubernetes.NamespaceStatus', {
    conditions: listOf(
      structureOf('kubernetes.NamespaceCondition', {
        status: STRING,
        type: STRING,
        lastTransitionTime: TIMESTAMP,
        message: STRING,
        reason: STRING,
      }),
    ),
    phase: STRING,
  }),
});

/**
 * Variables of every expression. All expressions except messages also have the authorizers below. Match conditions of
 * webhooks have no `namespaceObject`.
 */
const VARIABLES: ReadonlyMap<string, Type> = new Map<string, Type>([
  ['object', DYN],
  ['oldObject', DYN],
  ['namespaceObject', NAMESPACE],
  ['request', REQUEST],
]);
const AUTHORIZERS: readonly (readonly [string, Type])[] = [
  ['authorizer', AUTHORIZER_TYPE],
  ['authorizer.requestResource', RESOURCE_CHECK_TYPE],
];

/**
 * Result type that an expression must have. It is checked at compile time. `message`: a string; `annotation`: a string
 * or null; `configuration`: `Object{…}`; `patch`: a list of `JSONPatch{…}`. A `checked` expression is only type
 * checked, never evaluated; as in upstream, it has no `authorizer.requestResource`.
 */
export type Expected = 'checked' | 'bool' | 'message' | 'annotation' | 'any' | 'configuration' | 'patch';

const PATCHES = listOf(PATCH_TYPE);

/**
 * Compiles an expression. `more` declares variables in addition to the common ones. Throws an Error with the
 * compilation problem.
 */
export function compileExpression(
  source: string,
  expected: Expected,
  more: readonly (readonly [string, Type])[] = [],
): Program {
  const asking = expected === 'message' ? 0 : expected === 'checked' ? 1 : AUTHORIZERS.length;
  const mutates = expected === 'configuration' || expected === 'patch';
  const program = compile(source, {
    functions: standardFunctions(),
    variables: new Map([...VARIABLES, ...AUTHORIZERS.slice(0, asking), ...more]),
    ...(mutates ? { structure: mutationStructure } : {}),
  });
  const wanted = problemOfResult(program.type, expected);
  if (wanted !== undefined) throw new Error(`must evaluate to ${wanted} but got ${declaredName(program.type)}`);
  return program;
}

/** Describes the expected type when `type` does not match it. A dynamic type does not match. */
function problemOfResult(type: Type, expected: Expected): string | undefined {
  switch (expected) {
    case 'bool':
      return type.kind === 'bool' ? undefined : 'bool';
    case 'message':
      return type.kind === 'string' ? undefined : 'string';
    case 'annotation':
      return type.kind === 'string' || type.kind === 'null' ? undefined : 'one of [string null_type]';
    case 'configuration':
      return type.kind === 'object' && type.name === APPLY_TYPE.name ? undefined : APPLY_TYPE.name;
    case 'patch':
      return type.kind === 'list' && type.of.kind === 'object' && type.of.name === PATCH_TYPE.name
        ? undefined
        : declaredName(PATCHES);
    default:
      return undefined;
  }
}

/** Text of a compilation problem, in upstream's wording. */
export function explainProblem(error: unknown): string {
  return error instanceof CompileError ? `compilation failed: ${error.message}` : messageOf(error);
}

/**
 * Resolves the variables of expressions. A document is converted only when an expression uses it. `others` resolves
 * variables that are not documents.
 */
export function variablesOf(
  documents: Readonly<Record<string, JsonValue | undefined>>,
  others: (name: string) => Value | undefined,
): (name: string) => Value {
  const known = new Map<string, Value>();
  return (name) => {
    let value = known.get(name);
    if (value === undefined) {
      const document = Object.hasOwn(documents, name) ? documents[name] : undefined;
      value = (document === undefined ? others(name) : fromJson(document, ANY_READER)) ?? null;
      known.set(name, value);
    }
    return value;
  };
}

/** Remaining cost budget of the expressions of one request. */
export class CostBudget {
  left: number;
  /**
   * Budget that was left at the start of the current turn. Between two turns the event loop runs; the cost of one turn
   * is limited.
   */
  #turn: number;
  constructor(limit: number) {
    this.left = limit;
    this.#turn = limit;
  }

  /** Reports whether the evaluation should yield to the event loop now. If so, a new turn starts. */
  isTurnOver(): boolean {
    if (this.#turn - this.left < TURN_COST) return false;
    this.#turn = this.left;
    return true;
  }

  /** Cost limit of the next evaluation, within the limits of one expression, the budget and the turn. */
  get call(): number {
    return Math.min(MAX_CALL_COST, this.left, MAX_TURN_COST - (this.#turn - this.left));
  }
}

export const OUT_OF_BUDGET =
  'validation failed due to running out of cost budget, no further validation rules will be run';

/** Thrown when the expressions together exceed the cost budget. */
export class OutOfBudget extends Error {
  constructor() {
    super(OUT_OF_BUDGET);
  }
}

/**
 * Evaluates a program and subtracts its cost from `budget`. Throws a FailedExpression with upstream's wording, or
 * OutOfBudget when no further expression may run.
 */
export function evaluate(
  program: Program,
  source: string,
  variables: (name: string) => Value,
  budget: CostBudget,
): Value {
  if (budget.left <= 0) throw new OutOfBudget();
  const isLast = budget.left <= MAX_CALL_COST;
  const own = new Budget(Math.max(budget.call, 0));
  const started = own.left;
  try {
    return program.evaluate(variables, own);
  } catch (error) {
    rethrowPending(error);
    const isTooMuch = error instanceof BudgetError;
    if (error instanceof OutOfBudget || (isTooMuch && isLast)) throw new OutOfBudget();
    const why = isTooMuch ? 'operation cancelled: actual cost limit exceeded' : messageOf(error);
    throw new FailedExpression(source, why, error);
  } finally {
    // Variables that were evaluated for this expression have already subtracted their own cost.
    budget.left -= started - Math.max(own.left, 0);
  }
}

/** Error of one expression. `why` is the reason without the expression's text. */
export class FailedExpression extends Error {
  readonly why: string;

  constructor(source: string, why: string, cause: unknown) {
    super(`expression '${source}' resulted in error: ${why}`, { cause });
    this.why = why;
  }
}

export interface Condition {
  readonly name: string;
  readonly source: string;
  /** Compiled expression. Undefined if it does not compile here although another API server accepted it. */
  readonly program: Program | undefined;
}

export function compileConditions(
  conditions: readonly MatchCondition[] | undefined,
  more: readonly (readonly [string, Type])[] = [],
): Condition[] {
  return (conditions ?? []).map(({ name, expression }) => {
    try {
      return { name, source: expression, program: compileExpression(expression, 'bool', more) };
    } catch {
      return { name, source: expression, program: undefined };
    }
  });
}

/**
 * Reports whether all conditions are true. A false condition takes precedence over errors of other conditions. Throws
 * the errors if no condition is false. Yields at the end of each turn.
 */
export function* conditionsHold(
  conditions: readonly Condition[],
  variables: (name: string) => Value,
  budget = new CostBudget(MAX_CONDITIONS_COST),
): Generator<undefined, boolean> {
  const failures: string[] = [];
  for (const { source, program } of conditions) {
    try {
      if (program === undefined) throw new Error(`expression '${source}' cannot be compiled`);
      if (evaluate(program, source, variables, budget) !== true) return false;
    } catch (error) {
      rethrowPending(error);
      if (error instanceof OutOfBudget) throw error;
      failures.push(messageOf(error));
    }
    if (budget.isTurnOver()) yield;
  }
  if (failures.length > 0) throw new Error(failures.length === 1 ? failures[0] : `[${failures.join(', ')}]`);
  return true;
}

export type Documents = Readonly<Record<'object' | 'oldObject' | 'request', JsonValue | undefined>>;

/** Splits a review request into the documents `object`, `oldObject` and `request`. `request` omits both objects. */
export function documentsOf(request: JsonObject): Documents {
  const { object: now, oldObject: before, ...rest } = request;
  return { object: now, oldObject: before, request: rest };
}
