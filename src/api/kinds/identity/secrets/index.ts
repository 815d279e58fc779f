/** Secrets. Source: k8s.io/kubernetes/pkg/registry/core/secret, pkg/apis/core/validation ValidateSecret. */

import { configMapKeyErrors } from '../../../../base/names.ts';
import type { Secret } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { base64Bytes, decodeBase64, encodeBase64 } from '../../../validation/base64.ts';
import { MAX_DATA_BYTES } from '../../cluster/configmaps/index.ts';

const SERVICE_ACCOUNT_NAME = 'kubernetes.io/service-account.name';

/** Required keys by type of secret. */
const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
};
/** Required keys whose value must be JSON, by type of secret. */
const JSON_KEYS: Readonly<Record<string, string>> = {
  'kubernetes.io/dockercfg': '.dockercfg',
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
};

function validate(secret: Secret): FieldError[] {
  const errors: FieldError[] = [];
  const data = secret.data ?? {};
  const type = secret.type ?? '';
  let bytes = 0;
  for (const key of Object.keys(data)) {
    for (const message of configMapKeyErrors(key)) errors.push(fieldError.invalid(`data[${key}]`, key, message));
    bytes += base64Bytes(data[key] ?? '');
  }
  if (bytes > MAX_DATA_BYTES) errors.push(fieldError.tooLong('data', MAX_DATA_BYTES));
  if (type === 'kubernetes.io/service-account-token') {
    if (!isSet(secret.metadata?.annotations?.[SERVICE_ACCOUNT_NAME])) {
      errors.push(fieldError.required(`metadata.annotations[${SERVICE_ACCOUNT_NAME}]`));
    }
  } else if (type === 'kubernetes.io/basic-auth') {
    if (!Object.hasOwn(data, 'username') && !Object.hasOwn(data, 'password')) {
      errors.push(fieldError.required('data[username]'), fieldError.required('data[password]'));
    }
  }
  if (Object.hasOwn(REQUIRED_KEYS, type)) {
    for (const key of REQUIRED_KEYS[type] ?? []) {
      if (!Object.hasOwn(data, key)) errors.push(fieldError.required(`data[${key}]`));
    }
  }
  const jsonKey = Object.hasOwn(JSON_KEYS, type) ? JSON_KEYS[type] : undefined;
  if (jsonKey !== undefined) errors.push(...validateJson(data, jsonKey));
  return errors;
}

function validateJson(data: Readonly<Record<string, string>>, key: string): FieldError[] {
  const value = Object.hasOwn(data, key) ? data[key] : undefined;
  if (value === undefined) return [fieldError.required(`data[${key}]`)];
  try {
    JSON.parse(decodeBase64(value) ?? '');
    return [];
  } catch {
    return [fieldError.invalid(`data[${key}]`, '<secret contents redacted>', 'the contents are not valid JSON')];
  }
}

const FROZEN = 'field is immutable when `immutable` is set';

function validateUpdate(secret: Secret, old: Secret): FieldError[] {
  const errors = validateImmutable(secret.type, old.type, 'type');
  if (old.immutable === true) {
    if (secret.immutable !== true) errors.push(fieldError.forbidden('immutable', FROZEN));
    if (!semanticEqual(secret.data, old.data)) errors.push(fieldError.forbidden('data', FROZEN));
  }
  return [...errors, ...validate(secret)];
}

export const secrets: KindDefinition<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  singular: 'secret',
  listKind: 'SecretList',
  namespaced: true,
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Secret',
  storagePrefix: 'secrets',
  setDefaults(secret) {
    if (!isSet(secret.type)) secret.type = 'Opaque';
    if (secret.stringData === undefined) return;
    // stringData is write-only: its entries override entries of data.
    secret.data ??= {};
    const data = secret.data;
    for (const [key, value] of Object.entries(secret.stringData)) {
      Object.defineProperty(data, key, {
        value: encodeBase64(value),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    delete secret.stringData;
  },
  strategy: {
    prepareForUpdate(secret, old) {
      // An update without a type keeps the stored type.
      if (!isSet(secret.type) && old.type !== undefined) secret.type = old.type;
    },
    validate,
    validateUpdate,
  },
  columns: [
    nameColumn,
    column<Secret>('Type', 'Type of the secret.', (secret) => secret.type ?? ''),
    column<Secret>('Data', 'Number of keys of the secret.', (secret) => Object.keys(secret.data ?? {}).length),
    ageColumn,
  ],
  fieldSelectors: { type: (secret) => secret.type ?? '' },
};
