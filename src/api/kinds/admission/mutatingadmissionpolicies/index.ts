/**
 * Admission policies that change objects. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy.
 */
import {
  type PolicySpec,
  paramKindText,
  setPolicyDefaults,
  validateMutatedOperations,
  validatePolicyBasics,
} from '../../../admission-rules/policies.ts';
import type { Mutation } from '../../../generated/admissionregistration/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';
import { otherVersion } from '../../../registry/versions.ts';
import { validateOneOf } from '../../../validation/scalars.ts';

interface Policy extends KubeObject {
  spec?: PolicySpec & { mutations?: Mutation[]; reinvocationPolicy?: string };
}

function validate(policy: Policy): FieldError[] {
  const spec = policy.spec ?? {};
  const errors = validatePolicyBasics(spec);
  errors.push(...validateMutatedOperations(spec.matchConstraints, 'spec.matchConstraints'));
  const mutations = spec.mutations ?? [];
  if (mutations.length === 0) {
    errors.push(fieldError.required('spec.mutations', 'mutations must contain at least one item'));
  }
  mutations.forEach((mutation, index) => {
    errors.push(...validateMutation(mutation, `spec.mutations[${index}]`));
  });
  errors.push(...validateOneOf(spec.reinvocationPolicy, ['Never', 'IfNeeded'], 'spec.reinvocationPolicy'));
  return errors;
}

const FIELDS = { ApplyConfiguration: 'applyConfiguration', JSONPatch: 'jsonPatch' } as const;

function validateMutation(mutation: Mutation, at: string): FieldError[] {
  const { patchType } = mutation;
  const errors = validateOneOf(patchType, Object.keys(FIELDS), `${at}.patchType`);
  if (errors.length > 0) return errors;
  for (const [type, field] of Object.entries(FIELDS)) {
    const path = `${at}.${field}`;
    const given = mutation[field];
    if (type !== patchType) {
      if (given === undefined) continue;
      errors.push(fieldError.invalid(path, `{${field}}`, `must not be specified when patchType is ${patchType ?? ''}`));
    } else if (given === undefined) {
      errors.push(fieldError.required(path, `must be specified when patchType is ${type}`));
    } else if (!isSet(given.expression?.trim())) errors.push(fieldError.required(`${path}.expression`));
  }
  return errors;
}

export const mutatingAdmissionPolicies: KindDefinition<Policy> = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'MutatingAdmissionPolicy',
  plural: 'mutatingadmissionpolicies',
  singular: 'mutatingadmissionpolicy',
  listKind: 'MutatingAdmissionPolicyList',
  namespaced: false,
  categories: ['api-extensions'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy',
  skeleton: { spec: {} },
  storagePrefix: 'mutatingadmissionpolicies',
  allowUnconditionalUpdate: false,
  aliases: [
    otherVersion('admissionregistration.k8s.io', 'v1beta1'),
    otherVersion('admissionregistration.k8s.io', 'v1alpha1'),
  ],
  setDefaults(policy) {
    policy.spec ??= {};
    setPolicyDefaults(policy.spec);
  },
  strategy: {
    prepareForCreate(policy) {
      metadataOf(policy).generation = 1;
    },
    prepareForUpdate: bumpGeneration,
    validate,
  },
  columns: [
    nameColumn,
    column<Policy>('Mutations', 'Number of mutations.', (each) => each.spec?.mutations?.length ?? 0, {
      type: 'integer',
    }),
    column<Policy>('ParamKind', 'The kind of the parameters.', (each) => paramKindText(each.spec?.paramKind)),
    ageColumn,
  ],
};
