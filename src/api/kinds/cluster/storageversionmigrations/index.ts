/**
 * Requests to rewrite all objects of a resource in its storage version. Source:
 * k8s.io/kubernetes/pkg/registry/storagemigration, pkg/apis/storagemigration/validation; KEP-4192.
 */

import { dns1035LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { Condition } from '../../../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';

export interface StorageVersionMigration extends KubeObject {
  spec?: { resource?: { group?: string; resource?: string } };
  status?: { conditions?: Condition[]; resourceVersion?: string };
}

const AT = 'spec.resource';

function validate({ spec }: StorageVersionMigration): FieldError[] {
  const { group = '', resource = '' } = spec?.resource ?? {};
  const errors = resource === '' ? [fieldError.required(`${AT}.resource`, '')] : [];
  if (resource !== '')
    errors.push(...dns1035LabelErrors(resource).map((why) => fieldError.invalid(`${AT}.resource`, resource, why)));
  if (group !== '')
    errors.push(...dns1123SubdomainErrors(group).map((why) => fieldError.invalid(`${AT}.group`, group, why)));
  return errors;
}

const isTrue = ({ status }: StorageVersionMigration, type: string): boolean =>
  status?.conditions?.some((each) => each.type === type && each.status === 'True') === true;

/** Validates the conditions. The conditions Succeeded and Failed stay true once they are true. */
function validateStatusUpdate(each: StorageVersionMigration, old: StorageVersionMigration): FieldError[] {
  const at = 'status.conditions';
  const errors: FieldError[] = [];
  const before = old.status?.resourceVersion ?? '';
  const now = each.status?.resourceVersion ?? '';
  if (before !== '' && before !== now)
    errors.push(fieldError.invalid('status.resourceVersion', now, 'field is immutable'));
  if (isTrue(each, 'Succeeded') && isTrue(each, 'Failed'))
    errors.push(fieldError.invalid(at, each.status?.conditions, 'Both success and failed conditions cannot be true'));
  for (const type of ['Succeeded', 'Failed'] as const) {
    if (isTrue(old, type) && !isTrue(each, type))
      errors.push(
        fieldError.invalid(at, each.status?.conditions, `${type} condition cannot be set to false once it is true`),
      );
    if (isTrue(each, type) && isTrue(each, 'Running'))
      errors.push(
        fieldError.invalid(
          at,
          each.status?.conditions,
          `Running condition cannot be true when ${type} condition is true`,
        ),
      );
  }
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<StorageVersionMigration>({
  validate,
  validateUpdate: (each, old) => validateImmutable(each.spec, old.spec, 'spec'),
  validateStatusUpdate,
});

export const storageVersionMigrations: KindDefinition<StorageVersionMigration> = {
  group: 'storagemigration.k8s.io',
  version: 'v1beta1',
  kind: 'StorageVersionMigration',
  plural: 'storageversionmigrations',
  singular: 'storageversionmigration',
  listKind: 'StorageVersionMigrationList',
  namespaced: false,
  offByDefault: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storagemigration.v1beta1.StorageVersionMigration',
  storagePrefix: 'storageversionmigrations',
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<StorageVersionMigration>('Resource', 'The resource whose objects are rewritten.', ({ spec }) =>
      [spec?.resource?.resource ?? '', spec?.resource?.group ?? ''].filter((part) => part !== '').join('.'),
    ),
    column<StorageVersionMigration>(
      'Status',
      'Progress of the migration.',
      (each) => ['Succeeded', 'Failed', 'Running'].find((type) => isTrue(each, type)) ?? 'Pending',
    ),
    ageColumn,
  ],
};
