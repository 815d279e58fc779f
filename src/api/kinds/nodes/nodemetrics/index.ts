/**
 * CPU and memory usage of nodes. Requests are answered from the kubelets; nothing is stored. Source:
 * k8s.io/metrics/pkg/apis/metrics/v1beta1.
 */
import type { KubeObject } from '../../../meta/object.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';

export const METRICS_GROUP = 'metrics.k8s.io';

/** Quantities of `cpu` and `memory`. */
export type Usage = Readonly<Record<string, string>>;

export interface NodeMetrics extends KubeObject {
  timestamp?: string;
  /** Duration in Go's format. */
  window?: string;
  usage?: Usage;
}

export const nodeMetrics: KindDefinition<NodeMetrics> = {
  group: METRICS_GROUP,
  version: 'v1beta1',
  kind: 'NodeMetrics',
  plural: 'nodes',
  singular: '',
  listKind: 'NodeMetricsList',
  namespaced: false,
  verbs: ['get', 'list'],
  isComputed: true,
  schemaName: 'io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics',
  storagePrefix: 'metrics.k8s.io/nodes',
  strategy: {},
  columns: [
    nameColumn,
    column<NodeMetrics>('cpu', 'CPU usage over the window.', ({ usage }) => usage?.['cpu'] ?? ''),
    column<NodeMetrics>('memory', 'Working set.', ({ usage }) => usage?.['memory'] ?? ''),
    column<NodeMetrics>('Window', 'The time over which usage was measured.', ({ window }) => window ?? ''),
  ],
};
