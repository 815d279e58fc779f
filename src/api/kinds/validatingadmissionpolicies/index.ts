/** Admission policies. Source: k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy, pkg/apis/admissionregistration. */
import type { ValidatingAdmissionPolicy } from 'kubernetes-types/admissionregistration/v1';
import { paramKindText, setPolicyDefaults, validatePolicyBasics } from '../../admissionrules/policies.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../registry/strategies.ts';
import { sameShape } from '../../registry/versions.ts';
import { validateOneOf } from '../../validation/scalars.ts';

type Policy = ValidatingAdmissionPolicy;

const MAX_ANNOTATIONS = 20;
const MAX_KEY = 63;
const REASONS = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];

const { strategy, statusStrategy } = specStatusStrategies<Policy>({ validate });

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
    if (validation.message?.includes('\n') === true) {
      errors.push(fieldError.invalid(`${at}.message`, validation.message, 'message must not contain line breaks'));
    }
    errors.push(...validateOneOf(validation.reason, REASONS, `${at}.reason`, false));
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
    if (!isSet(key)) errors.push(fieldError.required(`${at}.key`));
    else if (key.length > MAX_KEY)
      errors.push(fieldError.invalid(`${at}.key`, key, `must be no more than ${MAX_KEY} bytes`));
    else if (keys.has(key)) errors.push(fieldError.duplicate(`${at}.key`, key));
    keys.add(key);
    if (!isSet(valueExpression?.trim())) {
      errors.push(fieldError.required(`${at}.valueExpression`, 'valueExpression is not specified'));
    }
  });
  return errors;
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
  storagePrefix: 'validatingadmissionpolicies',
  allowUnconditionalUpdate: false,
  aliases: [sameShape('admissionregistration.k8s.io', 'v1beta1', '1.31', '1.34')],
  setDefaults(policy) {
    policy.spec ??= {};
    setPolicyDefaults(policy.spec);
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Policy>('Validations', 'How many validations there are.', (each) => each.spec?.validations?.length ?? 0, {
      type: 'integer',
    }),
    column<Policy>('ParamKind', 'The kind of its parameters.', (each) => paramKindText(each.spec?.paramKind)),
    ageColumn,
  ],
};
