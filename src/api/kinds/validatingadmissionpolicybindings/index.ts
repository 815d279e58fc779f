/** Where admission policies apply. Source: k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding. */
import type { ParamRef, ValidatingAdmissionPolicyBinding } from 'kubernetes-types/admissionregistration/v1';
import { dns1123SubdomainErrors } from '../../../base/names.ts';
import { setMatchDefaults, validateMatchResources } from '../../admissionrules/rules.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../registry/strategies.ts';
import { sameShape } from '../../registry/versions.ts';
import { validateNameRule, validateOneOf } from '../../validation/scalars.ts';
import { validateLabelSelector } from '../../validation/selectors.ts';

type Binding = ValidatingAdmissionPolicyBinding;

const ACTIONS = ['Audit', 'Deny', 'Warn'];

function validate(binding: Binding): FieldError[] {
  const spec = binding.spec;
  const errors: FieldError[] = [];
  if (!isSet(spec?.policyName)) errors.push(fieldError.required('spec.policyName'));
  else errors.push(...validateNameRule(spec.policyName, dns1123SubdomainErrors, 'spec.policyName'));
  if (spec?.paramRef !== undefined) errors.push(...validateParamRef(spec.paramRef));
  errors.push(...validateMatchResources(spec?.matchResources, 'spec.matchResources'));
  return [...errors, ...validateActions(spec?.validationActions ?? [])];
}

function validateParamRef(ref: ParamRef): FieldError[] {
  const at = 'spec.paramRef';
  const errors: FieldError[] = [];
  const named = isSet(ref.name);
  if (named && ref.selector !== undefined) {
    for (const field of ['name', 'selector']) {
      errors.push(fieldError.forbidden(`${at}.${field}`, 'name and selector are mutually exclusive'));
    }
  } else if (!named && ref.selector === undefined) {
    errors.push(fieldError.required(at, 'one of name or selector must be specified'));
  }
  if (ref.selector !== undefined) errors.push(...validateLabelSelector(ref.selector, `${at}.selector`));
  if (!isSet(ref.parameterNotFoundAction)) {
    errors.push(fieldError.required(`${at}.parameterNotFoundAction`));
  } else {
    errors.push(...validateOneOf(ref.parameterNotFoundAction, ['Allow', 'Deny'], `${at}.parameterNotFoundAction`));
  }
  return errors;
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

function paramText(binding: Binding): string {
  const ref = binding.spec?.paramRef;
  if (ref === undefined) return '<unset>';
  const name = ref.selector === undefined ? (ref.name ?? '') : '*';
  return isSet(ref.namespace) ? `${ref.namespace}/${name}` : name;
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
    const { matchResources, paramRef } = binding.spec ?? {};
    if (matchResources !== undefined) setMatchDefaults(matchResources);
    if (paramRef !== undefined) paramRef.parameterNotFoundAction ??= 'Deny';
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
    column<Binding>('ParamRef', 'Its parameters.', paramText),
    ageColumn,
  ],
};
