import type { ClusterRole, PolicyRule } from '../../../api/generated/rbac/v1.ts';
import { labelSelectorOf, matchesLabels } from '../../../base/selector.ts';

/**
 * Rules of an aggregated cluster role: the rules of every other role that one of its selectors matches, in order of
 * role name, without duplicates. Undefined if the role does not aggregate. An invalid selector matches no role. Source:
 * upstream's clusterroleaggregation controller.
 */
export function aggregatedRules(role: ClusterRole, all: Iterable<ClusterRole>): PolicyRule[] | undefined {
  const selectors = role.aggregationRule?.clusterRoleSelectors;
  if (selectors === undefined) return undefined;
  const candidates = [...all].sort((a, b) => compare(a.metadata?.name ?? '', b.metadata?.name ?? ''));
  const rules = new Map<string, PolicyRule>();
  for (const object of selectors) {
    const selector = readSelector(object);
    if (selector === undefined) continue;
    for (const candidate of candidates) {
      if (candidate.metadata?.name === role.metadata?.name) continue;
      if (!matchesLabels(selector, candidate.metadata?.labels)) continue;
      for (const rule of candidate.rules ?? []) {
        const identity = ruleIdentity(rule);
        if (!rules.has(identity)) rules.set(identity, rule);
      }
    }
  }
  return [...rules.values()];
}

/**
 * Sets the rules of all aggregated roles of a set, including roles that aggregate aggregated roles (`admin` contains
 * `edit`, which contains `view`). Changed roles are replaced by copies.
 */
export function aggregateAll(roles: readonly ClusterRole[]): ClusterRole[] {
  let current = [...roles];
  // Each round resolves at least one more level of a chain of aggregations.
  for (let round = 0; round <= roles.length; round++) {
    let changed = false;
    const next = current.map((role) => {
      const rules = aggregatedRules(role, current);
      if (rules === undefined || sameRules(rules, role.rules ?? [])) return role;
      changed = true;
      return { ...role, rules };
    });
    current = next;
    if (!changed) break;
  }
  return current;
}

export function sameRules(a: readonly PolicyRule[], b: readonly PolicyRule[]): boolean {
  return (
    a.length === b.length && a.every((rule, index) => ruleIdentity(rule) === ruleIdentity(b[index] ?? { verbs: [] }))
  );
}

function ruleIdentity(rule: PolicyRule): string {
  return JSON.stringify([rule.verbs, rule.apiGroups, rule.resources, rule.resourceNames, rule.nonResourceURLs]);
}

function readSelector(object: Parameters<typeof labelSelectorOf>[0]) {
  try {
    return labelSelectorOf(object);
  } catch {
    return undefined;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
