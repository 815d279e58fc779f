/**
 * Persistent volume claims. Source: k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim,
 * pkg/apis/core/validation.
 */

import { compareQuantity, tryParseQuantity } from '../../../../base/quantity.ts';
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateOneOf } from '../../../validation/scalars.ts';
import {
  accessModesText,
  attributesClassText,
  capacityText,
  storageClassText,
  volumeModeText,
} from '../../../volumes/access-modes.ts';
import {
  alignDataSources,
  dropUnsupportedSources,
  setClaimDefaults,
  validateClaimSpec,
} from '../../../volumes/claim.ts';
import { claimWarnings } from '../../../volumes/warnings.ts';

type Claim = PersistentVolumeClaim;

const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

const { strategy, statusStrategy } = specStatusStrategies<Claim>({
  generations: false,
  initialStatus: () => ({ phase: 'Pending' }),
  prepareForCreate(claim) {
    dropUnsupportedSources(claim.spec);
    alignDataSources(claim.spec);
  },
  prepareForUpdate(claim, old) {
    // Clients that predate dataSourceRef know dataSource only, so both fields are aligned if the stored object has
    // either.
    if (old.spec?.dataSource !== undefined || old.spec?.dataSourceRef !== undefined) alignDataSources(claim.spec);
    else dropUnsupportedSources(claim.spec);
  },
  validate: (claim) => validateClaimSpec(claim.spec, 'spec'),
  validateUpdate,
  validateStatusUpdate,
  warnings(claim) {
    const beta = claim.metadata?.annotations?.[CLASS_ANNOTATION] !== undefined;
    const why = `deprecated since v1.8; use "storageClassName" attribute instead`;
    return [
      ...(beta ? [`metadata.annotations[${CLASS_ANNOTATION}]: ${why}`] : []),
      ...claimWarnings(claim.spec, 'spec'),
    ];
  },
});

function validateStatusUpdate(claim: Claim): FieldError[] {
  const { capacity, allocatedResources, allocatedResourceStatuses } = claim.status ?? {};
  const amounts = [
    ['status.capacity', capacity],
    ['status.allocatedResources', allocatedResources],
  ] as const;
  return [
    ...amounts.flatMap(([path, all]) =>
      Object.entries(all ?? {}).flatMap(([name, amount]) => {
        const quantity = tryParseQuantity(amount);
        const wrong = quantity === undefined || quantity.nanos < 0n;
        return wrong ? [fieldError.invalid(`${path}[${name}]`, amount, 'must be a valid resource quantity')] : [];
      }),
    ),
    ...Object.entries(allocatedResourceStatuses ?? {}).flatMap(([name, status]) =>
      validateOneOf(status, RESIZE_STATUSES, `status.allocatedResourceStatus[${name}]`),
    ),
  ];
}

const RESIZE_STATUSES = [
  'ControllerResizeInProgress',
  'ControllerResizeInfeasible',
  'NodeResizePending',
  'NodeResizeInProgress',
  'NodeResizeInfeasible',
];

/**
 * The spec without the fields that may change. A bound claim may also change its requested storage and attributes
 * class.
 */
function fixed(spec: PersistentVolumeClaimSpec | undefined, bound: boolean): unknown {
  const { resources, volumeAttributesClassName, volumeMode: _mode, ...rest } = spec ?? {};
  const { requests, ...limits } = resources ?? {};
  const { storage: _storage, ...others } = requests ?? {};
  return bound
    ? { ...rest, resources: { ...limits, requests: others } }
    : { ...rest, resources, volumeAttributesClassName };
}

function validateUpdate(claim: Claim, old: Claim): FieldError[] {
  const errors: FieldError[] = [];
  const bound = old.status?.phase === 'Bound';
  const spec = claim.spec;
  const before = { ...old.spec };
  const annotation = old.metadata?.annotations?.[CLASS_ANNOTATION];
  if (annotation !== undefined) {
    const path = `metadata.annotations[${CLASS_ANNOTATION}]`;
    errors.push(...validateImmutable(claim.metadata?.annotations?.[CLASS_ANNOTATION] ?? '', annotation, path));
  }
  // Binding sets volumeName once. A claim without a class may get one, unless its annotation names a different class.
  if ((before.volumeName ?? '') === '' && spec?.volumeName !== undefined) before.volumeName = spec.volumeName;
  if (before.storageClassName === undefined && spec?.storageClassName !== undefined) {
    if (annotation === undefined || annotation === spec.storageClassName) {
      before.storageClassName = spec.storageClassName;
    }
  }
  if (!semanticEqual(fixed(spec, bound), fixed(before, bound))) {
    errors.push(
      fieldError.forbidden(
        'spec',
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ),
    );
  }
  errors.push(...validateGrowth(claim, old));
  errors.push(...validateImmutable(spec?.volumeMode, old.spec?.volumeMode, 'volumeMode'));
  const path = 'spec.volumeAttributesClassName';
  const [attributes, had] = [spec?.volumeAttributesClassName, old.spec?.volumeAttributesClassName];
  if (had !== undefined && attributes === undefined) {
    errors.push(fieldError.forbidden(path, 'update from non-nil value to nil is forbidden'));
  } else if (isSet(had) && attributes === '') {
    errors.push(fieldError.forbidden(path, 'update from non-nil value to an empty string is forbidden'));
  }
  return errors;
}

/** The storage request may grow. It may shrink again, but must stay above the capacity that is already provisioned. */
function validateGrowth(claim: Claim, old: Claim): FieldError[] {
  const wanted = tryParseQuantity(claim.spec?.resources?.requests?.['storage']);
  const given = tryParseQuantity(old.status?.capacity?.['storage'] ?? '0');
  const before = tryParseQuantity(old.spec?.resources?.requests?.['storage']);
  if (wanted === undefined || given === undefined || before === undefined) return [];
  const shrinks = compareQuantity(wanted, before) < 0;
  return shrinks && compareQuantity(wanted, given) <= 0
    ? [fieldError.forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity')]
    : [];
}

const isBoundTo = (claim: Claim): boolean => (claim.spec?.volumeName ?? '') !== '';

export const persistentVolumeClaims: KindDefinition<Claim> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  listKind: 'PersistentVolumeClaimList',
  namespaced: true,
  shortNames: ['pvc'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.PersistentVolumeClaim',
  skeleton: { spec: { resources: {} }, status: {} },
  returnsDeleted: true,
  storagePrefix: 'persistentvolumeclaims',
  setDefaults: setClaimDefaults,
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Claim>('Status', 'The phase of the claim.', (claim) =>
      claim.metadata?.deletionTimestamp === undefined ? (claim.status?.phase ?? '') : 'Terminating',
    ),
    column<Claim>('Volume', 'The volume that the claim is bound to.', (claim) => claim.spec?.volumeName ?? ''),
    column<Claim>('Capacity', 'The size of the volume.', (claim) =>
      isBoundTo(claim) ? capacityText(claim.status?.capacity) : '',
    ),
    column<Claim>('Access Modes', 'Access modes of the volume.', (claim) =>
      isBoundTo(claim) ? accessModesText(claim.status?.accessModes) : '',
    ),
    column<Claim>('StorageClass', 'The storage class of the claim.', storageClassText),
    column<Claim>('VolumeAttributesClass', 'The volume attributes class of the claim.', attributesClassText),
    ageColumn,
    column<Claim>(
      'VolumeMode',
      'Whether the volume is a file system or a block device.',
      (claim) => volumeModeText(claim.spec?.volumeMode),
      { wide: true },
    ),
  ],
};
