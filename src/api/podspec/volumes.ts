/** Validation of volumes and their mounts. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateVolumes, ValidateVolumeMounts. */
import type {
  DownwardAPIVolumeFile,
  KeyToPath,
  Volume,
  VolumeDevice,
  VolumeMount,
  VolumeProjection,
} from 'kubernetes-types/core/v1';
import { dns1123LabelErrors } from '../../base/names.ts';
import { tryParseQuantity } from '../../base/quantity.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateLocalPath, validateNameRule, validateNoBacksteps, validateOneOf } from '../validation/scalars.ts';
import { validateDriverVolume } from '../volumes/drivers.ts';
import { VOLUME_FIELD_PATHS, validateFieldRef, validateResourceFieldRef } from './env.ts';

/** Returns the errors; the names of all volumes without any are put into `names`. */
export function validateVolumes(
  volumes: readonly Volume[] | undefined,
  path: string,
  names: Set<string>,
): FieldError[] {
  const errors: FieldError[] = [];
  (volumes ?? []).forEach((volume, index) => {
    const at = `${path}[${index}]`;
    const before = errors.length;
    errors.push(...validateSource(volume, at));
    if (!isSet(volume.name)) errors.push(fieldError.required(`${at}.name`));
    else errors.push(...validateNameRule(volume.name, dns1123LabelErrors, `${at}.name`));
    if (isSet(volume.name) && names.has(volume.name)) errors.push(fieldError.duplicate(`${at}.name`, volume.name));
    // What is wrong in itself cannot be mounted.
    if (errors.length === before) names.add(volume.name);
  });
  return errors;
}

export const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

function validateSource(volume: Volume, path: string): FieldError[] {
  const errors: FieldError[] = [];
  let sources = 0;
  for (const field of Object.keys(volume)) {
    if (field === 'name') continue;
    sources++;
    if (sources > 1) {
      errors.push(fieldError.forbidden(`${path}.${field}`, 'may not specify more than 1 volume type'));
      continue;
    }
    errors.push(
      ...validateKnownSource({ name: volume.name, [field]: volume[field as keyof Volume] }, `${path}.${field}`),
    );
    errors.push(...validateDriverVolume(field, volume[field as keyof Volume] as object, `${path}.${field}`));
  }
  if (sources === 0) errors.push(fieldError.required(path, 'must specify a volume type'));
  return errors;
}

function validateKnownSource(volume: Volume, at: string): FieldError[] {
  if (volume.emptyDir !== undefined) return validateEmptyDir(volume.emptyDir, at);
  if (volume.hostPath !== undefined) {
    const { path, type } = volume.hostPath;
    if (!isSet(path)) return [fieldError.required(`${at}.path`)];
    return [
      ...validateNoBacksteps(path, `${at}.path`),
      ...(isSet(type) ? validateOneOf(type, HOST_PATH_TYPES, `${at}.type`) : []),
    ];
  }
  if (volume.secret !== undefined) {
    return [
      ...(isSet(volume.secret.secretName) ? [] : [fieldError.required(`${at}.secretName`)]),
      ...validateMode(volume.secret.defaultMode, `${at}.defaultMode`),
      ...validateItems(volume.secret.items, `${at}.items`),
    ];
  }
  if (volume.configMap !== undefined) {
    return [
      ...(isSet(volume.configMap.name) ? [] : [fieldError.required(`${at}.name`)]),
      ...validateMode(volume.configMap.defaultMode, `${at}.defaultMode`),
      ...validateItems(volume.configMap.items, `${at}.items`),
    ];
  }
  if (volume.downwardAPI !== undefined) {
    return [
      ...validateMode(volume.downwardAPI.defaultMode, `${at}.defaultMode`),
      ...validateDownwardItems(volume.downwardAPI.items, `${at}.items`),
    ];
  }
  if (volume.projected !== undefined) {
    return [
      ...validateMode(volume.projected.defaultMode, `${at}.defaultMode`),
      ...validateProjections(volume.projected.sources, `${at}.sources`),
    ];
  }
  if (volume.persistentVolumeClaim !== undefined) {
    return isSet(volume.persistentVolumeClaim.claimName) ? [] : [fieldError.required(`${at}.claimName`)];
  }
  if (volume.nfs !== undefined) {
    const { path, server } = volume.nfs;
    return [
      ...(isSet(server) ? [] : [fieldError.required(`${at}.server`)]),
      ...(isSet(path) ? [] : [fieldError.required(`${at}.path`)]),
      ...(isSet(path) && !path.startsWith('/')
        ? [fieldError.invalid(`${at}.path`, path, 'must be an absolute path')]
        : []),
    ];
  }
  if (volume.csi !== undefined) return isSet(volume.csi.driver) ? [] : [fieldError.required(`${at}.driver`)];
  if (volume.ephemeral !== undefined) {
    return volume.ephemeral.volumeClaimTemplate === undefined ? [fieldError.required(`${at}.volumeClaimTemplate`)] : [];
  }
  return [];
}

