/**
 * Defaults and validation of the spec of persistent volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * ValidatePersistentVolumeSpec, pkg/apis/core/v1 defaults.
 */

import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../base/names.ts';
import type { PersistentVolumeSpec } from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import { validateHostPath, validateNfs } from '../podspec/volumes.ts';
import { validateDriverName } from '../validation/csi.ts';
import { validateNameRule, validateNoBacksteps, validateOptionalOneOf } from '../validation/scalars.ts';
import {
  validateAccessModes,
  validateClassName,
  validatePositiveQuantity,
  validateVolumeMode,
} from './access-modes.ts';
import { PATH_OF_ERRORS, PATH_OF_SECOND, validateDriverVolume } from './drivers.ts';

const SOURCES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'glusterfs',
  'flocker',
  'nfs',
  'rbd',
  'quobyte',
  'cephfs',
  'iscsi',
  'cinder',
  'fc',
  'flexVolume',
  'azureFile',
  'vsphereVolume',
  'photonPersistentDisk',
  'portworxVolume',
  'azureDisk',
  'scaleIO',
  'local',
  'storageos',
  'csi',
] as const;

const SECRETS = [
  'controllerPublishSecretRef',
  'controllerExpandSecretRef',
  'nodePublishSecretRef',
  'nodeExpandSecretRef',
] as const;

type Source = Pick<PersistentVolumeSpec, (typeof SOURCES)[number]>;

/** The volume sources that are set. */
export function sourceOf(spec: PersistentVolumeSpec | undefined): Source {
  return Object.fromEntries(SOURCES.filter((name) => spec?.[name] !== undefined).map((name) => [name, spec?.[name]]));
}

export function setVolumeSpecDefaults(spec: PersistentVolumeSpec): void {
  if (!isSet(spec.persistentVolumeReclaimPolicy)) spec.persistentVolumeReclaimPolicy = 'Retain';
  spec.volumeMode ??= 'Filesystem';
  if (spec.hostPath !== undefined) spec.hostPath.type ??= '';
  if (spec.iscsi !== undefined && !isSet(spec.iscsi.iscsiInterface)) spec.iscsi.iscsiInterface = 'default';
  if (spec.rbd !== undefined) {
    if (!isSet(spec.rbd.pool)) spec.rbd.pool = 'rbd';
    if (!isSet(spec.rbd.user)) spec.rbd.user = 'admin';
    if (!isSet(spec.rbd.keyring)) spec.rbd.keyring = '/etc/ceph/keyring';
  }
  if (spec.azureDisk !== undefined) {
    spec.azureDisk.cachingMode ??= 'ReadWrite';
    spec.azureDisk.kind ??= 'Shared';
    spec.azureDisk.fsType ??= 'ext4';
    spec.azureDisk.readOnly ??= false;
  }
  if (spec.scaleIO !== undefined) {
    if (!isSet(spec.scaleIO.storageMode)) spec.scaleIO.storageMode = 'ThinProvisioned';
    if (!isSet(spec.scaleIO.fsType)) spec.scaleIO.fsType = 'xfs';
  }
}

/** Validates the spec of a volume. `inline`: the spec is part of a VolumeAttachment. */
export function validateVolumeSpec(
  given: PersistentVolumeSpec | undefined,
  path: string,
  inline = false,
): FieldError[] {
  const spec = given ?? {};
  const errors: FieldError[] = [];
  if (inline) errors.push(...validateInline(spec, path));
  if ((spec.accessModes ?? []).length === 0) errors.push(fieldError.required(`${path}.accessModes`));
  errors.push(...validateAccessModes(spec.accessModes, `${path}.accessModes`));
  if (!inline) {
    errors.push(...validateCapacity(spec.capacity, `${path}.capacity`));
    errors.push(
      ...validateOptionalOneOf(
        spec.persistentVolumeReclaimPolicy,
        ['Delete', 'Recycle', 'Retain'],
        `${path}.persistentVolumeReclaimPolicy`,
      ),
    );
  }
  const required = spec.nodeAffinity?.required;
  if (spec.nodeAffinity !== undefined) {
    if (required === undefined) {
      errors.push(fieldError.required(`${path}.nodeAffinity.required`, 'must specify required node constraints'));
    } else errors.push(...validateNodeSelector(required, `${path}.nodeAffinity.required`));
  }
  errors.push(...validateSources(spec, path));
  if (spec.local !== undefined && required === undefined) {
    errors.push(fieldError.required(`${path}.nodeAffinity`, 'Local volume requires node affinity'));
  }
  if (!inline) errors.push(...validateRest(spec, path));
  return errors;
}

