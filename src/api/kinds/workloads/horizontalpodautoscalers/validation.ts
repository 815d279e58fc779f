/** Source: k8s.io/kubernetes/pkg/apis/autoscaling/validation. */

import { dns1123LabelErrors, pathSegmentErrors } from '../../../../base/names.ts';
import { tryParseQuantity } from '../../../../base/quantity.ts';
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscaler,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from '../../../generated/autoscaling/v2.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import {
  validateNameRule,
  validateNonNegative,
  validateOneOf,
  validateOptionalOneOf,
} from '../../../validation/scalars.ts';
import { validateLabelSelector } from '../../../validation/selectors.ts';

const MAX_PERIOD_SECONDS = 1800;
const MAX_WINDOW_SECONDS = 3600;

export function validateAutoscaler(autoscaler: HorizontalPodAutoscaler): FieldError[] {
  const spec = autoscaler.spec;
  const errors: FieldError[] = [];
  const min = spec?.minReplicas;
  const max = spec?.maxReplicas ?? 0;
  // Zero replicas need the feature gate HPAScaleToZero, which is alpha upstream and not supported here.
  if (min !== undefined && min < 1) {
    errors.push(fieldError.invalid('spec.minReplicas', min, 'must be greater than or equal to 1'));
  }
  if (max < 1) errors.push(fieldError.invalid('spec.maxReplicas', max, 'must be greater than 0'));
  if (min !== undefined && max < min) {
    errors.push(fieldError.invalid('spec.maxReplicas', max, 'must be greater than or equal to `minReplicas`'));
  }
  errors.push(...validateReference(spec?.scaleTargetRef, 'spec.scaleTargetRef'));
  errors.push(...validateMetrics(spec?.metrics, 'spec.metrics'));
  const scalesToZero = (spec?.metrics ?? []).some(({ type }) => type === 'Object' || type === 'External');
  if (min === 0 && !scalesToZero) {
    const detail = 'must specify at least one Object or External metric to support scaling to zero replicas';
    errors.push(fieldError.forbidden('spec.metrics', detail));
  }
  errors.push(...validateRules(spec?.behavior?.scaleUp, 'spec.behavior.scaleUp'));
  errors.push(...validateRules(spec?.behavior?.scaleDown, 'spec.behavior.scaleDown'));
  return errors;
}

/**
 * Requires an API group in the scale target (except for a ReplicationController, which is in the core group) and allows
 * the core group in object metrics. Invalid versions that the stored object already has are accepted.
 */
export function validateVersions(autoscaler: HorizontalPodAutoscaler, old?: HorizontalPodAutoscaler): FieldError[] {
  const errors: FieldError[] = [];
  const target = autoscaler.spec?.scaleTargetRef;
  const before = old?.spec?.scaleTargetRef;
  const kept =
    old !== undefined && (before?.apiVersion ?? '') === (target?.apiVersion ?? '') && before?.kind === target?.kind;
  const grouped = target?.kind !== 'ReplicationController';
  if (!kept) errors.push(...validateVersion(target?.apiVersion, { grouped }, 'spec.scaleTargetRef.apiVersion'));
  const versions = (given?: HorizontalPodAutoscaler): FieldError[] =>
    (given?.spec?.metrics ?? []).flatMap(({ object }, index) =>
      object === undefined
        ? []
        : validateVersion(
            object.describedObject?.apiVersion,
            { grouped: false },
            `spec.metrics[${index}].object.describedObject.apiVersion`,
          ),
    );
  return versions(old).length > 0 ? errors : [...errors, ...versions(autoscaler)];
}

function validateVersion(version = '', { grouped }: { readonly grouped: boolean }, path: string): FieldError[] {
  const parts = version === '/' ? [''] : version.split('/');
  if (parts.length > 2) return [fieldError.invalid(path, version, `unexpected GroupVersion string: ${version}`)];
  const group = parts.length === 2 ? parts[0] : '';
  return grouped && group === '' ? [fieldError.invalid(path, version, 'apiVersion must specify API group')] : [];
}

export function validateAutoscalerStatus(autoscaler: HorizontalPodAutoscaler): FieldError[] {
  return [
    ...validateNonNegative(autoscaler.status?.currentReplicas, 'status.currentReplicas'),
    ...validateNonNegative(autoscaler.status?.desiredReplicas, 'status.desiredReplicas'),
  ];
}

