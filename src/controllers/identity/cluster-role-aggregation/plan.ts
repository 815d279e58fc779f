/**
 * Aggregated cluster roles: their rules are the union of the rules of the selected roles. Source: upstream's
 * clusterroleaggregation.
 */
import type { ClusterRole, PolicyRule } from '../../../api/generated/rbac/v1.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';
import { equalIgnoringEmptyLists, jsonIgnoringEmptyLists } from '../../framework/core/equality.ts';

/** Returns the new rules of the role; undefined if it does not aggregate or is up to date. */
export function planAggregation(role: ClusterRole, all: readonly ClusterRole[]): PolicyRule[] | undefined {
  const selectors = role.aggregationRule?.clusterRoleSelectors;
  if (selectors === undefined || role.metadata?.deletionTimestamp !== undefined) return undefined;
  const rules: PolicyRule[] = [];
  const seen = new Set<string>();
  // The roles of each selector are sorted by name, so that the result does not depend on the order of arrival.
  const sorted = [...all].sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
  for (const object of selectors) {
    const selector = labelSelectorOf(object);
    for (const other of sorted) {
      if (other.metadata?.name === role.metadata?.name || !matchesLabels(selector, other.metadata?.labels)) continue;
      for (const rule of other.rules ?? []) {
        const text = jsonIgnoringEmptyLists(rule);
        if (seen.has(text)) continue;
        seen.add(text);
        rules.push(rule);
      }
    }
  }
  return equalIgnoringEmptyLists(rules, role.rules) ? undefined : rules;
}