function validateRest(spec: PersistentVolumeSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.persistentVolumeReclaimPolicy === 'Recycle' && /^\/+$/.test(spec.hostPath?.path ?? '')) {
    errors.push(
      fieldError.forbidden(`${path}.persistentVolumeReclaimPolicy`, "may not be 'recycle' for a hostPath mount of '/'"),
    );
  }
  errors.push(...validateClassName(spec.storageClassName, `${path}.storageClassName`));
  errors.push(...validateVolumeMode(spec.volumeMode, `${path}.volumeMode`));
  const attributes = spec.volumeAttributesClassName;
  if (attributes === undefined) return errors;
  const at = `${path}.volumeAttributesClassName`;
  if (attributes === '') return [...errors, fieldError.required(at, 'an empty string is disallowed')];
  errors.push(...validateClassName(attributes, at));
  if (spec.csi === undefined) {
    errors.push(fieldError.required(`${path}.csi`, 'has to be specified when using volumeAttributesClassName'));
  }
  return errors;
}

function validateInline(spec: PersistentVolumeSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const forbidden = (field: keyof PersistentVolumeSpec): void => {
    errors.push(fieldError.forbidden(`${path}.${field}`, 'may not be specified in the context of inline volumes'));
  };
  if (spec.claimRef !== undefined) forbidden('claimRef');
  if (Object.keys(spec.capacity ?? {}).length > 0) forbidden('capacity');
  if (spec.csi === undefined)
    errors.push(fieldError.required(`${path}.csi`, 'has to be specified in the context of inline volumes'));
  const policy = spec.persistentVolumeReclaimPolicy;
  if (isSet(policy) && policy !== 'Retain') {
    const why = 'may only be Retain in the context of inline volumes';
    errors.push(fieldError.forbidden(`${path}.persistentVolumeReclaimPolicy`, why));
  }
  if (isSet(spec.storageClassName)) forbidden('storageClassName');
  if (spec.nodeAffinity !== undefined) forbidden('nodeAffinity');
  if (isSet(spec.volumeMode) && spec.volumeMode !== 'Filesystem') {
    const why = 'may not specify volumeMode other than Filesystem in the context of inline volumes';
    errors.push(fieldError.forbidden(`${path}.volumeMode`, why));
  }
  return errors;
}

function validateCapacity(capacity: Readonly<Record<string, string>> | undefined, path: string): FieldError[] {
  const amounts = Object.entries(capacity ?? {});
  const errors: FieldError[] = [];
  if (amounts.length === 0) errors.push(fieldError.required(path));
  if (amounts.length !== 1 || capacity?.['storage'] === undefined) {
    errors.push(fieldError.notSupported(path, capacity ?? {}, ['storage']));
  }
  for (const [name, amount] of amounts) errors.push(...validatePositiveQuantity(amount, `${path}[${name}]`));
  return errors;
}

function validateSources(spec: PersistentVolumeSpec, path: string): FieldError[] {
  const [first, ...others] = SOURCES.filter((name) => spec[name] !== undefined);
  if (first === undefined) return [fieldError.required(path, 'must specify a volume type')];
  return [
    // If several sources are set, only the first one is validated.
    ...validateKnown({ [first]: spec[first] }, path),
    ...validateDriverVolume(first, spec[first] ?? {}, `${path}.${PATH_OF_ERRORS[first] ?? first}`, {
      persistent: true,
    }),
    ...others.map((name) =>
      fieldError.forbidden(`${path}.${PATH_OF_SECOND[name] ?? name}`, 'may not specify more than 1 volume type'),
    ),
  ];
}

function validateKnown({ hostPath, local, nfs, csi }: PersistentVolumeSpec, path: string): FieldError[] {
  return [
    ...(hostPath === undefined ? [] : validateHostPath(hostPath, `${path}.hostPath`)),
    ...(local === undefined ? [] : validateLocal(local.path, `${path}.local.path`)),
    ...(nfs === undefined ? [] : validateNfs(nfs, `${path}.nfs`)),
    ...(csi === undefined ? [] : validateCsi(csi, `${path}.csi`)),
  ];
}

const validateLocal = (path: string, at: string): FieldError[] =>
  isSet(path) ? validateNoBacksteps(path, at) : [fieldError.required(at)];

function validateCsi(csi: NonNullable<PersistentVolumeSpec['csi']>, path: string): FieldError[] {
  return [
    ...validateDriverName(csi.driver ?? '', `${path}.driver`),
    ...(isSet(csi.volumeHandle) ? [] : [fieldError.required(`${path}.volumeHandle`)]),
    ...SECRETS.flatMap((field) => {
      const secret = csi[field];
      if (secret === undefined) return [];
      const at = `${path}.${field}`;
      return [
        ...(isSet(secret.name)
          ? validateNameRule(secret.name, dns1123SubdomainErrors, `${at}.name`)
          : [fieldError.required(`${at}.name`)]),
        ...(isSet(secret.namespace)
          ? validateNameRule(secret.namespace, dns1123LabelErrors, `${at}.namespace`)
          : [fieldError.required(`${at}.namespace`)]),
      ];
    }),
  ];
}
