/**
 * Horizontal pod autoscalers. Source: k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler,
 * pkg/printers/internalversion.
 */
import type { HorizontalPodAutoscaler, MetricSpec, MetricStatus } from '../../../generated/autoscaling/v2.ts';
import { ageColumn, column, NONE, nameColumn } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { sameShape } from '../../../registry/versions.ts';
import { v1, v2beta1 } from './conversion.ts';
import { setAutoscalerDefaults } from './defaults.ts';
import { validateAutoscaler, validateAutoscalerStatus, validateVersions } from './validation.ts';

type Autoscaler = HorizontalPodAutoscaler;

const { strategy, statusStrategy } = specStatusStrategies<Autoscaler>({
  generations: false,
  initialStatus: () => ({ currentReplicas: 0, desiredReplicas: 0 }),
  validate: validateAutoscaler,
  validateCreate: (autoscaler) => validateVersions(autoscaler),
  validateUpdate: validateVersions,
  validateStatusUpdate: validateAutoscalerStatus,
});

const UNKNOWN = '<unknown>';
const SHOWN = 2;

type Values = { readonly value?: string; readonly averageValue?: string; readonly averageUtilization?: number };

/** Current and target value of one metric, for the table. */
function metricText(spec: MetricSpec, status: MetricStatus | undefined): string {
  switch (spec.type) {
    case 'External':
      return average(spec.external?.target, status?.external?.current);
    case 'Object':
      return average(spec.object?.target, status?.object?.current);
    case 'Pods':
      return `${status?.pods?.current?.averageValue ?? UNKNOWN}/${spec.pods?.target?.averageValue ?? ''}`;
    case 'Resource':
      return utilization(spec.resource?.name, spec.resource?.target, status?.resource?.current);
    case 'ContainerResource':
      return utilization(
        spec.containerResource?.name,
        spec.containerResource?.target,
        status?.containerResource?.current,
      );
    default:
      return '<unknown type>';
  }
}

function average(target: Values | undefined, current: Values | undefined): string {
  if (target?.averageValue !== undefined) return `${current?.averageValue ?? UNKNOWN}/${target.averageValue} (avg)`;
  return `${current?.value ?? UNKNOWN}/${target?.value ?? ''}`;
}

function utilization(name: string | undefined, target: Values | undefined, current: Values | undefined): string {
  if (target?.averageValue !== undefined)
    return `${name ?? ''}: ${current?.averageValue ?? UNKNOWN}/${target.averageValue}`;
  const measured = current?.averageUtilization === undefined ? UNKNOWN : `${current.averageUtilization}%`;
  const wanted = target?.averageUtilization === undefined ? '<auto>' : `${target.averageUtilization}%`;
  return `${name ?? ''}: ${measured}/${wanted}`;
}

function targetsText(autoscaler: Autoscaler): string {
  const specs = autoscaler.spec?.metrics ?? [];
  if (specs.length === 0) return NONE;
  const all = specs.map((spec, index) => metricText(spec, autoscaler.status?.currentMetrics?.[index]));
  const shown = all.slice(0, SHOWN).join(', ');
  return all.length > SHOWN ? `${shown} + ${all.length - SHOWN} more...` : shown;
}

export const horizontalPodAutoscalers: KindDefinition<Autoscaler> = {
  group: 'autoscaling',
  version: 'v2',
  kind: 'HorizontalPodAutoscaler',
  plural: 'horizontalpodautoscalers',
  singular: 'horizontalpodautoscaler',
  listKind: 'HorizontalPodAutoscalerList',
  namespaced: true,
  shortNames: ['hpa'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
  skeleton: { spec: { scaleTargetRef: {} }, status: { currentMetrics: null } },
  storagePrefix: 'horizontalpodautoscalers',
  aliases: [v1, sameShape('autoscaling', 'v2beta2', '1.23', '1.26'), v2beta1],
  setDefaults: setAutoscalerDefaults,
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<Autoscaler>('Reference', 'Object that is scaled.', (each) => {
      const target = each.spec?.scaleTargetRef;
      return `${target?.kind ?? ''}/${target?.name ?? ''}`;
    }),
    column<Autoscaler>('Targets', 'Metrics with their current and target values.', targetsText),
    column<Autoscaler>('MinPods', 'Minimum number of pods.', (each) => String(each.spec?.minReplicas ?? '<unset>')),
    column<Autoscaler>('MaxPods', 'Maximum number of pods.', (each) => each.spec?.maxReplicas ?? 0),
    column<Autoscaler>('Replicas', 'Current number of pods.', (each) => each.status?.currentReplicas ?? 0),
    ageColumn,
  ],
};
