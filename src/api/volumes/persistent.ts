/** The spec of persistent volumes. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePersistentVolumeSpec, pkg/apis/core/v1 defaults. */
import type { PersistentVolumeSpec } from 'kubernetes-types/core/v1';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNodeSelector } from '../podspec/placement.ts';
import { HOST_PATH_TYPES } from '../podspec/volumes.ts';
import { validateNoBacksteps, validateOneOf } from '../validation/scalars.ts';
import { validateAccessModes, validateClassName, validatePositiveQuantity, validateVolumeMode } from './access.ts';
import { validateDriverVolume } from './drivers.ts';

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

type Source = Pick<PersistentVolumeSpec, (typeof SOURCES)[number]>;

/** The one source of a volume, as it was given. */
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

/** `inline`: the volume is part of an attachment and has no life of its own. */
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
      ...validateOneOf(
        spec.persistentVolumeReclaimPolicy,
        ['Delete', 'Recycle', 'Retain'],
        `${path}.persistentVolumeReclaimPolicy`,
        false,
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
  errors.push(...validateClassName(spec.volumeAttributesClassName, `${path}.volumeAttributesClassName`));
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
  if (isSet(spec.persistentVolumeReclaimPolicy)) forbidden('persistentVolumeReclaimPolicy');
  if (isSet(spec.storageClassName)) forbidden('storageClassName');
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
    // Of several sources only the first is looked into.
    ...validateKnown({ [first]: spec[first] }, path),
    ...validateDriverVolume(first, spec[first] ?? {}, `${path}.${first}`),
    ...others.map((name) => fieldError.forbidden(`${path}.${name}`, 'may not specify more than 1 volume type')),
  ];
}

function validateKnown({ hostPath, local, nfs, csi }: PersistentVolumeSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const required = (value: string | undefined, at: string): boolean => {
    if (!isSet(value)) errors.push(fieldError.required(`${path}.${at}`));
    return isSet(value);
  };
  if (hostPath !== undefined && required(hostPath.path, 'hostPath.path')) {
    errors.push(...validateNoBacksteps(hostPath.path, `${path}.hostPath.path`));
    if (isSet(hostPath.type)) errors.push(...validateOneOf(hostPath.type, HOST_PATH_TYPES, `${path}.hostPath.type`));
  }
  if (local !== undefined && required(local.path, 'local.path')) {
    errors.push(...validateNoBacksteps(local.path, `${path}.local.path`));
  }
  if (nfs !== undefined) {
    required(nfs.server, 'nfs.server');
    if (required(nfs.path, 'nfs.path') && !nfs.path.startsWith('/')) {
      errors.push(fieldError.invalid(`${path}.nfs.path`, nfs.path, 'must be an absolute path'));
    }
  }
  if (csi !== undefined) {
    required(csi.driver, 'csi.driver');
    required(csi.volumeHandle, 'csi.volumeHandle');
  }
  return errors;
}
