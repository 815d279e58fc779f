/** Where admission policies apply. Source: k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding. */
import type { ValidatingAdmissionPolicyBinding } from 'kubernetes-types/admissionregistration/v1';
import { paramRefText, setBindingDefaults, validateBindingBasics } from '../../admissionrules/policies.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { ageColumn, column, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../registry/strategies.ts';
import { sameShape } from '../../registry/versions.ts';
import { validateOneOf } from '../../validation/scalars.ts';

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

export const validatingAdmissionPolicyBindings: KindDefinition<Binding> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  plural: 'validatingadmissionpolicybindings',
  singular: 'validatingadmissionpolicybinding',
  listKind: 'ValidatingAdmissionPolicyBindingList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding',
  storagePrefix: 'validatingadmissionpolicybindings',
  aliases: [sameShape('admissionregistration.k8s.io', 'v1beta1', '1.31', '1.34')],
  setDefaults(binding) {
    setBindingDefaults(binding.spec);
  },
  strategy: {
    prepareForCreate(binding) {
      metadataOf(binding).generation = 1;
    },
    prepareForUpdate: bumpGeneration,
    validate,
  },
  columns: [
    nameColumn,
    column<Binding>('PolicyName', 'The policy.', (binding) => binding.spec?.policyName ?? ''),
    column<Binding>('ParamRef', 'Its parameters.', (each) => paramRefText(each.spec?.paramRef)),
    ageColumn,
  ],
};