function validateReference(reference: CrossVersionObjectReference | undefined, path: string): FieldError[] {
  return (['kind', 'name'] as const).flatMap((field) => {
    const value = reference?.[field];
    const at = `${path}.${field}`;
    return isSet(value) ? validateNameRule(value, pathSegmentErrors, at) : [fieldError.required(at)];
  });
}

const SOURCES: Readonly<Record<string, 'object' | 'pods' | 'resource' | 'containerResource' | 'external'>> = {
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
  External: 'external',
};

function validateMetrics(metrics: readonly MetricSpec[] | undefined, path: string): FieldError[] {
  return (metrics ?? []).flatMap((metric, index) => validateMetric(metric, `${path}[${index}]`));
}

function validateMetric(metric: MetricSpec, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const type = metric.type ?? '';
  const source = Object.hasOwn(SOURCES, type) ? SOURCES[type] : undefined;
  const unsupported = fieldError.notSupported(`${at}.type`, type, Object.keys(SOURCES).sort());
  if (type === '') errors.push(fieldError.required(`${at}.type`, 'must specify a metric source type'));
  if (source === undefined) errors.push(unsupported);
  const given = CHECKED.filter((field) => metric[field] !== undefined);
  const [first] = given;
  if (first !== undefined) errors.push(...validateMetricSource({ [first]: metric[first] }, at));
  // Upstream reports this error twice.
  if (source === undefined) errors.push(unsupported);
  else if (!given.includes(source)) {
    errors.push(fieldError.required(`${at}.${source}`, 'must populate information for the given metric source'));
  }
  for (const extra of given.length > 1 ? given.filter((field) => field !== source) : []) {
    errors.push(fieldError.forbidden(`${at}.${extra}`, 'must populate the given metric source only'));
  }
  return errors;
}

/** If several sources are set, only the first one in this order is validated. */
const CHECKED = ['object', 'external', 'pods', 'resource', 'containerResource'] as const;

function validateMetricSource(metric: Partial<MetricSpec>, at: string): FieldError[] {
  const errors: FieldError[] = [];
  if (metric.object !== undefined) {
    errors.push(...validateReference(metric.object.describedObject, `${at}.object.describedObject`));
    errors.push(...validateIdentifier(metric.object.metric, `${at}.object.metric`));
    errors.push(...validateTarget(metric.object.target, `${at}.object.target`, TARGETS.object));
  }
  if (metric.pods !== undefined) {
    errors.push(...validateIdentifier(metric.pods.metric, `${at}.pods.metric`));
    errors.push(...validateTarget(metric.pods.target, `${at}.pods.target`, TARGETS.pods));
  }
  if (metric.external !== undefined) {
    errors.push(...validateIdentifier(metric.external.metric, `${at}.external.metric`));
    errors.push(...validateTarget(metric.external.target, `${at}.external.target`, TARGETS.external));
  }
  for (const field of ['resource', 'containerResource'] as const) {
    const resource = metric[field];
    if (resource === undefined) continue;
    if (!isSet(resource.name)) {
      errors.push(fieldError.required(`${at}.${field}.name`, 'must specify a resource name'));
    }
    if (field === 'containerResource') {
      const container = metric.containerResource?.container;
      errors.push(
        ...(isSet(container)
          ? validateNameRule(container, dns1123LabelErrors, `${at}.${field}.container`)
          : [fieldError.required(`${at}.${field}.container`, 'must specify a container')]),
      );
    }
    errors.push(...validateTarget(resource.target, `${at}.${field}.target`, TARGETS.resource));
  }
  return errors;
}

function validateIdentifier(metric: MetricIdentifier | undefined, path: string): FieldError[] {
  const name = metric?.name;
  const errors = isSet(name)
    ? validateNameRule(name, pathSegmentErrors, `${path}.name`)
    : [fieldError.required(`${path}.name`, 'must specify a metric name')];
  if (metric?.selector !== undefined) errors.push(...validateLabelSelector(metric.selector, `${path}.selector`));
  return errors;
}

type TargetField = 'value' | 'averageValue' | 'averageUtilization';

interface TargetRule {
  /** At least one of these fields must be set. */
  readonly fields: readonly TargetField[];
  /** Field and text of the error if none is set. */
  readonly missing: readonly [field: TargetField, detail: string];
  readonly both?: readonly [field: TargetField, detail: string];
}

