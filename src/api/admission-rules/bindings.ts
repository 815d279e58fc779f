/**
 * Parts of a kind definition that both kinds of policy bindings share. Source:
 * k8s.io/kubernetes/pkg/registry/admissionregistration.
 */
import type { FieldError } from '../meta/field-error.ts';
import type { KubeObject } from '../meta/object.ts';
import { ageColumn, column, nameColumn } from '../printing/columns.ts';
import type { KindDefinition } from '../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../registry/strategies.ts';
import { type BindingSpec, paramRefText, setBindingDefaults } from './policies.ts';

export interface Binding extends KubeObject {
  spec?: BindingSpec;
}

export function bindingKind<T extends Binding>(
  sort: 'Mutating' | 'Validating',
  aliases: NonNullable<KindDefinition<T>['aliases']>,
  validate: (binding: T) => FieldError[],
): KindDefinition<T> {
  const kind = `${sort}AdmissionPolicyBinding`;
  const singular = kind.toLowerCase();
  return {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: false,
    categories: ['api-extensions'],
    verbs: ALL_VERBS,
    schemaName: `io.k8s.api.admissionregistration.v1.${kind}`,
    skeleton: { spec: {} },
    storagePrefix: `${singular}s`,
    allowUnconditionalUpdate: false,
    aliases,
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
      column<T>('PolicyName', 'The policy.', (binding) => binding.spec?.policyName ?? ''),
      column<T>('ParamRef', 'Its parameters.', (binding) => paramRefText(binding.spec?.paramRef)),
      ageColumn,
    ],
  };
}
