/** Admission policies and their bindings, compiled. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating. */
import type {
  ParamRef,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from 'kubernetes-types/admissionregistration/v1';
import { messageOf } from '../../../../base/errors.ts';
import type { Program } from '../../../../core/cel/part.ts';
import { DYN, type Type } from '../../../../core/cel/types.ts';
import { compileExpression, type Expected } from '../expressions.ts';
import { compileMatch, type MatchSpec } from '../matching.ts';

/** An expression with what became of it: a program, or what is wrong with it. */
export interface Expression {
  /** Where it stands in the policy. */
  readonly at: string;
  readonly source: string;
  readonly program: Program | undefined;
  readonly problem: string;
}

interface Validation {
  readonly expression: Expression;
  readonly message: string | undefined;
  readonly messageExpression: Expression | undefined;
  readonly reason: string | undefined;
}

export interface Policy {
  readonly name: string;
  readonly match: MatchSpec;
  readonly ignoresFailure: boolean;
  readonly paramKind: { readonly apiVersion: string; readonly kind: string } | undefined;
  readonly conditions: readonly (Expression & { readonly name: string })[];
  readonly variables: ReadonlyMap<string, Expression>;
  readonly validations: readonly Validation[];
  readonly annotations: readonly { readonly key: string; readonly expression: Expression }[];
}

export interface Binding {
  readonly name: string;
  readonly policyName: string;
  readonly match: MatchSpec | undefined;
  /** Whether its rules say something; without any, all that the policy matches is bound. */
  readonly hasRules: boolean;
  readonly paramRef: ParamRef | undefined;
  readonly actions: readonly string[];
}

export function compilePolicy(policy: ValidatingAdmissionPolicy): Policy {
  const spec = policy.spec ?? {};
  const fields = new Map<string, Type>();
  const more: [string, Type][] = [
    ['namespaceObject', DYN],
    ...(spec.paramKind === undefined ? [] : [['params', DYN] as [string, Type]]),
  ];
  const composed = (): [string, Type][] => [
    ...more,
    ['variables', { kind: 'object', name: 'kubernetes.variables', fields: new Map(fields) }],
  ];
  const expression = (at: string, source: string | undefined, expected: Expected): Expression => {
    try {
      return { at, source: source ?? '', program: compileExpression(source ?? '', expected, composed()), problem: '' };
    } catch (error) {
      return { at, source: source ?? '', program: undefined, problem: messageOf(error) };
    }
  };
  // Conditions are judged before there are variables.
  const conditions = (spec.matchConditions ?? []).map(({ name, expression: source }, index) => ({
    name,
    ...expression(`spec.matchConditions[${index}].expression`, source, 'bool'),
  }));
  const variables = new Map<string, Expression>();
  // Each may speak of those before it.
  for (const [index, { name, expression: source }] of (spec.variables ?? []).entries()) {
    const compiled = expression(`spec.variables[${index}].expression`, source, 'any');
    variables.set(name, compiled);
    fields.set(name, compiled.program?.type ?? DYN);
  }
  return {
    name: policy.metadata?.name ?? '',
    match: compileMatch({ ...spec.matchConstraints, rules: spec.matchConstraints?.resourceRules }),
    ignoresFailure: spec.failurePolicy === 'Ignore',
    paramKind:
      spec.paramKind === undefined
        ? undefined
        : { apiVersion: spec.paramKind.apiVersion ?? '', kind: spec.paramKind.kind ?? '' },
    conditions,
    variables,
    validations: (spec.validations ?? []).map((validation, index) => ({
      expression: expression(`spec.validations[${index}].expression`, validation.expression, 'bool'),
      message: validation.message,
      messageExpression:
        (validation.messageExpression ?? '') === ''
          ? undefined
          : expression(`spec.validations[${index}].messageExpression`, validation.messageExpression, 'string'),
      reason: validation.reason,
    })),
    annotations: (spec.auditAnnotations ?? []).map(({ key, valueExpression }, index) => ({
      key,
      expression: expression(`spec.auditAnnotations[${index}].valueExpression`, valueExpression, 'string'),
    })),
  };
}

/** Everything in a policy that is an expression. */
export function expressionsOf(policy: Policy): Expression[] {
  return [
    ...policy.conditions,
    ...policy.variables.values(),
    ...policy.validations.flatMap(({ expression, messageExpression }) =>
      messageExpression === undefined ? [expression] : [expression, messageExpression],
    ),
    ...policy.annotations.map(({ expression }) => expression),
  ];
}

export function compileBinding(binding: ValidatingAdmissionPolicyBinding): Binding {
  const spec = binding.spec ?? {};
  const match = spec.matchResources;
  return {
    name: binding.metadata?.name ?? '',
    policyName: spec.policyName ?? '',
    match: match === undefined ? undefined : compileMatch({ ...match, rules: match.resourceRules }),
    hasRules: (match?.resourceRules ?? []).length > 0,
    paramRef: spec.paramRef,
    actions: spec.validationActions ?? [],
  };
}
