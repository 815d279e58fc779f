/**
 * Quotas that count the objects of several projects. Source: openshift/library-go pkg/quota/clusterquotamapping,
 * openshift/openshift-controller-manager pkg/quota.
 */

import { quantityOf } from '../../base/quantity.ts';
import { labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import type { Namespace, ResourceQuota } from '../generated/core/v1.ts';
import type { ClusterResourceQuota } from '../kinds/cluster/clusterresourcequotas/index.ts';
import type { KubeObject } from '../meta/object.ts';
import { addTo, listOf } from './amounts.ts';
import type { GroupResource } from './evaluators.ts';
import { calculateUsage } from './totals.ts';

/**
 * Whether the quota applies to the project: both selectors must match. A quota without selectors applies to no project.
 */
export function holdsFor({ spec }: ClusterResourceQuota, { metadata }: Namespace): boolean {
  const labels = spec?.selector?.labels ?? undefined;
  const annotations = Object.entries(spec?.selector?.annotations ?? {});
  if (labels === undefined && annotations.length === 0) return false;
  if (annotations.some(([key, value]) => metadata?.annotations?.[key] !== value)) return false;
  return labels === undefined || matchesLabels(labelSelectorOf(labels), metadata?.labels);
}

/** The quota in the form of a namespace quota, with the usage from its status. */
export function asResourceQuota(quota: ClusterResourceQuota): ResourceQuota {
  const spec = quota.spec?.quota ?? {};
  return {
    metadata: quota.metadata ?? {},
    spec,
    status: { hard: spec.hard ?? {}, used: quota.status?.total?.used ?? {} },
  };
}

type ObjectsOf = (kind: GroupResource, namespace: string) => readonly KubeObject[] | undefined;

/** Usage of all projects and of each project. `namespaces`: the projects to which the quota applies. */
export function clusterTotals(
  quota: ClusterResourceQuota,
  namespaces: readonly string[],
  objectsOf: ObjectsOf,
  nowMs: number,
): NonNullable<ClusterResourceQuota['status']> {
  const one = asResourceQuota(quota);
  const hard = one.spec?.hard ?? {};
  const total = new Map(Object.keys(hard).map((name) => [name, quantityOf(0)]));
  const each = [...namespaces].sort().map((namespace) => {
    const before = quota.status?.namespaces?.find((known) => known.namespace === namespace)?.status;
    const used = calculateUsage({ ...one, status: before ?? {} }, (kind) => objectsOf(kind, namespace), nowMs);
    addTo(total, used);
    return { namespace, status: { hard: { ...hard }, used: listOf(used) } };
  });
  return { total: { hard: { ...hard }, used: listOf(total) }, namespaces: each };
}
