/** Persistent volumes. Source: k8s.io/kubernetes/pkg/registry/core/persistentvolume, pkg/apis/core/validation. */
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { PersistentVolume, VolumeNodeAffinity } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import {
  accessModesText,
  attributesClassText,
  capacityText,
  storageClassText,
  volumeModeText,
} from '../../../volumes/access-modes.ts';
import { setVolumeSpecDefaults, sourceOf, validateVolumeSpec } from '../../../volumes/persistent.ts';

const { strategy, statusStrategy: statusBase } = specStatusStrategies<PersistentVolume>({
  generations: false,
  prepareForCreate(volume, { nowMs }) {
    Object.assign(volume, { status: { phase: 'Pending', lastPhaseTransitionTime: timestamp(nowMs) } });
  },
  validate: (volume) => validateVolumeSpec(volume.spec, 'spec'),
  validateUpdate,
});

function validateUpdate(volume: PersistentVolume, old: PersistentVolume): FieldError[] {
  const errors: FieldError[] = [];
  // The secret for volume expansion may be added later.
  const source = sourceOf(volume.spec);
  const before = sourceOf(old.spec);
  const added = source.csi?.controllerExpandSecretRef;
  if (before.csi !== undefined && before.csi.controllerExpandSecretRef === undefined && added !== undefined) {
    before.csi = { ...before.csi, controllerExpandSecretRef: added };
  }
  if (!semanticEqual(source, before)) {
    errors.push(
      fieldError.forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'),
    );
  }
  errors.push(...validateImmutable(volume.spec?.volumeMode, old.spec?.volumeMode, 'volumeMode'));
  if (old.spec?.nodeAffinity !== undefined) {
    const now = volume.spec?.nodeAffinity;
    if (!semanticEqual(now, old.spec.nodeAffinity) && !semanticEqual(now, withGaLabels(old.spec.nodeAffinity))) {
      const why = 'field is immutable, except for updating from beta label to GA';
      errors.push(fieldError.invalid('nodeAffinity', now, why));
    }
  }
  if (old.spec?.volumeAttributesClassName !== undefined && volume.spec?.volumeAttributesClassName === undefined) {
    const path = 'spec.volumeAttributesClassName';
    errors.push(fieldError.forbidden(path, 'update from non-nil value to nil is forbidden'));
  }
  return errors;
}

/** Beta node labels and their stable names. */
const GA_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'kubernetes.io/arch',
  'beta.kubernetes.io/instance-type': 'node.kubernetes.io/instance-type',
  'beta.kubernetes.io/os': 'kubernetes.io/os',
  'failure-domain.beta.kubernetes.io/region': 'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone': 'topology.kubernetes.io/zone',
};

function withGaLabels({ required }: VolumeNodeAffinity): VolumeNodeAffinity {
  if (required === undefined) return {};
  const nodeSelectorTerms = required.nodeSelectorTerms.map(({ matchExpressions, ...rest }) => ({
    ...rest,
    ...(matchExpressions === undefined
      ? {}
      : { matchExpressions: matchExpressions.map((each) => ({ ...each, key: GA_LABELS[each.key] ?? each.key })) }),
  }));
  return { required: { nodeSelectorTerms } };
}

function claimText(volume: PersistentVolume): string {
  const claim = volume.spec?.claimRef;
  return claim === undefined ? '' : `${claim.namespace ?? ''}/${claim.name ?? ''}`;
}

export const persistentVolumes: KindDefinition<PersistentVolume> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  singular: 'persistentvolume',
  listKind: 'PersistentVolumeList',
  namespaced: false,
  shortNames: ['pv'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.PersistentVolume',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: true,
  storagePrefix: 'persistentvolumes',
  setDefaults(volume) {
    volume.spec ??= {};
    setVolumeSpecDefaults(volume.spec);
    if (!isSet(volume.status?.phase)) Object.assign(volume, { status: { ...volume.status, phase: 'Pending' } });
  },
  strategy,
  statusStrategy: {
    ...statusBase,
    prepareForUpdate(volume, old, context) {
      statusBase.prepareForUpdate?.(volume, old, context);
      const status = volume.status;
      if (status === undefined) return;
      if (
        status.phase !== old.status?.phase &&
        status.lastPhaseTransitionTime === old.status?.lastPhaseTransitionTime
      ) {
        status.lastPhaseTransitionTime = timestamp(context.nowMs);
      }
    },
  },
  columns: [
    nameColumn,
    column<PersistentVolume>('Capacity', 'The size of the volume.', (volume) => capacityText(volume.spec?.capacity)),
    column<PersistentVolume>('Access Modes', 'Access modes of the volume.', (volume) =>
      accessModesText(volume.spec?.accessModes),
    ),
    column<PersistentVolume>(
      'Reclaim Policy',
      'Handling of the volume after the deletion of its claim.',
      (volume) => volume.spec?.persistentVolumeReclaimPolicy ?? '',
    ),
    column<PersistentVolume>('Status', 'The phase of the volume.', (volume) =>
      volume.metadata?.deletionTimestamp === undefined ? (volume.status?.phase ?? '') : 'Terminating',
    ),
    column<PersistentVolume>('Claim', 'The claim that the volume is bound to.', claimText),
    column<PersistentVolume>('StorageClass', 'The storage class of the volume.', storageClassText),
    column<PersistentVolume>(
      'VolumeAttributesClass',
      'The volume attributes class of the volume.',
      attributesClassText,
    ),
    column<PersistentVolume>('Reason', 'Reason of the phase.', (volume) => volume.status?.reason ?? ''),
    ageColumn,
    column<PersistentVolume>(
      'VolumeMode',
      'Whether the volume is a file system or a block device.',
      (volume) => volumeModeText(volume.spec?.volumeMode),
      { wide: true },
    ),
  ],
};
