/** Kinds that are used in subresources only, and the old top-level resource `bindings`. */
import type { TokenRequest } from '../../../generated/authentication/v1.ts';
import type { Scale } from '../../../generated/autoscaling/v1.ts';
import type { Binding } from '../../../generated/core/v1.ts';
import type { Eviction } from '../../../generated/policy/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { sameShape } from '../../../registry/versions.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;
const DEFAULT_TOKEN_SECONDS = 3600;

/** Body of `POST pods/NAME/binding`, which assigns a pod to a node. */
export const bindings: KindDefinition<Binding> = {
  group: '',
  version: 'v1',
  kind: 'Binding',
  plural: 'bindings',
  singular: 'binding',
  listKind: 'BindingList',
  namespaced: true,
  verbs: ['create'],
  schemaName: 'io.k8s.api.core.v1.Binding',
  storagePrefix: '',
  isComputed: true,
  strategy: {
    validate(binding) {
      const errors: FieldError[] = [];
      const kind = binding.target?.kind ?? '';
      if (kind !== '' && kind !== 'Node') {
        errors.push(fieldError.notSupported('target.kind', kind, ['Node', '<empty>']));
      }
      if (!isSet(binding.target?.name)) errors.push(fieldError.required('target.name'));
      return errors;
    },
  },
  columns: [],
};

/** Body of `POST pods/NAME/eviction`. */
export const evictions: KindDefinition<Eviction> = {
  group: 'policy',
  version: 'v1',
  kind: 'Eviction',
  plural: 'evictions',
  singular: 'eviction',
  listKind: 'EvictionList',
  namespaced: true,
  verbs: ['create'],
  schemaName: 'io.k8s.api.policy.v1.Eviction',
  aliases: [sameShape('policy', 'v1beta1', '1.22', '1.25')],
  storagePrefix: '',
  isComputed: true,
  strategy: {},
  columns: [],
};

/** Body of `POST serviceaccounts/NAME/token`. */
export const tokenRequests: KindDefinition<TokenRequest> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenRequest',
  plural: 'tokenrequests',
  singular: 'tokenrequest',
  listKind: 'TokenRequestList',
  namespaced: true,
  verbs: ['create'],
  schemaName: 'io.k8s.api.authentication.v1.TokenRequest',
  storagePrefix: '',
  isComputed: true,
  setDefaults(request) {
    if (request.spec !== undefined) request.spec.expirationSeconds ??= DEFAULT_TOKEN_SECONDS;
  },
  strategy: {
    validate(request) {
      const seconds = request.spec?.expirationSeconds ?? DEFAULT_TOKEN_SECONDS;
      const path = 'spec.expirationSeconds';
      if (seconds < MIN_TOKEN_SECONDS) {
        return [fieldError.invalid(path, seconds, 'may not specify a duration less than 10 minutes')];
      }
      return seconds > MAX_TOKEN_SECONDS
        ? [fieldError.invalid(path, seconds, 'may not specify a duration larger than 2^32 seconds')]
        : [];
    },
  },
  columns: [],
};

/** Body of GET, PUT and PATCH on `WORKLOAD/NAME/scale`. */
export const scales: KindDefinition<Scale> = {
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  plural: 'scales',
  singular: 'scale',
  listKind: 'ScaleList',
  namespaced: true,
  verbs: ['get', 'patch', 'update'],
  schemaName: 'io.k8s.api.autoscaling.v1.Scale',
  storagePrefix: '',
  isComputed: true,
  strategy: {
    validate: (scale) => validateNonNegative(scale.spec?.replicas, 'spec.replicas'),
    validateUpdate: (scale) => validateNonNegative(scale.spec?.replicas, 'spec.replicas'),
  },
  columns: [
    nameColumn,
    column<Scale>('Desired', 'Number of desired replicas.', (scale) => scale.spec?.replicas ?? 0, { type: 'integer' }),
    column<Scale>('Available', 'Number of actual replicas.', (scale) => scale.status?.replicas ?? 0, {
      type: 'integer',
    }),
    ageColumn,
  ],
};
