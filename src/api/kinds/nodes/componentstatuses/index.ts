/**
 * Component statuses, deprecated since 1.19 in favour of the health endpoints. The kind is still in discovery; its list
 * is always empty. Source: k8s.io/kubernetes/pkg/registry/core/componentstatus.
 */
import type { ComponentStatus } from '../../../generated/core/v1.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';

function healthOf(each: ComponentStatus) {
  return each.conditions?.find(({ type }) => type === 'Healthy');
}

function statusText(each: ComponentStatus): string {
  const status = healthOf(each)?.status;
  return status === 'True' ? 'Healthy' : status === 'False' ? 'Unhealthy' : 'Unknown';
}

export const componentStatuses: KindDefinition<ComponentStatus> = {
  group: '',
  version: 'v1',
  kind: 'ComponentStatus',
  plural: 'componentstatuses',
  singular: 'componentstatus',
  listKind: 'ComponentStatusList',
  namespaced: false,
  shortNames: ['cs'],
  verbs: ['get', 'list'],
  deprecation: 'v1 ComponentStatus is deprecated in v1.19+',
  schemaName: 'io.k8s.api.core.v1.ComponentStatus',
  storagePrefix: 'componentstatuses',
  strategy: {},
  columns: [
    nameColumn,
    column<ComponentStatus>('Status', 'Whether the component is healthy.', statusText),
    column<ComponentStatus>('Message', 'Message of the component.', (each) => healthOf(each)?.message ?? ''),
    column<ComponentStatus>('Error', 'Error of the component.', (each) => healthOf(each)?.error ?? ''),
  ],
};
