/** Validation of security contexts. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateSecurityContext, ValidatePodSecurityContext. */
import type { PodSecurityContext, PodSpec, SeccompProfile, SecurityContext } from 'kubernetes-types/core/v1';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateOneOf } from '../validation/scalars.ts';
import { validateWindowsOptions } from './windows.ts';

/** User and group ids are unsigned 31-bit. */
const MAX_ID = 2 ** 31 - 1;
const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];
/** As upstream's message shows it. */
const SYSCTL_FORM = String.raw`([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?`;
const SYSCTL = new RegExp(`^${SYSCTL_FORM}$`);
const MAX_SYSCTL_LENGTH = 253;

export function validateSecurityContext(
  context: SecurityContext | undefined,
  path: string,
  hostUsers: boolean,
): FieldError[] {
  if (context === undefined) return [];
  const errors = validateIds(context, path);
  errors.push(...validateProfile(context.seccompProfile, `${path}.seccompProfile`));
  errors.push(...validateWindowsOptions(context.windowsOptions, `${path}.windowsOptions`));
  if (isSet(context.procMount)) {
    errors.push(...validateOneOf(context.procMount, ['Default', 'Unmasked'], `${path}.procMount`));
    if (hostUsers && context.procMount === 'Unmasked') {
      errors.push(
        fieldError.invalid(`${path}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`'),
      );
    }
  }
  if (context.allowPrivilegeEscalation === false) {
    if (context.privileged === true) {
      errors.push(
        fieldError.invalid(path, context, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'),
      );
    }
    const added = context.capabilities?.add ?? [];
    if (added.includes('CAP_SYS_ADMIN') || added.includes('SYS_ADMIN')) {
      errors.push(
        fieldError.invalid(
          path,
          context,
          'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
        ),
      );
    }
  }
  return errors;
}

export function validatePodSecurityContext(spec: PodSpec, path: string): FieldError[] {
  const context: PodSecurityContext = spec.securityContext ?? {};
  const at = `${path}.securityContext`;
  const errors = validateIds(context, at);
  if (context.fsGroup !== undefined) errors.push(...validateId(context.fsGroup, `${at}.fsGroup`));
  (context.supplementalGroups ?? []).forEach((group, index) => {
    errors.push(...validateId(group, `${at}.supplementalGroups[${index}]`));
  });
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    errors.push(
      fieldError.invalid(
        `${path}.shareProcessNamespace`,
        true,
        'ShareProcessNamespace and HostPID cannot both be enabled',
      ),
    );
  }
  errors.push(
    ...validateOneOf(context.fsGroupChangePolicy, ['Always', 'OnRootMismatch'], `${at}.fsGroupChangePolicy`, false),
  );
  const seen = new Set<string>();
  (context.sysctls ?? []).forEach((sysctl, index) => {
    const name = `${at}.sysctls[${index}].name`;
    if (!isSet(sysctl.name)) errors.push(fieldError.required(name));
    else if (sysctl.name.length > MAX_SYSCTL_LENGTH || !SYSCTL.test(sysctl.name)) {
      errors.push(
        fieldError.invalid(
          name,
          sysctl.name,
          `must have at most ${MAX_SYSCTL_LENGTH} characters and match regex ${SYSCTL_FORM}`,
        ),
      );
    } else if (seen.has(sysctl.name)) errors.push(fieldError.duplicate(name, sysctl.name));
    seen.add(sysctl.name);
    const top = sysctl.name?.replaceAll('/', '.') ?? '';
    if (spec.hostNetwork === true && top.startsWith('net.')) {
      errors.push(fieldError.invalid(name, sysctl.name, `may not be specified when 'hostNetwork' is true`));
    }
    if (
      spec.hostIPC === true &&
      (top.startsWith('kernel.shm') || top.startsWith('kernel.msg') || top.startsWith('fs.mqueue.'))
    ) {
      errors.push(fieldError.invalid(name, sysctl.name, `may not be specified when 'hostIPC' is true`));
    }
  });
  errors.push(...validateProfile(context.seccompProfile, `${at}.seccompProfile`));
  errors.push(...validateWindowsOptions(context.windowsOptions, `${at}.windowsOptions`));
  if (spec.hostUsers === false) {
    for (const field of ['hostNetwork', 'hostPID', 'hostIPC'] as const) {
      if (spec[field] === true) {
        errors.push(fieldError.forbidden(`${path}.hostUsers`, `when hostUsers is false, ${field} must be false`));
      }
    }
  }
  return errors;
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

function validateProfile(profile: SeccompProfile | undefined, path: string): FieldError[] {
  if (profile === undefined) return [];
  if (profile.type === 'Localhost') {
    if (!isSet(profile.localhostProfile)) {
      return [fieldError.required(`${path}.localhostProfile`, 'must be set when seccomp type is Localhost')];
    }
    return profile.localhostProfile.startsWith('/') || profile.localhostProfile.split('/').includes('..')
      ? [fieldError.invalid(`${path}.localhostProfile`, profile.localhostProfile, 'must be a relative path')]
      : [];
  }
  const errors = validateOneOf(profile.type, PROFILE_TYPES, `${path}.type`);
  if (profile.localhostProfile !== undefined) {
    errors.push(
      fieldError.invalid(
        `${path}.localhostProfile`,
        profile.localhostProfile,
        'can only be set when seccomp type is Localhost',
      ),
    );
  }
  return errors;
}
