/** Source: k8s.io/kubernetes/pkg/apis/autoscaling/v2 defaults. */
import type { HorizontalPodAutoscaler, HPAScalingRules } from '../../../generated/autoscaling/v2.ts';

const CPU_UTILIZATION = 80;

export function setAutoscalerDefaults(autoscaler: HorizontalPodAutoscaler): void {
  autoscaler.spec ??= {} as NonNullable<HorizontalPodAutoscaler['spec']>;
  const spec = autoscaler.spec;
  spec.minReplicas ??= 1;
  if ((spec.metrics ?? []).length === 0) {
    spec.metrics = [
      {
        type: 'Resource',
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: CPU_UTILIZATION } },
      },
    ];
  }
  if (spec.behavior === undefined) return;
  spec.behavior.scaleUp = scaleUp(spec.behavior.scaleUp);
  spec.behavior.scaleDown = scaleDown(spec.behavior.scaleDown);
}

function scaleUp(rules: HPAScalingRules = {}): HPAScalingRules {
  return {
    ...rules,
    stabilizationWindowSeconds: rules.stabilizationWindowSeconds ?? 0,
    selectPolicy: rules.selectPolicy ?? 'Max',
    policies: rules.policies ?? [
      { type: 'Pods', value: 4, periodSeconds: 15 },
      { type: 'Percent', value: 100, periodSeconds: 15 },
    ],
  };
}

/** stabilizationWindowSeconds stays unset: its default is a setting of the controller. */
function scaleDown(rules: HPAScalingRules = {}): HPAScalingRules {
  return {
    ...rules,
    selectPolicy: rules.selectPolicy ?? 'Max',
    policies: rules.policies ?? [{ type: 'Percent', value: 100, periodSeconds: 15 }],
  };
}
