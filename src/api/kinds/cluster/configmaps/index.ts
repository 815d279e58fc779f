/** Config maps. Source: k8s.io/kubernetes/pkg/registry/core/configmap, pkg/apis/core/validation ValidateConfigMap. */

import { configMapKeyErrors } from '../../../../base/names.ts';
import type { ConfigMap } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { utf8Length } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { base64Bytes } from '../../../validation/base64.ts';

/** Upstream's limit of 1 MiB, for config maps and secrets. */
export const MAX_DATA_BYTES = 1024 * 1024;

function validate(map: ConfigMap): FieldError[] {
  const errors: FieldError[] = [];
  let units = 0;
  let bytes = 0;
  const data = map.data ?? {};
  const keys = Object.keys(data);
  for (const key of keys) {
    checkKey(key, 'data', errors);
    if (map.binaryData !== undefined && Object.hasOwn(map.binaryData, key)) {
      errors.push(fieldError.invalid(`data[${key}]`, key, 'duplicate of key present in binaryData'));
    }
    units += (data[key] ?? '').length;
  }
  for (const [key, value] of Object.entries(map.binaryData ?? {})) {
    checkKey(key, 'binaryData', errors);
    bytes += base64Bytes(value);
  }
  // A UTF-16 unit is at most three bytes of UTF-8. Most maps are far below the limit and need no exact count.
  if (bytes + units * 3 > MAX_DATA_BYTES) for (const key of keys) bytes += utf8Length(data[key] ?? '');
  if (bytes > MAX_DATA_BYTES) errors.push(fieldError.tooLong('[]', MAX_DATA_BYTES));
  return errors;
}

function checkKey(key: string, path: string, errors: FieldError[]): void {
  for (const message of configMapKeyErrors(key)) errors.push(fieldError.invalid(`${path}[${key}]`, key, message));
}

const FROZEN = 'field is immutable when `immutable` is set';

function validateUpdate(map: ConfigMap, old: ConfigMap): FieldError[] {
  const errors: FieldError[] = [];
  if (old.immutable === true) {
    if (map.immutable !== true) errors.push(fieldError.forbidden('immutable', FROZEN));
    for (const field of ['data', 'binaryData'] as const) {
      if (!semanticEqual(map[field], old[field])) errors.push(fieldError.forbidden(field, FROZEN));
    }
  }
  return errors;
}

export const configMaps: KindDefinition<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  singular: 'configmap',
  listKind: 'ConfigMapList',
  namespaced: true,
  shortNames: ['cm'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.ConfigMap',
  storagePrefix: 'configmaps',
  strategy: { validate, validateUpdate },
  columns: [
    nameColumn,
    column<ConfigMap>(
      'Data',
      'Number of keys of the config map.',
      (map) => Object.keys(map.data ?? {}).length + Object.keys(map.binaryData ?? {}).length,
    ),
    ageColumn,
  ],
};