function validateEmptyDir(source: NonNullable<Volume['emptyDir']>, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const size = source.sizeLimit === undefined ? undefined : tryParseQuantity(source.sizeLimit);
  if (size !== undefined && size.nanos < 0n) {
    errors.push(fieldError.forbidden(`${at}.sizeLimit`, 'SizeLimit field must be a valid resource quantity'));
  }
  return errors;
}

function validateMode(mode: number | undefined, path: string): FieldError[] {
  return mode !== undefined && (mode > 0o777 || mode < 0)
    ? [fieldError.invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
    : [];
}

function validateItems(items: readonly KeyToPath[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (items ?? []).forEach((item, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(item.key)) errors.push(fieldError.required(`${at}.key`));
    if (!isSet(item.path)) errors.push(fieldError.required(`${at}.path`));
    else errors.push(...validateVolumePath(item.path, `${at}.path`));
    errors.push(...validateMode(item.mode, `${at}.mode`));
  });
  return errors;
}

/** A file's place in a volume: relative, not up, and not a name the atomic writer uses. */
function validateVolumePath(path: string, at: string): FieldError[] {
  const errors = validateLocalPath(path, at);
  if (path.startsWith('..') && !path.startsWith('../') && path !== '..') {
    errors.push(fieldError.invalid(at, path, "must not start with '..'"));
  }
  return errors;
}

function validateDownwardItems(items: readonly DownwardAPIVolumeFile[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (items ?? []).forEach((item, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(item.path)) errors.push(fieldError.required(`${at}.path`));
    else errors.push(...validateVolumePath(item.path, `${at}.path`));
    if (item.fieldRef !== undefined) {
      errors.push(...validateFieldRef(item.fieldRef, VOLUME_FIELD_PATHS, `${at}.fieldRef`));
      if (item.resourceFieldRef !== undefined) {
        errors.push(
          fieldError.invalid(at, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously'),
        );
      }
    } else if (item.resourceFieldRef !== undefined) {
      errors.push(...validateResourceFieldRef(item.resourceFieldRef, `${at}.resourceFieldRef`, true));
    } else {
      errors.push(fieldError.required(at, 'one of fieldRef and resourceFieldRef is required'));
    }
    errors.push(...validateMode(item.mode, `${at}.mode`));
  });
  return errors;
}

/** The shortest life of a projected token, ten minutes, and the longest, 2^32 seconds. */
const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;

function validateProjections(sources: readonly VolumeProjection[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const taken = new Set<string>();
  const claim = (target: string, at: string): void => {
    if (taken.has(target)) errors.push(fieldError.invalid(at, target, 'conflicting duplicate paths'));
    taken.add(target);
  };
  (sources ?? []).forEach((source, index) => {
    const at = `${path}[${index}]`;
    const kinds = Object.keys(source);
    if (kinds.length === 0) errors.push(fieldError.required(at, 'no configured projection'));
    for (const extra of kinds.slice(1)) {
      errors.push(fieldError.forbidden(`${at}.${extra}`, 'may not specify more than 1 volume type per source'));
    }
    for (const field of ['secret', 'configMap'] as const) {
      const projection = source[field];
      if (projection === undefined) continue;
      if (!isSet(projection.name)) errors.push(fieldError.required(`${at}.${field}.name`));
      errors.push(...validateItems(projection.items, `${at}.${field}.items`));
      for (const item of projection.items ?? []) if (isSet(item.path)) claim(item.path, `${at}.${field}`);
    }
    if (source.downwardAPI !== undefined) {
      errors.push(...validateDownwardItems(source.downwardAPI.items, `${at}.downwardAPI.items`));
      for (const item of source.downwardAPI.items ?? []) if (isSet(item.path)) claim(item.path, `${at}.downwardAPI`);
    }
    const token = source.serviceAccountToken;
    if (token !== undefined) {
      const seconds = token.expirationSeconds ?? 3600;
      if (seconds < MIN_TOKEN_SECONDS) {
        errors.push(
          fieldError.invalid(
            `${at}.serviceAccountToken.expirationSeconds`,
            seconds,
            'may not specify a duration less than 10 minutes',
          ),
        );
      }
      if (seconds > MAX_TOKEN_SECONDS) {
        errors.push(
          fieldError.invalid(
            `${at}.serviceAccountToken.expirationSeconds`,
            seconds,
            'may not specify a duration larger than 2^32 seconds',
          ),
        );
      }
      if (!isSet(token.path)) errors.push(fieldError.required(`${at}.serviceAccountToken.path`));
      else {
        errors.push(...validateVolumePath(token.path, `${at}.serviceAccountToken.path`));
        claim(token.path, `${at}.serviceAccountToken`);
      }
    }
  });
  return errors;
}

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];

export function validateVolumeMounts(
  mounts: readonly VolumeMount[] | undefined,
  volumes: ReadonlySet<string>,
  path: string,
  privileged: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const points = new Set<string>();
  (mounts ?? []).forEach((mount, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(mount.name)) errors.push(fieldError.required(`${at}.name`));
    if (!volumes.has(mount.name ?? '')) errors.push(fieldError.notFound(`${at}.name`, mount.name ?? ''));
    if (!isSet(mount.mountPath)) errors.push(fieldError.required(`${at}.mountPath`));
    else if (points.has(mount.mountPath)) {
      errors.push(fieldError.invalid(`${at}.mountPath`, mount.mountPath, 'must be unique'));
    } else points.add(mount.mountPath);
    if (isSet(mount.subPath)) errors.push(...validateLocalPath(mount.subPath, `${at}.subPath`));
    if (isSet(mount.subPathExpr)) {
      if (isSet(mount.subPath)) {
        errors.push(
          fieldError.invalid(`${at}.subPathExpr`, mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive'),
        );
      }
      errors.push(...validateLocalPath(mount.subPathExpr, `${at}.subPathExpr`));
    }
    if (mount.mountPropagation !== undefined) {
      errors.push(...validateOneOf(mount.mountPropagation, PROPAGATIONS, `${path}.mountPropagation`, false));
      if (mount.mountPropagation === 'Bidirectional' && !privileged) {
        errors.push(
          fieldError.forbidden(
            `${path}.mountPropagation`,
            'Bidirectional mount propagation is available only to privileged containers',
          ),
        );
      }
    }
  });
  return errors;
}

export function validateVolumeDevices(
  devices: readonly VolumeDevice[] | undefined,
  volumes: ReadonlySet<string>,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  (devices ?? []).forEach((device, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(device.name)) errors.push(fieldError.required(`${at}.name`));
    else if (!volumes.has(device.name)) errors.push(fieldError.notFound(`${at}.name`, device.name));
    if (!isSet(device.devicePath)) errors.push(fieldError.required(`${at}.devicePath`));
    else {
      if (seen.has(device.devicePath)) {
        errors.push(fieldError.invalid(`${at}.devicePath`, device.devicePath, 'must be unique'));
      }
      seen.add(device.devicePath);
      errors.push(...validateNoBacksteps(device.devicePath, `${at}.devicePath`));
    }
  });
  return errors;
}
