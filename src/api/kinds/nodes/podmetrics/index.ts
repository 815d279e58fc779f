/**
 * CPU and memory usage of containers. Requests are answered from the kubelets; nothing is stored. Source:
 * k8s.io/metrics/pkg/apis/metrics/v1beta1.
 */
import {
  addQuantity,
  canonicalQuantity,
  formatQuantity,
  parseQuantity,
  type Quantity,
} from '../../../../base/quantity.ts';
import type { KubeObject } from '../../../meta/object.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { METRICS_GROUP, type Usage } from '../nodemetrics/index.ts';

export interface PodMetrics extends KubeObject {
  timestamp?: string;
  window?: string;
  containers?: { readonly name: string; readonly usage: Usage }[];
}

function totalOf({ containers = [] }: PodMetrics, resource: string): string {
  const total = containers.reduce<Quantity | undefined>((sum, { usage }) => {
    const quantity = parseQuantity(usage[resource] ?? '0');
    return sum === undefined ? quantity : addQuantity(sum, quantity);
  }, undefined);
  return total === undefined ? '' : canonicalQuantity(formatQuantity(total));
}

export const podMetrics: KindDefinition<PodMetrics> = {
  group: METRICS_GROUP,
  version: 'v1beta1',
  kind: 'PodMetrics',
  plural: 'pods',
  singular: '',
  listKind: 'PodMetricsList',
  namespaced: true,
  verbs: ['get', 'list'],
  isComputed: true,
  schemaName: 'io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics',
  storagePrefix: 'metrics.k8s.io/pods',
  strategy: {},
  columns: [
    nameColumn,
    column<PodMetrics>('cpu', 'CPU usage over the window.', (each) => totalOf(each, 'cpu')),
    column<PodMetrics>('memory', 'Working set.', (each) => totalOf(each, 'memory')),
    column<PodMetrics>('Window', 'The time over which usage was measured.', ({ window }) => window ?? ''),
  ],
};
