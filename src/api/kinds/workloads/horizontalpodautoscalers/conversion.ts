/**
 * Conversion of autoscalers in v1 and v2beta1. v2 fields that these versions lack are shown in annotations. Source:
 * k8s.io/kubernetes/pkg/apis/autoscaling/{v1,v2beta1} conversion.
 */

import { parseJson } from '../../../../base/json/json.ts';
import type { HorizontalPodAutoscaler } from '../../../generated/autoscaling/v2.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../meta/object.ts';
import type { KindAlias } from '../../../registry/definition.ts';
import { pruneAndCheck } from '../../../schema/decode.ts';
import { schemaOfType } from '../../../schema/index.ts';
import { currentMetrics, isObject, olderMetrics } from './metrics.ts';

const METRICS = 'autoscaling.alpha.kubernetes.io/metrics';
const CURRENT_METRICS = 'autoscaling.alpha.kubernetes.io/current-metrics';
const CONDITIONS = 'autoscaling.alpha.kubernetes.io/conditions';
const BEHAVIOR = 'autoscaling.alpha.kubernetes.io/behavior';
const ANNOTATIONS = [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR];

interface Parts {
  readonly object: KubeObject;
  readonly spec: JsonObject;
  readonly status: JsonObject;
  readonly annotations: Record<string, string>;
}

function partsOf(object: KubeObject): Parts {
  const { spec, status } = object as { spec?: JsonObject; status?: JsonObject };
  return { object, spec: { ...spec }, status: { ...status }, annotations: { ...object.metadata?.annotations } };
}

function assembled({ object, spec, status, annotations }: Parts): KubeObject {
  const { annotations: _annotations, ...metadata } = object.metadata ?? {};
  const annotated = Object.keys(annotations).length > 0;
  return {
    ...object,
    ...(object.metadata === undefined && !annotated
      ? {}
      : { metadata: annotated ? { ...metadata, annotations } : metadata }),
    ...('spec' in object || Object.keys(spec).length > 0 ? { spec } : {}),
    ...('status' in object || Object.keys(status).length > 0 ? { status } : {}),
  } as KubeObject;
}

/**
 * Reads JSON from an annotation. Users can write these annotations, so the value is decoded like a request body and
 * fields of a wrong type are dropped.
 */
function read(annotations: Record<string, string>, name: string, type: string, field?: string): JsonValue | undefined {
  const text = annotations[name];
  delete annotations[name];
  const schema = schemaOfType(type);
  if (text === undefined || schema === undefined) return undefined;
  try {
    const value = parseJson(text) as JsonValue;
    const holder: JsonObject = field === undefined ? (value as JsonObject) : { [field]: value };
    if (!isObject(holder) || pruneAndCheck(schema, holder).typeErrors.length > 0) return undefined;
    return field === undefined ? holder : holder[field];
  } catch {
    return undefined;
  }
}

const OLDER = 'io.k8s.api.autoscaling.v2beta1';

