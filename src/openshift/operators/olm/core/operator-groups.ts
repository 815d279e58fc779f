/**
 * Operator groups: the namespaces that the operators of a namespace watch, and whether an operator version supports
 * these namespaces. Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go.
 */
import type { Namespace } from '../../../../api/generated/core/v1.ts';
import { labelSelectorOf, matchesLabels } from '../../../../base/selector.ts';
import type { ClusterServiceVersion, InstallMode, OperatorGroup } from '../kinds/types.ts';

/** Sorted names of the namespaces that the group selects. A single empty name means all namespaces. */
export function targetNamespaces({ spec = {} }: OperatorGroup, namespaces: readonly Namespace[]): string[] {
  const named = spec.targetNamespaces ?? [];
  if (named.length > 0) return named.includes('') ? [''] : [...new Set(named)].sort();
  const { matchLabels = {}, matchExpressions = [] } = spec.selector ?? {};
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) return [''];
  const selector = labelSelectorOf(spec.selector);
  return namespaces
    .filter(({ metadata }) => matchesLabels(selector, metadata?.labels ?? {}))
    .map(({ metadata }) => metadata?.name ?? '')
    .sort();
}

export interface GroupProblem {
  readonly reason: string;
  readonly message: string;
}

/** Returns the operator group of a namespace, or the reason why operators cannot be installed there. */
export function groupOf(groups: readonly OperatorGroup[]): OperatorGroup | GroupProblem {
  const [group] = groups;
  if (group === undefined) return { reason: 'NoOperatorGroup', message: 'csv in namespace with no operatorgroups' };
  if (groups.length > 1)
    return {
      reason: 'TooManyOperatorGroups',
      message: "csv created in namespace with multiple operatorgroups, can't pick one automatically",
    };
  return group;
}

export const isProblem = (group: OperatorGroup | GroupProblem): group is GroupProblem =>
  'reason' in group && 'message' in group;

/** Reason why the operator version cannot watch these namespaces; undefined if it can. */
export function unsupportedMode(
  { spec }: ClusterServiceVersion,
  own: string,
  targets: readonly string[],
): string | undefined {
  const supported = new Set(
    (spec?.installModes ?? []).filter((each: InstallMode) => each.supported === true).map((each) => each.type),
  );
  // Operator versions that are older than install modes declare none. They are accepted.
  if (supported.size === 0 && (spec?.installModes ?? []).length === 0) return undefined;
  const missing = (mode: string, what: string): string | undefined =>
    supported.has(mode) ? undefined : `${mode} InstallModeType not supported, cannot configure to ${what}`;
  if (targets.length === 0) return 'operatorgroup selects no namespaces; change its selector';
  if (targets.includes('')) return missing('AllNamespaces', 'watch all namespaces');
  if (targets.length > 1)
    return (
      missing('MultiNamespace', `watch ${targets.length} namespaces`) ??
      (targets.includes(own) ? missing('OwnNamespace', 'watch own namespace') : undefined)
    );
  return targets[0] === own
    ? missing('OwnNamespace', 'watch own namespace')
    : missing('SingleNamespace', 'watch one namespace');
}

/** APIs that the operators provide, in the format of the annotation olm.providedAPIs: sorted `Kind.version.group`. */
export function providedApis(csvs: readonly ClusterServiceVersion[]): string {
  const apis = csvs.flatMap(({ spec }) => [
    ...(spec?.customresourcedefinitions?.owned ?? []).map(
      ({ name = '', version, kind }) => `${kind}.${version}.${name.split('.').slice(1).join('.')}`,
    ),
    ...(spec?.apiservicedefinitions?.owned ?? []).map(({ group, version, kind }) => `${kind}.${version}.${group}`),
  ]);
  return [...new Set(apis)].sort().join(',');
}
