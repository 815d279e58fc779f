/**
 * Pod fields that this node does not support. A pod that sets one stays Pending with a reason. It is not failed,
 * because the scheduler does not consider the rule and a controller would create the pod again and again. Source:
 * pkg/kubelet softAdmitHandlers, pkg/security/apparmor.
 */
import type { Container, EphemeralContainer, Pod } from '../../../api/generated/core/v1.ts';
import type { RuntimeFeatures } from '../../../runtime/port.ts';
import type { Rejection } from '../admission.ts';

export const FIELD_NOT_SUPPORTED = 'PodFieldNotSupported';

interface Rule {
  /** Path below the pod's or the container's spec. `[]` matches every item. */
  readonly field: string;
  /** Whether the value is supported. Without this function, only an empty value is supported. */
  readonly unless?: (value: unknown, place: Place) => boolean;
}

interface Place {
  readonly pod: Pod;
  readonly list: ContainerList | undefined;
  readonly features: Features;
}

type Features = Pick<RuntimeFeatures, 'selinux' | 'appArmor'>;

const CONTAINER_LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
type ContainerList = (typeof CONTAINER_LISTS)[number];

function withoutHostProcess(options: unknown): boolean {
  return (options as { readonly hostProcess?: unknown }).hostProcess !== true;
}

// The API documents the other Windows options as effective for Windows containers only.
const POD_RULES: readonly Rule[] = [
  { field: 'shareProcessNamespace', unless: (value, { pod }) => value !== true || pod.spec?.hostUsers !== false },
  { field: 'schedulingGroup' },
  { field: 'securityContext.seLinuxOptions', unless: withoutSelinux },
  { field: 'securityContext.seLinuxChangePolicy', unless: withoutSelinux },
  { field: 'securityContext.windowsOptions', unless: withoutHostProcess },
];

const CONTAINER_RULES: readonly Rule[] = [
  { field: 'env[].valueFrom.fileKeyRef' },
  { field: 'securityContext.seLinuxOptions', unless: withoutSelinux },
  { field: 'securityContext.windowsOptions', unless: withoutHostProcess },
];

/**
 * Returns undefined when the node supports every field of the pod. Ephemeral containers are checked when they start.
 */
export function unsupportedField(pod: Pod, features: Features): Rejection | undefined {
  const found = firstSet(pod.spec, POD_RULES, 'spec', { pod, list: undefined, features });
  if (found !== undefined) return refuse(found);
  for (const list of ['initContainers', 'containers'] as const) {
    for (const [index, container] of (pod.spec?.[list] ?? []).entries()) {
      const field = firstSet(container, CONTAINER_RULES, `spec.${list}[${index}]`, { pod, list, features });
      if (field !== undefined) return refuse(field);
    }
  }
  return appArmor(pod, [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])], features);
}

/** Like `unsupportedField`, for one container of the pod. */
export function unsupportedContainerField(
  pod: Pod,
  container: Container | EphemeralContainer,
  features: Features,
): Rejection | undefined {
  for (const list of CONTAINER_LISTS) {
    const index = (pod.spec?.[list] ?? []).findIndex((each) => each.name === container.name);
    if (index < 0) continue;
    const field = firstSet(container, CONTAINER_RULES, `spec.${list}[${index}]`, { pod, list, features });
    if (field !== undefined) return refuse(field);
  }
  return appArmor(pod, [container], features);
}

const refuse = (field: string): Rejection => ({
  reason: FIELD_NOT_SUPPORTED,
  message: `${field}: not supported by this node; remove the field`,
});

function withoutSelinux(_value: unknown, { features }: Place): boolean {
  return !features.selinux;
}

/** Rejects a required AppArmor profile that cannot be applied. */
function appArmor(
  pod: Pod,
  containers: readonly (Container | EphemeralContainer)[],
  features: Features,
): Rejection | undefined {
  if (features.appArmor === true) return undefined;
  const types = [pod.spec, ...containers].map((each) => each?.securityContext?.appArmorProfile?.type);
  if (types.every((type) => type === undefined || type === 'Unconfined')) return undefined;
  return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host' };
}

function firstSet(owner: unknown, rules: readonly Rule[], path: string, place: Place): string | undefined {
  for (const { field, unless } of rules) {
    for (const [at, value] of valuesAt(owner, field.split('.'), path)) {
      if (!isEmpty(value) && unless?.(value, place) !== true) return at;
    }
  }
  return undefined;
}

function* valuesAt(owner: unknown, [first, ...rest]: readonly string[], path: string): Generator<[string, unknown]> {
  if (first === undefined) {
    yield [path, owner];
    return;
  }
  const isList = first.endsWith('[]');
  const name = isList ? first.slice(0, -2) : first;
  if (typeof owner !== 'object' || owner === null || !Object.hasOwn(owner, name)) return;
  const value = (owner as Readonly<Record<string, unknown>>)[name];
  if (!isList) yield* valuesAt(value, rest, `${path}.${name}`);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* valuesAt(item, rest, `${path}.${name}[${index}]`);
  }
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.values(value).every((member) => member === undefined));
