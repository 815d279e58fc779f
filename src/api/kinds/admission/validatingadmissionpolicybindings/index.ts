/**
 * Bindings of validating admission policies. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding.
 */

import { bindingKind } from '../../../admission-rules/bindings.ts';
import { validateBindingBasics } from '../../../admission-rules/policies.ts';
import type { ValidatingAdmissionPolicyBinding } from '../../../generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateOneOf } from '../../../validation/scalars.ts';

type Binding = ValidatingAdmissionPolicyBinding;

const ACTIONS = ['Audit', 'Deny', 'Warn'];

function validate(binding: Binding): FieldError[] {
  const spec = binding.spec;
  const errors = validateBindingBasics(spec ?? {});
  return [...errors, ...validateActions(spec?.validationActions ?? [])];
}

function validateActions(actions: readonly string[]): FieldError[] {
  const path = 'spec.validationActions';
  if (actions.length === 0) return [fieldError.required(path, 'at least one validation action is required')];
  const errors: FieldError[] = [];
  actions.forEach((action, index) => {
    errors.push(...validateOneOf(action, ACTIONS, `${path}[${index}]`));
    if (actions.indexOf(action) !== index) errors.push(fieldError.duplicate(`${path}[${index}]`, action));
  });
  if (actions.includes('Deny') && actions.includes('Warn')) {
    errors.push(
      fieldError.invalid(
        path,
        actions,
        'must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)',
      ),
    );
  }
  return errors;
}

export const validatingAdmissionPolicyBindings = bindingKind<Binding>(
  'Validating',
  [sameShape('admissionregistration.k8s.io', 'v1beta1', '1.31', '1.34')],
  validate,
);
