/**
 * Validating admission policies. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy, pkg/apis/admissionregistration.
 */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import { paramKindText, setPolicyDefaults, validatePolicyBasics } from '../../../admission-rules/policies.ts';
import type { ValidatingAdmissionPolicy } from '../../../generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, utf8Length } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, METADATA_AND_SPEC, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateStandardConditions } from '../../../validation/conditions.ts';
import { validateNameRule, validateOptionalOneOf } from '../../../validation/scalars.ts';

type Policy = ValidatingAdmissionPolicy;

const MAX_ANNOTATIONS = 20;
const MAX_EXPRESSION_BYTES = 5 * 1024;
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];

const { strategy, statusStrategy } = specStatusStrategies<Policy>({ validate, validateStatusUpdate });

function validate(policy: Policy): FieldError[] {
  const spec = policy.spec ?? {};
  const errors = validatePolicyBasics(spec);
  const { validations = [], auditAnnotations = [] } = spec;
  if (validations.length + auditAnnotations.length === 0) {
    for (const field of ['validations', 'auditAnnotations']) {
      errors.push(
        fieldError.required(`spec.${field}`, 'validations or auditAnnotations must contain at least one item'),
      );
    }
  }
  validations.forEach((validation, index) => {
    const at = `spec.validations[${index}]`;
    if (!isSet(validation.expression?.trim()))
      errors.push(fieldError.required(`${at}.expression`, 'expression is not specified'));
    const { message, messageExpression } = validation;
    if (isSet(messageExpression) && messageExpression.trim() === '') {
      errors.push(fieldError.invalid(`${at}.messageExpression`, messageExpression, 'must be non-empty if specified'));
    }
    if (isSet(message) && message.trim() === '') {
      errors.push(fieldError.invalid(`${at}.message`, message, 'must be non-empty if specified'));
    } else if (message !== undefined && /[\n\r]/.test(message.trim())) {
      errors.push(fieldError.invalid(`${at}.message`, message, 'must not contain line breaks'));
    }
    errors.push(...validateOptionalOneOf(validation.reason, REASONS, `${at}.reason`));
  });
  return [...errors, ...validateAnnotations(policy)];
}

function validateAnnotations(policy: Policy): FieldError[] {
  const given = policy.spec?.auditAnnotations ?? [];
  const errors: FieldError[] = [];
  if (given.length > MAX_ANNOTATIONS) {
    errors.push(
      fieldError.invalid('spec.auditAnnotations', given, `must not have more than ${MAX_ANNOTATIONS} auditAnnotations`),
    );
  }
  const keys = new Set<string>();
  given.forEach(({ key, valueExpression }, index) => {
    const at = `spec.auditAnnotations[${index}]`;
    // Audit events use the key with the policy's name as prefix, so both together must be valid.
    const name = policy.metadata?.name;
    if (isSet(name)) errors.push(...validateNameRule(`${name}/${key ?? ''}`, qualifiedNameErrors, `${at}.key`));
    else errors.push(fieldError.invalid(`${at}.key`, key ?? '', 'requires metadata.name be non-empty'));
    const expression = valueExpression?.trim() ?? '';
    if (expression === '') {
      errors.push(fieldError.required(`${at}.valueExpression`, 'valueExpression is not specified'));
    } else if (utf8Length(expression) > MAX_EXPRESSION_BYTES) {
      const detail = `must not exceed ${MAX_EXPRESSION_BYTES} bytes in length`;
      errors.push(fieldError.required(`${at}.valueExpression`, detail));
    }
    if (keys.has(key ?? '')) errors.push(fieldError.duplicate(`${at}.key`, key ?? ''));
    keys.add(key ?? '');
  });
  return errors;
}

function validateStatusUpdate({ status }: Policy): FieldError[] {
  const warnings = (status?.typeChecking?.expressionWarnings ?? []).flatMap(({ warning, fieldRef }, index) => {
    const at = `status.typeChecking.expressionWarnings[${index}]`;
    return [
      ...(isSet(warning) ? [] : [fieldError.required(`${at}.warning`)]),
      ...(isSet(fieldRef?.trim()) ? [] : [fieldError.required(`${at}.fieldRef`)]),
    ];
  });
  return [...warnings, ...validateStandardConditions(status?.conditions ?? [], 'status.conditions')];
}

export const validatingAdmissionPolicies: KindDefinition<Policy> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicy',
  plural: 'validatingadmissionpolicies',
  singular: 'validatingadmissionpolicy',
  listKind: 'ValidatingAdmissionPolicyList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'validatingadmissionpolicies',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('admissionregistration.k8s.io', 'v1beta1', '1.31', '1.34')],
  setDefaults(policy) {
    policy.spec ??= {};
    setPolicyDefaults(policy.spec);
  },
  strategy,
  statusStrategy,
  statusResetFields: METADATA_AND_SPEC,
  columns: [
    nameColumn,
    column<Policy>('Validations', 'Number of validations.', (each) => each.spec?.validations?.length ?? 0, {
      type: 'integer',
    }),
    column<Policy>('ParamKind', 'The kind of the parameters.', (each) => paramKindText(each.spec?.paramKind)),
    ageColumn,
  ],
};
