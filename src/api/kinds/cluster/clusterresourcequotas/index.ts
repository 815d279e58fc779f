/**
 * Quotas that span several projects. Source: openshift/api quota/v1, and pkg/quota/apis/quota/validation of
 * openshift/openshift-apiserver.
 */
import type { ResourceQuotaSpec, ResourceQuotaStatus } from '../../../generated/core/v1.ts';
import type { LabelSelector } from '../../../generated/meta/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { column, labelsText, nameColumn, selectorText } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';

export interface ClusterResourceQuota extends KubeObject {
  spec?: {
    selector?: { labels?: LabelSelector | null; annotations?: Record<string, string> | null };
    quota?: ResourceQuotaSpec;
  };
  status?: {
    total?: ResourceQuotaStatus;
    namespaces?: { namespace?: string; status?: ResourceQuotaStatus }[];
  };
}

function validate({ spec }: ClusterResourceQuota): FieldError[] {
  const { labels, annotations } = spec?.selector ?? {};
  const at = 'spec.selector';
  const errors: FieldError[] = [];
  if ((labels === undefined || labels === null) && Object.keys(annotations ?? {}).length === 0)
    errors.push(fieldError.required(at, 'must restrict the selected projects'));
  if (labels !== undefined && labels !== null) {
    if (Object.keys(labels.matchLabels ?? {}).length + (labels.matchExpressions ?? []).length === 0)
      errors.push(fieldError.invalid(`${at}.labels`, labels, 'must restrict the selected projects'));
    errors.push(...validateLabelSelector(labels, `${at}.labels`));
  }
  return errors;
}

const { strategy, statusStrategy } = specStatusStrategies<ClusterResourceQuota>({
  validate,
  validateUpdate: validate,
  generations: false,
});

const columns = [
  nameColumn,
  column<ClusterResourceQuota>('Label Selector', 'Labels of the projects.', ({ spec }) =>
    selectorText(spec?.selector?.labels ?? undefined),
  ),
  column<ClusterResourceQuota>('Annotation Selector', 'Annotations of the projects.', ({ spec }) =>
    labelsText(spec?.selector?.annotations ?? undefined),
  ),
];

export const clusterResourceQuotas: KindDefinition<ClusterResourceQuota> = {
  group: 'quota.openshift.io',
  version: 'v1',
  kind: 'ClusterResourceQuota',
  plural: 'clusterresourcequotas',
  singular: 'clusterresourcequota',
  listKind: 'ClusterResourceQuotaList',
  namespaced: false,
  shortNames: ['clusterquota'],
  verbs: ALL_VERBS,
  schemaName: 'com.github.openshift.api.quota.v1.ClusterResourceQuota',
  returnsDeleted: 'undocumented',
  storagePrefix: 'openshift.io/clusterresourcequotas',
  strategy,
  statusStrategy,
  columns,
};

/** Cluster resource quotas that apply to a project, as read-only objects in the project's namespace. */
export const appliedClusterResourceQuotas: KindDefinition<ClusterResourceQuota> = {
  group: 'quota.openshift.io',
  version: 'v1',
  kind: 'AppliedClusterResourceQuota',
  plural: 'appliedclusterresourcequotas',
  singular: 'appliedclusterresourcequota',
  listKind: 'AppliedClusterResourceQuotaList',
  namespaced: true,
  verbs: ['get', 'list'],
  schemaName: 'com.github.openshift.api.quota.v1.AppliedClusterResourceQuota',
  storagePrefix: '',
  isComputed: true,
  strategy: {},
  columns,
};
