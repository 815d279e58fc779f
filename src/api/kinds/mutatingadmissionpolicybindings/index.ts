/** Where policies that change objects apply. Source: k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding. */
import {
  type BindingSpec,
  paramRefText,
  setBindingDefaults,
  validateBindingBasics,
  validateMutatedOperations,
} from '../../admissionrules/policies.ts';
import type { FieldError } from '../../meta/field-error.ts';
import type { KubeObject } from '../../meta/object.ts';
import { ageColumn, column, nameColumn } from '../../printing/columns.ts';
import type { KindDefinition } from '../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../registry/strategies.ts';
import { otherVersion } from '../../registry/versions.ts';

interface Binding extends KubeObject {
  spec?: BindingSpec;
}

function validate({ spec = {} }: Binding): FieldError[] {
  return [...validateBindingBasics(spec), ...validateMutatedOperations(spec.matchResources, 'spec.matchResources')];
}

export const mutatingAdmissionPolicyBindings: KindDefinition<Binding> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingAdmissionPolicyBinding',
  plural: 'mutatingadmissionpolicybindings',
  singular: 'mutatingadmissionpolicybinding',
  listKind: 'MutatingAdmissionPolicyBindingList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding',
  storagePrefix: 'mutatingadmissionpolicybindings',
  aliases: [
    otherVersion('admissionregistration.k8s.io', 'v1beta1'),
    otherVersion('admissionregistration.k8s.io', 'v1alpha1'),
  ],
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
    column<Binding>('ParamRef', 'Its parameters.', (binding) => paramRefText(binding.spec?.paramRef)),
    ageColumn,
  ],
};