function takeBehavior({ spec, annotations }: Parts): void {
  const behavior = read(annotations, BEHAVIOR, 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior');
  if (behavior !== undefined) spec['behavior'] = behavior;
}

function giveBehavior({ spec, annotations }: Parts): void {
  const { behavior } = spec;
  delete spec['behavior'];
  if (behavior !== undefined) annotations[BEHAVIOR] = JSON.stringify(behavior);
}

export const v2beta1: KindAlias<HorizontalPodAutoscaler> = {
  group: 'autoscaling',
  version: 'v2beta1',
  deprecated: { since: '1.22', removed: '1.25' },
  convertTo(object) {
    const parts = partsOf(object);
    const { spec, status } = parts;
    if (spec['metrics'] !== undefined) spec['metrics'] = currentMetrics(spec['metrics'], 'spec');
    if (status['currentMetrics'] !== undefined) {
      status['currentMetrics'] = currentMetrics(status['currentMetrics'], 'status');
    }
    takeBehavior(parts);
    return assembled(parts) as HorizontalPodAutoscaler;
  },
  convertFrom(object) {
    const parts = partsOf(object);
    const { spec, status } = parts;
    if (spec['metrics'] !== undefined) spec['metrics'] = olderMetrics(spec['metrics'], 'spec');
    if (status['currentMetrics'] !== undefined) {
      status['currentMetrics'] = olderMetrics(status['currentMetrics'], 'status');
    }
    giveBehavior(parts);
    return assembled(parts);
  },
};

/** Whether the metric is the CPU utilization, the only metric that v1 stores in a field. */
function isCpu(metric: JsonValue): boolean {
  if (!isObject(metric)) return false;
  const { type, resource } = metric;
  if (type !== 'Resource' || !isObject(resource) || resource['name'] !== 'cpu') return false;
  const { target } = resource;
  return isObject(target) && target['averageUtilization'] !== undefined;
}

export const v1: KindAlias<HorizontalPodAutoscaler> = {
  group: 'autoscaling',
  version: 'v1',
  skeleton: { spec: { scaleTargetRef: {} }, status: {} },
  convertTo(object) {
    const parts = partsOf(object);
    const { spec, status, annotations } = parts;
    const others = currentMetrics(
      read(annotations, METRICS, `${OLDER}.HorizontalPodAutoscalerSpec`, 'metrics'),
      'spec',
    );
    const utilization = spec['targetCPUUtilizationPercentage'];
    delete spec['targetCPUUtilizationPercentage'];
    const cpu: JsonObject[] =
      utilization === undefined
        ? []
        : [
            {
              type: 'Resource',
              resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: utilization } },
            },
          ];
    if (others.length + cpu.length > 0) spec['metrics'] = [...others, ...cpu];
    takeStatus(status, annotations);
    takeBehavior(parts);
    return assembled(parts) as HorizontalPodAutoscaler;
  },
  convertFrom(object) {
    const parts = partsOf(object);
    const { spec, status, annotations } = parts;
    // If the stored object has annotations with these names, users have set them. They are removed, because clients of
    // the older version would read them as fields.
    for (const name of ANNOTATIONS) delete annotations[name];
    const metrics = Array.isArray(spec['metrics']) ? spec['metrics'] : [];
    delete spec['metrics'];
    const cpu = metrics.find(isCpu);
    if (isObject(cpu)) {
      const target = (cpu['resource'] as { target: { averageUtilization: number } }).target;
      spec['targetCPUUtilizationPercentage'] = target.averageUtilization;
    }
    const others = metrics.filter((metric) => metric !== cpu);
    if (others.length > 0) annotations[METRICS] = JSON.stringify(olderMetrics(others, 'spec'));
    giveStatus(status, annotations);
    giveBehavior(parts);
    return assembled(parts);
  },
};

function takeStatus(status: JsonObject, annotations: Record<string, string>): void {
  const measured = currentMetrics(
    read(annotations, CURRENT_METRICS, `${OLDER}.HorizontalPodAutoscalerStatus`, 'currentMetrics'),
    'status',
  );
  const utilization = status['currentCPUUtilizationPercentage'];
  delete status['currentCPUUtilizationPercentage'];
  if (measured.length > 0) status['currentMetrics'] = measured;
  else if (utilization !== undefined) {
    status['currentMetrics'] = [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: utilization } } },
    ];
  }
  const conditions = read(
    annotations,
    CONDITIONS,
    'io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus',
    'conditions',
  );
  if (conditions !== undefined) status['conditions'] = conditions;
}

function giveStatus(status: JsonObject, annotations: Record<string, string>): void {
  const { currentMetrics: measured, conditions } = status;
  delete status['currentMetrics'];
  delete status['conditions'];
  if (Array.isArray(measured) && measured.length > 0) {
    annotations[CURRENT_METRICS] = JSON.stringify(olderMetrics(measured, 'status'));
    for (const metric of measured) {
      const resource = isObject(metric) ? metric['resource'] : undefined;
      const now = isObject(resource) && resource['name'] === 'cpu' ? resource['current'] : undefined;
      const utilization = isObject(now) ? now['averageUtilization'] : undefined;
      if (utilization !== undefined) status['currentCPUUtilizationPercentage'] = utilization;
    }
  }
  if (Array.isArray(conditions) && conditions.length > 0) annotations[CONDITIONS] = JSON.stringify(conditions);
}
