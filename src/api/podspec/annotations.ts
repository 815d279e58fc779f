/**
 * Pod annotations with a meaning for the system, most of which preceded a field. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation ValidatePodSpecificAnnotations, pkg/registry/core/pod
 * applyAppArmorVersionSkew.
 */
import type { AppArmorProfile, Container, Pod, PodSpec } from '../generated/core/v1.ts';
import type { ObjectMeta } from '../generated/meta/v1.ts';
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateLocalPath } from '../validation/scalars.ts';
import { validateAppArmor } from './containers/security.ts';

/** Annotation of mirror pods, the API objects that show static pods. */
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const DELETION_COST = 'controller.kubernetes.io/pod-deletion-cost';
export const SECCOMP_POD = 'seccomp.security.alpha.kubernetes.io/pod';
export const SECCOMP_CONTAINER = 'container.seccomp.security.alpha.kubernetes.io/';
export const APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';
const LOCALHOST = 'localhost/';
const MAX_INT32 = 2 ** 31 - 1;

type Annotations = Readonly<Record<string, string>>;
type Visited = Pick<Container, 'name' | 'securityContext'>;

/** Init, regular and ephemeral containers, with their field paths below `path`. */
export function containersWithPath(spec: PodSpec | undefined, path: string): (readonly [Visited, string])[] {
  return (['initContainers', 'containers', 'ephemeralContainers'] as const).flatMap((sort) =>
    (spec?.[sort] ?? []).map((container, index) => [container, `${path}.${sort}[${index}]`] as const),
  );
}

/** Validates all special annotations except the deletion cost, whose invalid values may stay on update. */
export function validateSpecialAnnotations(
  annotations: Annotations | undefined,
  spec: PodSpec | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  const names = new Set(containersWithPath(spec, '').map(([container]) => container.name));
  for (const [key, value] of Object.entries(annotations ?? {})) {
    if (key === MIRROR_ANNOTATION && !isSet(spec?.nodeName)) {
      const why = 'must set spec.nodeName if mirror pod annotation is set';
      errors.push(fieldError.invalid(`${path}[${key}]`, value, why));
    }
    if (key === SECCOMP_POD || key.startsWith(SECCOMP_CONTAINER)) {
      errors.push(...validateSeccompName(value, `${path}.${key}`));
    }
    if (!key.startsWith(APP_ARMOR)) continue;
    const name = key.slice(APP_ARMOR.length);
    if (!names.has(name)) {
      errors.push(fieldError.invalid(`${path}[${key}]`, name, 'container not found'));
    }
    if (!['', 'runtime/default', 'unconfined'].includes(value) && !value.startsWith(LOCALHOST)) {
      errors.push(
        fieldError.invalid(`${path}[${key}]`, value, `invalid AppArmor profile name: ${JSON.stringify(value)}`),
      );
    }
  }
  return errors;
}

function validateSeccompName(value: string, at: string): FieldError[] {
  if (['runtime/default', 'docker/default', 'unconfined'].includes(value)) return [];
  if (value.startsWith(LOCALHOST)) return validateLocalPath(value.slice(LOCALHOST.length), at);
  return [fieldError.invalid(at, value, 'must be a valid seccomp profile')];
}

/** Validates the deletion cost, by which ReplicaSets choose the pods to delete first. */
export function validateDeletionCost(annotations: Annotations | undefined, path: string): FieldError[] {
  const value = annotations?.[DELETION_COST];
  const number = /^(?:0|-?\d+)$/.test(value ?? '0') && !/^0\d/.test(value ?? '') ? Number(value ?? 0) : Number.NaN;
  return number >= -MAX_INT32 - 1 && number <= MAX_INT32
    ? []
    : [fieldError.invalid(`${path}[${DELETION_COST}]`, value, 'must be a 32bit integer')];
}

