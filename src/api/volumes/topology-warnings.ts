/**
 * Warnings about deprecated topology labels in storage classes and capacities. Source:
 * k8s.io/kubernetes/pkg/api/{storage,node}.
 */
import type { TopologySelectorTerm } from '../generated/core/v1.ts';
import type { LabelSelector } from '../generated/meta/v1.ts';
import { deprecatedLabel } from '../podspec/checks/warnings.ts';

export const topologyWarnings = (terms: readonly TopologySelectorTerm[] | undefined): string[] =>
  (terms ?? []).flatMap(({ matchLabelExpressions }, index) =>
    (matchLabelExpressions ?? []).flatMap(({ key }, place) => {
      const why = deprecatedLabel(key);
      return why === undefined ? [] : [`allowedTopologies[${index}].matchLabelExpressions[${place}].key: ${why}`];
    }),
  );

export function nodeSelectorWarnings(selector: LabelSelector | undefined, at: string): string[] {
  const expressions = (selector?.matchExpressions ?? []).flatMap(({ key }, index) => {
    const why = deprecatedLabel(key);
    return why === undefined ? [] : [`${at}.matchExpressions[${index}].key: ${key} is ${why}`];
  });
  const labels = Object.keys(selector?.matchLabels ?? {}).flatMap((label) => {
    const why = deprecatedLabel(label);
    return why === undefined ? [] : [`${at}.matchLabels.${label}: ${why}`];
  });
  return [...expressions, ...labels];
}
