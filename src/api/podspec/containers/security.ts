/**
 * Validation of security contexts. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateSecurityContext,
 * validatePodSpecSecurityContext.
 */
import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet, utf8Length } from '../../meta/validation.ts';
import { validateLocalPath, validateOneOf, validateOptionalOneOf } from '../../validation/scalars.ts';
import { validateWindowsOptions } from '../checks/windows.ts';

/** User and group IDs are unsigned 31-bit integers. */
const MAX_ID = 2 ** 31 - 1;
const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
/** Pattern of sysctl names in the form that upstream's error shows. */
const SYSCTL_FORM = String.raw`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`;
const SYSCTL = new RegExp(SYSCTL_FORM);
/** Sysctls that are per IPC namespace. */
const HOST_IPC = /^(?:kernel\.(?:sem|shm(?:all|max|mni|_rmid_forced)?|msg(?:max|mnb|mni)?)$|fs\.mqueue\.)/;
const MAX_SYSCTL_LENGTH = 253;
/** PATH_MAX without the terminating zero byte. */
const MAX_PROFILE_BYTES = 4095;

export function validateSecurityContext(
  context: SecurityContext | undefined,
  path: string,
  hostUsers: boolean,
): FieldError[] {
  if (context === undefined) return [];
  const errors = validateIds(context, path);
  if (context.procMount !== undefined) {
    errors.push(...validateOptionalOneOf(context.procMount, ['Default', 'Unmasked'], `${path}.procMount`));
    if (hostUsers && context.procMount === 'Unmasked') {
      errors.push(
        fieldError.invalid(`${path}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`'),
      );
    }
  }
  errors.push(...validateSeccomp(context.seccompProfile, `${path}.seccompProfile`));
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged === true) {
      errors.push(
        fieldError.invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'),
      );
    }
    for (const capability of context.capabilities?.add ?? []) {
      if (capability !== 'CAP_SYS_ADMIN') continue;
      const why = 'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN';
      errors.push(fieldError.invalid(path, context, why));
    }
  }
  errors.push(...validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`));
  errors.push(...validateAppArmor(context.appArmorProfile, `${path}.appArmorProfile`));
  return errors;
}

export function validatePodSecurityContext(spec: PodSpec, path: string): FieldError[] {
  const context = spec.securityContext ?? {};
  const at = `${path}.securityContext`;
  const errors: FieldError[] = [];
  if (context.fsGroup !== undefined) errors.push(...validateId(context.fsGroup, `${at}.fsGroup`));
  errors.push(...validateIds(context, at));
  (context.supplementalGroups ?? []).forEach((group, index) => {
    errors.push(...validateId(group, `${at}.supplementalGroups[${index}]`));
  });
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    const why = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(fieldError.invalid(`${at}.shareProcessNamespace`, true, why));
  }
  errors.push(...validateSysctls(spec, `${at}.sysctls`));
  const oneOf = (field: 'fsGroupChangePolicy' | 'seLinuxChangePolicy' | 'supplementalGroupsPolicy', all: string[]) =>
    validateOptionalOneOf(context[field], all, `${at}.${field}`);
  errors.push(
    ...oneOf('fsGroupChangePolicy', ['Always', 'OnRootMismatch']),
    ...validateSeccomp(context.seccompProfile, `${at}.seccompProfile`),
    ...validateWindowsOptions(context.windowsOptions, `${at}.windowsOptions`),
    ...validateAppArmor(context.appArmorProfile, `${at}.appArmorProfile`),
    ...oneOf('supplementalGroupsPolicy', ['Merge', 'Strict']),
    ...oneOf('seLinuxChangePolicy', ['MountOption', 'Recursive']),
  );
  return errors;
}

function validateSysctls(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const seen = new Set<string>();
  (spec.securityContext?.sysctls ?? []).forEach((sysctl, index) => {
    const at = `${path}[${index}].name`;
    const name = sysctl.name ?? '';
    if (name === '') errors.push(fieldError.required(at));
    else if (name.length > MAX_SYSCTL_LENGTH || !SYSCTL.test(name)) {
      const why = `must have at most ${MAX_SYSCTL_LENGTH} characters and match regex ${SYSCTL_FORM}`;
      errors.push(fieldError.invalid(at, name, why));
    } else if (seen.has(name)) errors.push(fieldError.duplicate(at, name));
    seen.add(name);
    const top = name.replaceAll('/', '.');
    if (spec.hostNetwork === true && top.startsWith('net.')) {
      errors.push(fieldError.invalid(at, name, "may not be specified when 'hostNetwork' is true"));
    } else if (spec.hostIPC === true && HOST_IPC.test(top)) {
      errors.push(fieldError.invalid(at, name, "may not be specified when 'hostIPC' is true"));
    }
  });
  return errors;
}

/** A pod with its own user namespace must not share the host's network, PID or IPC namespace. */
export function validateHostUsers(spec: PodSpec, path: string): FieldError[] {
  if (spec.hostUsers !== false) return [];
  const shared = [
    ['hostNetwork', spec.hostNetwork],
    ['HostPID', spec.hostPID],
    ['HostIPC', spec.hostIPC],
  ] as const;
  return shared
    .filter(([, value]) => value === true)
    .map(([field]) => fieldError.forbidden(`${path}.${field}`, 'when `pod.Spec.HostUsers` is false'));
}

function validateIds(context: Pick<SecurityContext, 'runAsUser' | 'runAsGroup'>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (context.runAsUser !== undefined) errors.push(...validateId(context.runAsUser, `${path}.runAsUser`));
  if (context.runAsGroup !== undefined) errors.push(...validateId(context.runAsGroup, `${path}.runAsGroup`));
  return errors;
}

function validateId(id: number, path: string): FieldError[] {
  return id < 0 || id > MAX_ID ? [fieldError.invalid(path, id, `must be between 0 and ${MAX_ID}, inclusive`)] : [];
}

function validateSeccomp(profile: SeccompProfile | undefined, path: string): FieldError[] {
  if (profile === undefined) return [];
  const at = `${path}.localhostProfile`;
  const errors = isSet(profile.type)
    ? validateOneOf(profile.type, PROFILE_TYPES, `${path}.type`)
    : [fieldError.required(`${path}.type`, 'type is required when seccompProfile is set')];
  const file = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (file === undefined) errors.push(fieldError.required(at, 'must be set when seccomp type is Localhost'));
    else errors.push(...validateLocalPath(file, at));
  } else if (file !== undefined) {
    errors.push(fieldError.invalid(at, profile, 'can only be set when seccomp type is Localhost'));
  }
  return errors;
}

export function validateAppArmor(profile: AppArmorProfile | undefined, path: string): FieldError[] {
  if (profile === undefined) return [];
  const at = `${path}.localhostProfile`;
  const file = profile.localhostProfile;
  if (!isSet(profile.type))
    return [fieldError.required(`${path}.type`, 'type is required when appArmorProfile is set')];
  if (profile.type !== 'Localhost') {
    const errors = validateOneOf(profile.type, PROFILE_TYPES, `${path}.type`);
    if (errors.length > 0 || file === undefined) return errors;
    return [fieldError.invalid(at, file, 'can only be set when AppArmor type is Localhost')];
  }
  if (!isSet(file)) return [fieldError.required(at, 'must be set when AppArmor type is Localhost')];
  const errors = file.trim() === file ? [] : [fieldError.invalid(at, file, 'must not be padded with whitespace')];
  if (utf8Length(file) > MAX_PROFILE_BYTES) errors.push(fieldError.tooLong(at, MAX_PROFILE_BYTES));
  return errors;
}
