/** Resource quotas. Source: k8s.io/kubernetes/pkg/registry/core/resourcequota. */
import type { ResourceQuota } from '../../../generated/core/v1.ts';
import { ageColumn, column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateQuota, validateQuotaStatus, validateQuotaUpdate } from './validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<ResourceQuota>({
  generations: false,
  validate: validateQuota,
  validateUpdate: validateQuotaUpdate,
  validateStatusUpdate: validateQuotaStatus,
});

/** Usage in the form `cpu: 1/2, pods: 0/10`, of limits or of all other resources. */
function usage(quota: ResourceQuota, of: 'limits' | 'requests'): string {
  const { hard = {}, used = {} } = quota.status ?? {};
  return Object.keys(hard)
    .filter((name) => name.startsWith('limits.') === (of === 'limits'))
    .sort()
    .map((name) => `${name}: ${Object.hasOwn(used, name) ? used[name] : '0'}/${hard[name]}`)
    .join(', ');
}

export const resourceQuotas: KindDefinition<ResourceQuota> = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  singular: 'resourcequota',
  listKind: 'ResourceQuotaList',
  namespaced: true,
  shortNames: ['quota'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.ResourceQuota',
  skeleton: { spec: {}, status: {} },
  returnsDeleted: true,
  storagePrefix: 'resourcequotas',
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<ResourceQuota>('Request', 'Used and maximum requests.', (each) => usage(each, 'requests')),
    column<ResourceQuota>('Limit', 'Used and maximum limits.', (each) => usage(each, 'limits')),
    ageColumn,
  ],
};
