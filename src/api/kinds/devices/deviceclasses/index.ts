/**
 * Classes of devices that claims can request. Source: k8s.io/kubernetes/pkg/registry/resource/deviceclass,
 * pkg/apis/resource/validation, pkg/printers/internalversion.
 */
import { MAX_LIST, validateConfiguration, validateItems, validateSelectors } from '../../../devices/shared-rules.ts';
import type { DeviceClass } from '../../../devices/types.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { ageColumn, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, bumpGeneration, metadataOf } from '../../../registry/strategies.ts';
import { validateQualifiedName } from '../../../validation/resource-names.ts';

/** Pattern for names that an extended resource must not have: names of native resources and the prefix of quotas. */
const NATIVE = /^requests\.|(?:^|\.)kubernetes\.io\//;

function validate({ spec = {} }: DeviceClass): FieldError[] {
  const errors = [
    ...validateSelectors(spec.selectors, 'spec.selectors'),
    ...validateItems(spec.config, MAX_LIST, 'spec.config', validateConfiguration),
  ];
  const extended = spec.extendedResourceName;
  if (extended === undefined) return errors;
  const at = 'spec.extendedResourceName';
  // The name must also be valid with the prefix `requests.`, as quotas use it.
  const named = validateQualifiedName(`requests.${extended}`, at).length === 0;
  if (!named || !extended.includes('/') || NATIVE.test(extended)) {
    errors.push(fieldError.invalid(at, extended, 'must be a valid extended resource name'));
  }
  return errors;
}

export const deviceClasses: KindDefinition<DeviceClass> = {
  group: 'resource.k8s.io',
  version: 'v1',
  kind: 'DeviceClass',
  plural: 'deviceclasses',
  singular: 'deviceclass',
  listKind: 'DeviceClassList',
  namespaced: false,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.resource.v1.DeviceClass',
  returnsDeleted: true,
  storagePrefix: 'deviceclasses',
  strategy: {
    prepareForCreate(each) {
      metadataOf(each).generation = 1;
    },
    prepareForUpdate: bumpGeneration,
    validate,
  },
  columns: [nameColumn, ageColumn],
};
