/** Storage classes. Source: k8s.io/kubernetes/pkg/registry/storage/storageclass, pkg/apis/storage/{v1,validation}. */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import type { StorageClass } from '../../../generated/storage/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNameRule, validateOneOf, validateOptionalOneOf } from '../../../validation/scalars.ts';
import { validateClassParameters, validateDriver } from '../../../volumes/class-validation.ts';
import { topologyWarnings } from '../../../volumes/topology-warnings.ts';

const DEFAULT_ANNOTATIONS = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
];

function validate(each: StorageClass): FieldError[] {
  return [
    ...validateDriver(each.provisioner, 'provisioner'),
    ...validateClassParameters(each.parameters),
    ...(isSet(each.reclaimPolicy) ? validateOneOf(each.reclaimPolicy, ['Delete', 'Retain'], 'reclaimPolicy') : []),
    ...validateBinding(each.volumeBindingMode),
    ...validateTopologies(each),
  ];
}

function validateBinding(mode: string | undefined): FieldError[] {
  if (mode === undefined) return [fieldError.required('volumeBindingMode')];
  return validateOptionalOneOf(mode, ['Immediate', 'WaitForFirstConsumer'], 'volumeBindingMode');
}

function validateTopologies(each: StorageClass): FieldError[] {
  const errors: FieldError[] = [];
  // As upstream, an empty term is reported as a duplicate.
  const terms = new Set(['[]']);
  (each.allowedTopologies ?? []).forEach((term, index) => {
    const at = `allowedTopologies[${index}]`;
    const keys = new Map<string, string[]>();
    (term.matchLabelExpressions ?? []).forEach((requirement, place) => {
      const path = `${at}.matchLabelExpressions[${place}]`;
      const values = requirement.values ?? [];
      if (values.length === 0) errors.push(fieldError.required(`${path}.values`));
      const seen = new Set<string>();
      values.forEach((value, position) => {
        if (seen.has(value)) errors.push(fieldError.duplicate(`${path}.values[${position}]`, value));
        seen.add(value);
      });
      errors.push(...validateNameRule(requirement.key ?? '', qualifiedNameErrors, `${path}.key`));
      if (keys.has(requirement.key)) errors.push(fieldError.duplicate(`${path}.key`, requirement.key));
      keys.set(requirement.key, [...seen].sort());
    });
    const text = JSON.stringify([...keys].sort(([a], [b]) => (a < b ? -1 : 1)));
    if (terms.has(text)) errors.push(fieldError.duplicate(`${at}.matchLabelExpressions`, ''));
    terms.add(text);
  });
  return errors;
}

function validateUpdate(each: StorageClass, old: StorageClass): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['parameters', 'provisioner', 'reclaimPolicy'] as const) {
    if (!semanticEqual(each[field], old[field])) {
      errors.push(fieldError.forbidden(field, `updates to ${field} are forbidden.`));
    }
  }
  errors.push(...validateImmutable(each.volumeBindingMode, old.volumeBindingMode, 'volumeBindingMode'));
  return errors;
}

function isDefault(each: StorageClass): boolean {
  return DEFAULT_ANNOTATIONS.some((name) => each.metadata?.annotations?.[name] === 'true');
}

export const storageClasses: KindDefinition<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  singular: 'storageclass',
  listKind: 'StorageClassList',
  namespaced: false,
  shortNames: ['sc'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.StorageClass',
  returnsDeleted: true,
  storagePrefix: 'storageclasses',
  aliases: [sameShape('storage.k8s.io', 'v1beta1', '1.19', '1.22')],
  setDefaults(each) {
    each.reclaimPolicy ??= 'Delete';
    each.volumeBindingMode ??= 'Immediate';
  },
  strategy: { validate, validateUpdate, warnings: (each) => topologyWarnings(each.allowedTopologies) },
  columns: [
    {
      ...nameColumn,
      cell: (each: StorageClass) => `${each.metadata?.name ?? ''}${isDefault(each) ? ' (default)' : ''}`,
    },
    column<StorageClass>('Provisioner', 'Provisioner of the volumes.', (each) => each.provisioner ?? ''),
    column<StorageClass>(
      'ReclaimPolicy',
      'Handling of a volume after the deletion of its claim.',
      (each) => each.reclaimPolicy ?? 'Delete',
    ),
    column<StorageClass>(
      'VolumeBindingMode',
      'Time at which a volume is bound to a claim.',
      (each) => each.volumeBindingMode ?? 'Immediate',
    ),
    column<StorageClass>(
      'AllowVolumeExpansion',
      'Whether claims can be expanded.',
      (each) => each.allowVolumeExpansion ?? false,
    ),
    ageColumn,
  ],
};
