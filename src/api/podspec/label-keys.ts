/**
 * Merging of matchLabelKeys and mismatchLabelKeys into label selectors when a pod is created. With them, a pod's
 * constraint applies only to pods of the same revision. Source: k8s.io/kubernetes/pkg/registry/core/pod strategy,
 * pkg/apis/core/validation validateMatchLabelKeysAndMismatchLabelKeys.
 */

import { qualifiedNameErrors } from '../../base/names.ts';
import type { Pod, PodAffinity, PodAffinityTerm } from '../generated/core/v1.ts';
import type { LabelSelector, LabelSelectorRequirement as Requirement } from '../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateNameRule } from '../validation/scalars.ts';

interface Keyed {
  labelSelector?: LabelSelector;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

/** Merges the label keys of all affinity terms and spread constraints of a pod. Call it before the pod is created. */
export function mergeLabelKeys(pod: Pod): void {
  const labels = pod.metadata?.labels ?? {};
  for (const term of affinityTerms(pod)) merge(term, labels);
  for (const constraint of pod.spec?.topologySpreadConstraints ?? []) merge(constraint, labels);
}

function affinityTerms(pod: Pod): PodAffinityTerm[] {
  const { podAffinity, podAntiAffinity } = pod.spec?.affinity ?? {};
  return [podAffinity, podAntiAffinity].flatMap((affinity: PodAffinity | undefined) => [
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((each) => each.podAffinityTerm ?? {}),
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
  ]);
}

/**
 * Merges label keys into one selector. A missing selector matches no pods, so it stays missing. The selector is
 * replaced instead of changed, because other objects may share it.
 */
function merge(keyed: Keyed, labels: Readonly<Record<string, string>>): void {
  const selector = keyed.labelSelector;
  if (selector === undefined) return;
  const found = (keys: readonly string[] | undefined, operator: 'In' | 'NotIn'): Requirement[] =>
    (keys ?? []).flatMap((key) => {
      const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
      return value === undefined ? [] : [{ key, operator, values: [value] }];
    });
  const added = [...found(keyed.matchLabelKeys, 'In'), ...found(keyed.mismatchLabelKeys, 'NotIn')];
  if (added.length === 0) return;
  keyed.labelSelector = { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...added] };
}

/** Validates a constraint after the merge. `at` is the path of the object that has both selector and keys. */
export function validateLabelKeys(keyed: Keyed, at: string): FieldError[] {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = keyed;
  const errors = [
    ...validateKeys(matchLabelKeys, labelSelector, `${at}.matchLabelKeys`),
    ...validateKeys(mismatchLabelKeys, labelSelector, `${at}.mismatchLabelKeys`),
  ];
  const places = new Map(matchLabelKeys.map((key, index) => [key, index]));
  const seen = new Set(Object.keys(labelSelector?.matchLabels ?? {}));
  for (const { key } of labelSelector?.matchExpressions ?? []) {
    const place = places.get(key);
    // The merge added each key once. A second occurrence comes from the client.
    if (place !== undefined && seen.has(key)) {
      errors.push(fieldError.invalid(`${at}[${place}]`, key, 'exists in both matchLabelKeys and labelSelector'));
    }
    seen.add(key);
  }
  const mismatched = new Set(mismatchLabelKeys);
  matchLabelKeys.forEach((key, index) => {
    if (!mismatched.has(key)) return;
    const why = 'exists in both matchLabelKeys and mismatchLabelKeys';
    errors.push(fieldError.invalid(`${at}.matchLabelKeys[${index}]`, key, why));
  });
  return errors;
}

function validateKeys(keys: readonly string[], selector: LabelSelector | undefined, at: string): FieldError[] {
  if (keys.length === 0) return [];
  if (selector === undefined) return [fieldError.forbidden(at, 'must not be specified when labelSelector is not set')];
  return keys.flatMap((key, index) => validateNameRule(key, qualifiedNameErrors, `${at}[${index}]`));
}
