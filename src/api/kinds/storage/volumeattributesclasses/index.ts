/**
 * Classes of volume attributes that can change while the volume is in use. Source:
 * k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass, pkg/apis/storage/validation.
 */
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { validateClassParameters, validateDriver } from '../../../volumes/class-validation.ts';

interface VolumeAttributesClass extends KubeObject {
  driverName?: string;
  parameters?: Record<string, string>;
}

function validate(each: VolumeAttributesClass): FieldError[] {
  const errors = [...validateDriver(each.driverName, 'driverName'), ...validateClassParameters(each.parameters)];
  if (Object.keys(each.parameters ?? {}).length === 0) {
    errors.push(fieldError.required('parameters', 'must contain at least one key/value pair'));
  }
  return errors;
}

function validateUpdate(each: VolumeAttributesClass, old: VolumeAttributesClass): FieldError[] {
  return (['driverName', 'parameters'] as const)
    .filter((field) => !semanticEqual(each[field], old[field]))
    .map((field) => fieldError.forbidden(field, `updates to ${field} are forbidden.`));
}

export const volumeAttributesClasses: KindDefinition<VolumeAttributesClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'VolumeAttributesClass',
  plural: 'volumeattributesclasses',
  singular: 'volumeattributesclass',
  listKind: 'VolumeAttributesClassList',
  namespaced: false,
  shortNames: ['vac'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.storage.v1.VolumeAttributesClass',
  returnsDeleted: true,
  storagePrefix: 'volumeattributesclasses',
  strategy: { validate, validateUpdate },
  columns: [
    nameColumn,
    column<VolumeAttributesClass>('DriverName', 'Driver of the volumes.', (each) => each.driverName ?? ''),
    ageColumn,
  ],
};
