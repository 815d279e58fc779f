/** quota.openshift.io/v1. Source: openshift/api quota/v1 of release 4.10. */
import { type DeclaredField, declarePackage } from './declare.ts';

const FIELDS: Readonly<Record<string, DeclaredField>> = {
  spec: ['!#ClusterResourceQuotaSpec', 'The limits, and the projects that they hold for together.'],
  status: ['#ClusterResourceQuotaStatus', 'Usage.'],
};

export const quotaPackage = declarePackage('quota.v1', {
  ClusterResourceQuota: {
    isKind: true,
    about: 'ClusterResourceQuota limits what several projects use together.',
    fields: FIELDS,
  },
  AppliedClusterResourceQuota: {
    isKind: true,
    about: 'AppliedClusterResourceQuota shows a ClusterResourceQuota in a project that it holds for.',
    fields: FIELDS,
  },
  ClusterResourceQuotaSpec: {
    about: 'ClusterResourceQuotaSpec holds the limits.',
    fields: {
      selector: ['!#ClusterResourceQuotaSelector', 'Projects that the quota holds for.'],
      quota: ['!#core.ResourceQuotaSpec', 'The limits.'],
    },
  },
  ClusterResourceQuotaSelector: {
    about: 'ClusterResourceQuotaSelector selects projects; both parts have to match.',
    fields: {
      labels: ['#meta.LabelSelector', 'Labels of the namespaces.'],
      annotations: ['{}string', 'Annotations of the namespaces.'],
    },
  },
  ClusterResourceQuotaStatus: {
    about: 'ClusterResourceQuotaStatus is the usage of the quota.',
    fields: {
      total: ['#core.ResourceQuotaStatus', 'Usage of all projects together.'],
      namespaces: ['[]#ResourceQuotaStatusByNamespace', 'Usage of each project.'],
    },
  },
  ResourceQuotaStatusByNamespace: {
    about: 'ResourceQuotaStatusByNamespace is the usage of one project.',
    fields: {
      namespace: ['!string', 'The project.'],
      status: ['!#core.ResourceQuotaStatus', 'Usage of the project.'],
    },
  },
});
