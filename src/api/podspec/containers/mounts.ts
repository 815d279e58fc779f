/**
 * Validation of volume mounts and volume devices. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * ValidateVolumeMounts, ValidateVolumeDevices.
 */
import type { Container, EphemeralContainer, VolumeDevice, VolumeMount } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { validateLocalPath, validateNoBacksteps, validateOptionalOneOf } from '../../validation/scalars.ts';
import type { Volumes } from '../volumes.ts';

const PROPAGATIONS = ['Bidirectional', 'HostToContainer', 'None'];
const RECURSIVELY = ['Disabled', 'Enabled', 'IfPossible'];

/** Validates volume mounts. As upstream, some errors have the path of the list instead of the path of the mount. */
export function validateVolumeMounts(
  container: Container | EphemeralContainer,
  volumes: Volumes,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const points = new Set<string>();
  const devices = new Set((container.volumeDevices ?? []).map((device) => device.name ?? ''));
  const devicePaths = new Set((container.volumeDevices ?? []).map((device) => device.devicePath ?? ''));
  const privileged = container.securityContext?.privileged === true;
  (container.volumeMounts ?? []).forEach((mount, index) => {
    const at = `${path}[${index}]`;
    const name = mount.name ?? '';
    const point = mount.mountPath ?? '';
    if (name === '') errors.push(fieldError.required(`${at}.name`));
    if (!volumes.has(name)) errors.push(fieldError.notFound(`${at}.name`, name));
    if (point === '') errors.push(fieldError.required(`${at}.mountPath`));
    if (points.has(point)) errors.push(fieldError.invalid(`${at}.mountPath`, point, 'must be unique'));
    points.add(point);
    if (devices.has(name)) {
      errors.push(fieldError.invalid(`${at}.name`, name, 'must not already exist in volumeDevices'));
    }
    if (devicePaths.has(point)) {
      errors.push(fieldError.invalid(`${at}.mountPath`, point, 'must not already exist as a path in volumeDevices'));
    }
    if (isSet(mount.subPath)) errors.push(...validateLocalPath(mount.subPath, `${path}.subPath`));
    if (isSet(mount.subPathExpr)) {
      if (isSet(mount.subPath)) {
        errors.push(
          fieldError.invalid(`${at}.subPathExpr`, mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive'),
        );
      }
      errors.push(...validateLocalPath(mount.subPathExpr, `${path}.subPathExpr`));
    }
    errors.push(...validatePropagation(mount, privileged, `${path}.mountPropagation`));
    errors.push(...validateRecursion(mount, `${path}.recursiveReadOnly`));
  });
  return errors;
}

function validatePropagation({ mountPropagation: mode }: VolumeMount, privileged: boolean, at: string): FieldError[] {
  const errors = validateOptionalOneOf(mode, PROPAGATIONS, at);
  if (mode === 'Bidirectional' && !privileged) {
    const why = 'Bidirectional mount propagation is available only to privileged containers';
    errors.push(fieldError.forbidden(at, why));
  }
  return errors;
}

function validateRecursion(mount: VolumeMount, at: string): FieldError[] {
  const mode = mount.recursiveReadOnly;
  if (mode === undefined || mode === 'Disabled') return [];
  const errors = validateOptionalOneOf(mode, RECURSIVELY, at);
  if (errors.length > 0) return errors;
  if (mount.readOnly !== true) {
    errors.push(fieldError.forbidden(at, 'may only be specified when readOnly is true'));
  }
  if (mount.mountPropagation !== undefined && mount.mountPropagation !== 'None') {
    errors.push(fieldError.forbidden(at, 'may only be specified when mountPropagation is None or not specified'));
  }
  return errors;
}

export function validateVolumeDevices(
  container: Container | EphemeralContainer,
  volumes: Volumes,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set<string>();
  const paths = new Set<string>();
  const mounts = new Set((container.volumeMounts ?? []).map((mount) => mount.name ?? ''));
  const points = new Set((container.volumeMounts ?? []).map((mount) => mount.mountPath ?? ''));
  ((container.volumeDevices ?? []) as VolumeDevice[]).forEach((device, index) => {
    const at = `${path}[${index}]`;
    const name = device.name ?? '';
    const target = device.devicePath ?? '';
    const wrong = (field: 'devicePath' | 'name', why: string): void => {
      errors.push(fieldError.invalid(`${at}.${field}`, field === 'name' ? name : target, why));
    };
    const volume = volumes.get(name);
    if (name === '') errors.push(fieldError.required(`${at}.name`));
    if (names.has(name)) wrong('name', 'must be unique');
    if (volume === undefined) errors.push(fieldError.notFound(`${at}.name`, name));
    else if (volume.persistentVolumeClaim === undefined && volume.ephemeral === undefined) {
      wrong('name', 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode');
    }
    if (target === '') errors.push(fieldError.required(`${at}.devicePath`));
    if (paths.has(target)) wrong('devicePath', 'must be unique');
    if (validateNoBacksteps(target, at).length > 0) wrong('devicePath', "can not contain backsteps ('..')");
    else paths.add(target);
    if (mounts.has(name)) wrong('name', 'must not already exist in volumeMounts');
    if (points.has(target)) wrong('devicePath', 'must not already exist as a path in volumeMounts');
    if (name !== '') names.add(name);
  });
  return errors;
}
