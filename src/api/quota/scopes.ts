/** Scopes of a quota, which select the objects that it counts. */
import type { PersistentVolumeClaim, Pod, PodAffinityTerm, ResourceQuota } from '../generated/core/v1.ts';
import { qosClassOf } from '../podspec/qos.ts';

export interface ScopeSelector {
  readonly scopeName: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

/** Scopes of the quota. An object must match all of them to be counted. */
export function scopesOf({ spec }: ResourceQuota): readonly ScopeSelector[] {
  return [
    ...(spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' })),
    ...(spec?.scopeSelector?.matchExpressions ?? []),
  ];
}

/** Text in upstream's format: `{PriorityClass In [high]}`. */
export const scopeText = ({ scopeName, operator, values = [] }: ScopeSelector): string =>
  `{${scopeName} ${operator} [${values.join(' ')}]}`;

/** Whether the selector matches `value`; undefined means that the object has no value. */
function selects({ operator, values = [] }: ScopeSelector, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

export const isTerminating = (pod: Pod): boolean => (pod.spec?.activeDeadlineSeconds ?? -1) >= 0;

export function podMatchesScope(pod: Pod, selector: ScopeSelector): boolean {
  switch (selector.scopeName) {
    case 'Terminating':
      return isTerminating(pod);
    case 'NotTerminating':
      return !isTerminating(pod);
    case 'BestEffort':
      return qosClassOf(pod) === 'BestEffort';
    case 'NotBestEffort':
      return qosClassOf(pod) !== 'BestEffort';
    case 'PriorityClass':
      return selects(selector, nonEmpty(pod.spec?.priorityClassName));
    case 'CrossNamespacePodAffinity':
      return namesOtherNamespaces(pod);
    default:
      return false;
  }
}

/** Whether the pod has affinity to pods of other namespaces, which can prevent those pods from being scheduled. */
function namesOtherNamespaces(pod: Pod): boolean {
  const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
  const terms: (PodAffinityTerm | undefined)[] = [podAffinity, podAntiAffinity].flatMap((affinity) => [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map(({ podAffinityTerm }) => podAffinityTerm),
  ]);
  return terms.some((term) => (term?.namespaces ?? []).length > 0 || term?.namespaceSelector !== undefined);
}

/**
 * Whether the claim matches the scope. While its volume attributes class is being changed, a claim belongs to both
 * classes.
 */
export function claimMatchesScope(claim: PersistentVolumeClaim, selector: ScopeSelector): boolean {
  if (selector.scopeName !== 'VolumeAttributesClass') return false;
  const names = [
    claim.spec?.volumeAttributesClassName,
    claim.status?.currentVolumeAttributesClassName,
    claim.status?.modifyVolumeStatus?.targetVolumeAttributesClassName,
  ].filter((name) => nonEmpty(name) !== undefined);
  if (names.length === 0) return selects(selector, undefined);
  return names.some((name) => selects(selector, name));
}
