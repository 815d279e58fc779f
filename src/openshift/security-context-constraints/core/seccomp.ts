/**
 * Seccomp profiles of pods, which are set by fields or by older annotations, and the profile names in SCCs. Source:
 * openshift/apiserver-library-go pkg/securitycontextconstraints/seccomp.
 */
import type { Container, Pod, SeccompProfile } from '../../../api/generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { SECCOMP_CONTAINER, SECCOMP_POD } from '../../../api/podspec/annotations.ts';

const RUNTIME_DEFAULT = 'runtime/default';
const DOCKER_DEFAULT = 'docker/default';
const LOCALHOST = 'localhost/';
const ANY = '*';

/** Profile that a pod gets by default: the first allowed profile that is not a wildcard; '' if there is none. */
export function defaultProfile(allowed: readonly string[]): string {
  return allowed.find((name) => name !== ANY) ?? '';
}

export function podProfile({ metadata, spec }: Pod): string {
  return profileName(spec?.securityContext?.seccompProfile) ?? metadata?.annotations?.[SECCOMP_POD] ?? '';
}

export function containerProfile(pod: Pod, container: Container): string {
  return (
    profileName(container.securityContext?.seccompProfile) ??
    pod.metadata?.annotations?.[`${SECCOMP_CONTAINER}${container.name}`] ??
    podProfile(pod)
  );
}

function profileName(profile: SeccompProfile | undefined): string | undefined {
  switch (profile?.type) {
    case undefined:
      return undefined;
    case 'Unconfined':
      return 'unconfined';
    case 'RuntimeDefault':
      return RUNTIME_DEFAULT;
    default:
      return `${LOCALHOST}${profile?.localhostProfile ?? ''}`;
  }
}

/** Seccomp field for a profile name; undefined if the name is invalid. */
export function profileField(name: string): SeccompProfile | undefined {
  if (name === 'unconfined') return { type: 'Unconfined' };
  if (name === RUNTIME_DEFAULT || name === DOCKER_DEFAULT) return { type: 'RuntimeDefault' };
  return name.startsWith(LOCALHOST) && name.length > LOCALHOST.length
    ? { type: 'Localhost', localhostProfile: name.slice(LOCALHOST.length) }
    : undefined;
}

export function profileErrors(profile: string, allowed: readonly string[], path: string): FieldError[] {
  if (allowed.includes(ANY)) return [];
  if (allowed.length === 0) return profile === '' ? [] : [fieldError.forbidden(path, 'seccomp may not be set')];
  const isDefault = (name: string): boolean => name === RUNTIME_DEFAULT || name === DOCKER_DEFAULT;
  if (allowed.includes(profile) || (isDefault(profile) && allowed.some(isDefault))) return [];
  const detail = `${profile} is not an allowed seccomp profile. Valid values are [${allowed.join(' ')}]`;
  return [fieldError.forbidden(path, detail)];
}