const TARGETS: Readonly<Record<'object' | 'pods' | 'resource' | 'external', TargetRule>> = {
  object: {
    fields: ['value', 'averageValue'],
    missing: ['averageValue', 'must set either a target value or averageValue'],
  },
  pods: { fields: ['averageValue'], missing: ['averageValue', 'must specify a positive target averageValue'] },
  resource: {
    fields: ['averageUtilization', 'averageValue'],
    missing: ['averageUtilization', 'must set either a target raw value or a target utilization'],
    both: ['averageValue', 'may not set both a target raw value and a target utilization'],
  },
  external: {
    fields: ['value', 'averageValue'],
    missing: ['averageValue', 'must set either a target value for metric or a per-pod target'],
    both: ['value', 'may not set both a target value for metric and a per-pod target'],
  },
};

function validateTarget(target: MetricTarget | undefined, path: string, rule: TargetRule): FieldError[] {
  const errors: FieldError[] = [];
  const type = target?.type ?? '';
  if (type === '') errors.push(fieldError.required(`${path}.type`, 'must specify a metric target type'));
  if (!['Utilization', 'Value', 'AverageValue'].includes(type)) {
    errors.push(fieldError.invalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const field of ['value', 'averageValue'] as const) {
    const text = target?.[field];
    const quantity = text === undefined ? undefined : tryParseQuantity(text);
    if (quantity !== undefined && quantity.nanos <= 0n) {
      errors.push(fieldError.invalid(`${path}.${field}`, text, 'must be positive'));
    }
  }
  const utilization = target?.averageUtilization;
  if (utilization !== undefined && utilization < 1) {
    errors.push(fieldError.invalid(`${path}.averageUtilization`, utilization, 'must be greater than 0'));
  }
  const given = rule.fields.filter((field) => target?.[field] !== undefined);
  if (given.length === 0) {
    const [field, detail] = rule.missing;
    errors.push(fieldError.required(`${path}.${field}`, detail));
  } else if (given.length > 1 && rule.both !== undefined) {
    const [field, detail] = rule.both;
    errors.push(fieldError.forbidden(`${path}.${field}`, detail));
  }
  return errors;
}

function validateRules(rules: HPAScalingRules | undefined, path: string): FieldError[] {
  if (rules === undefined) return [];
  const errors: FieldError[] = [];
  const window = rules.stabilizationWindowSeconds;
  if ((window ?? 0) < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(fieldError.invalid(`${path}.stabilizationWindowSeconds`, window, detail));
  }
  if ((window ?? 0) > MAX_WINDOW_SECONDS) {
    const detail = `must be less than or equal to ${MAX_WINDOW_SECONDS}`;
    errors.push(fieldError.invalid(`${path}.stabilizationWindowSeconds`, window, detail));
  }
  errors.push(...validateOptionalOneOf(rules.selectPolicy, ['Disabled', 'Max', 'Min'], `${path}.selectPolicy`));
  if ((rules.policies ?? []).length === 0) {
    errors.push(fieldError.required(`${path}.policies`, 'must specify at least one Policy'));
  }
  (rules.policies ?? []).forEach((policy, index) => {
    const at = `${path}.policies[${index}]`;
    errors.push(...validateOneOf(policy.type ?? '', ['Percent', 'Pods'], `${at}.type`));
    for (const field of ['value', 'periodSeconds'] as const) {
      if ((policy[field] ?? 0) <= 0) {
        errors.push(fieldError.invalid(`${at}.${field}`, policy[field] ?? 0, 'must be greater than zero'));
      }
    }
    if ((policy.periodSeconds ?? 0) > MAX_PERIOD_SECONDS) {
      const detail = `must be less than or equal to ${MAX_PERIOD_SECONDS}`;
      errors.push(fieldError.invalid(`${at}.periodSeconds`, policy.periodSeconds, detail));
    }
  });
  const tolerance = rules.tolerance === undefined ? undefined : tryParseQuantity(rules.tolerance);
  if (tolerance !== undefined && tolerance.nanos < 0n) {
    errors.push(fieldError.invalid(`${path}.tolerance`, rules.tolerance, 'must be greater than or equal to 0'));
  }
  return errors;
}