/** Requires equal values where a pod sets both the annotation and the field. */
export function validateProfilesMatch(
  metadata: ObjectMeta | undefined,
  spec: PodSpec | undefined,
  path: string,
): FieldError[] {
  const annotations = metadata?.annotations ?? {};
  const errors: FieldError[] = [];
  const compare = (key: string, profile: AppArmorProfile | undefined, at: string, what: string, defaults: string[]) => {
    const value = annotations[key];
    if (value === undefined || profile === undefined) return;
    const matches = {
      Unconfined: value === 'unconfined',
      RuntimeDefault: defaults.includes(value),
      Localhost: value.startsWith(LOCALHOST),
    }[profile.type];
    if (matches === false) {
      errors.push(fieldError.forbidden(`${at}.type`, `${what} type in annotation and field must match`));
    } else if (profile.type === 'Localhost' && value.slice(LOCALHOST.length) !== profile.localhostProfile) {
      errors.push(fieldError.forbidden(`${at}.localhostProfile`, `${what} profile in annotation and field must match`));
    }
  };
  const seccomp = ['runtime/default', 'docker/default'];
  const context = spec?.securityContext;
  compare(SECCOMP_POD, context?.seccompProfile, `${path}.securityContext.seccompProfile`, 'seccomp', seccomp);
  for (const [{ name, securityContext }, at] of containersWithPath(spec, path)) {
    const field = `${at}.securityContext`;
    compare(
      `${SECCOMP_CONTAINER}${name}`,
      securityContext?.seccompProfile,
      `${field}.seccompProfile`,
      'seccomp',
      seccomp,
    );
  }
  if (spec?.os?.name === 'windows') return errors;
  for (const [{ name, securityContext }, at] of containersWithPath(spec, path)) {
    const profile = securityContext?.appArmorProfile ?? context?.appArmorProfile;
    compare(`${APP_ARMOR}${name}`, profile, `${at}.securityContext.appArmorProfile`, 'apparmor', ['runtime/default']);
  }
  return errors;
}

/** Rejects changes of annotations that are fixed when the pod is created. */
export function validateAnnotationUpdate(pod: Pod, old: Pod, path: string): FieldError[] {
  const now = pod.metadata?.annotations ?? {};
  const before = old.metadata?.annotations ?? {};
  const errors: FieldError[] = [];
  const forbid = (key: string, did: string): void => {
    const what =
      key === MIRROR_ANNOTATION ? 'mirror pod annotation' : key.startsWith(APP_ARMOR) ? 'AppArmor annotations' : '';
    if (what !== '') errors.push(fieldError.forbidden(`${path}[${key}]`, `may not ${did} ${what}`));
  };
  for (const [key, value] of Object.entries(before)) if (now[key] !== value) forbid(key, 'remove or update');
  for (const key of Object.keys(now)) if (before[key] === undefined) forbid(key, 'add');
  return errors;
}

/** AppArmor annotations of pods under creation for which the pod has no corresponding field. */
const alone = new WeakMap<Pod, string[]>();

/** Copies deprecated AppArmor annotations to their fields, so that other code only reads fields. */
export function fillAppArmorFields(pod: Pod): void {
  const { spec } = pod;
  if (spec === undefined || spec.os?.name === 'windows') return;
  const keys: string[] = [];
  for (const [container] of containersWithPath(spec, '')) {
    const key = `${APP_ARMOR}${container.name}`;
    const value = pod.metadata?.annotations?.[key];
    if (value === undefined || container.securityContext?.appArmorProfile !== undefined) continue;
    const profile = appArmorOf(value);
    if (profile !== undefined && semanticEqual(profile, spec.securityContext?.appArmorProfile)) continue;
    keys.push(key);
    if (profile === undefined) continue;
    const target = container as { securityContext?: { appArmorProfile?: AppArmorProfile } };
    target.securityContext = { ...target.securityContext, appArmorProfile: profile };
  }
  if (keys.length > 0) alone.set(pod, keys);
}

/**
 * Warnings about AppArmor annotations without a corresponding field. Call after `fillAppArmorFields` for the same pod.
 */
export function appArmorWarnings(pod: Pod): string[] {
  return (alone.get(pod) ?? []).map(
    (key) => `metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  );
}

/** Parses the value of an AppArmor annotation; undefined if it is invalid. */
function appArmorOf(value: string): AppArmorProfile | undefined {
  const profile: AppArmorProfile = value.startsWith(LOCALHOST)
    ? { type: 'Localhost', localhostProfile: value.slice(LOCALHOST.length) }
    : { type: { 'runtime/default': 'RuntimeDefault', unconfined: 'Unconfined' }[value] ?? '' };
  return validateAppArmor(profile, '').length === 0 ? profile : undefined;
}
