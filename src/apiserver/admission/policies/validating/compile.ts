/**
 * Validating admission policies, compiled. Source: k8s.io/apiserver/pkg/admission/plugin/policy/validating/plugin.go.
 */
import type { ValidatingAdmissionPolicy } from '../../../../api/generated/admissionregistration/v1.ts';
import {
  compileShared,
  type Expression,
  type Policy,
  PolicyCompiler,
  sharedExpressions,
} from '../generic/composition.ts';

interface Validation {
  readonly expression: Expression;
  readonly message: string | undefined;
  readonly messageExpression: Expression | undefined;
  readonly reason: string | undefined;
}

export interface ValidatingPolicy extends Policy {
  readonly validations: readonly Validation[];
  readonly annotations: readonly { readonly key: string; readonly expression: Expression }[];
}

export function compileValidating(policy: ValidatingAdmissionPolicy): ValidatingPolicy {
  const spec = policy.spec ?? {};
  const compiler = new PolicyCompiler(spec);
  return {
    ...compileShared(policy, compiler),
    validations: (spec.validations ?? []).map((validation, index) => ({
      expression: compiler.expression(`spec.validations[${index}].expression`, validation.expression, 'bool'),
      message: validation.message,
      messageExpression:
        (validation.messageExpression ?? '') === ''
          ? undefined
          : compiler.expression(
              `spec.validations[${index}].messageExpression`,
              validation.messageExpression,
              'message',
            ),
      reason: validation.reason,
    })),
    annotations: (spec.auditAnnotations ?? []).map(({ key, valueExpression }, index) => ({
      key,
      expression: compiler.expression(`spec.auditAnnotations[${index}].valueExpression`, valueExpression, 'annotation'),
    })),
  };
}

export function validatingExpressions(policy: ValidatingPolicy): Expression[] {
  return [
    ...sharedExpressions(policy),
    ...policy.validations.flatMap(({ expression, messageExpression }) =>
      messageExpression === undefined ? [expression] : [expression, messageExpression],
    ),
    ...policy.annotations.map(({ expression }) => expression),
  ];
}
