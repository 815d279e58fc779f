/** Validation of stateful sets. Source: k8s.io/kubernetes/pkg/apis/apps/validation ValidateStatefulSet. */
import type { StatefulSet, StatefulSetSpec } from '../../../generated/apps/v1.ts';
import type { Volume } from '../../../generated/core/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet } from '../../../meta/validation.ts';
import { percentOf, validateCountOrPercent, validateNonNegative, validateOneOf } from '../../../validation/scalars.ts';
import { validateCollisions, validateWorkloadSelector, validateWorkloadTemplate } from '../workload/validation.ts';

export function validateStatefulSet(set: StatefulSet): FieldError[] {
  const spec = set.spec;
  const ordinals = (spec as { ordinals?: { start?: number } } | undefined)?.ordinals;
  return [
    ...validatePodManagement(spec?.podManagementPolicy),
    ...validateStrategy(spec?.updateStrategy),
    ...validateRetention(spec?.persistentVolumeClaimRetentionPolicy),
    ...validateNonNegative(spec?.replicas, 'spec.replicas'),
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateNonNegative(ordinals?.start, 'spec.ordinals.start'),
    ...validateWorkloadSelector(spec?.selector, 'statefulset'),
    ...validateWorkloadTemplate(withClaimVolumes(spec), spec?.selector, 'StatefulSet'),
  ];
}

/**
 * The template as pods will have it: every claim template adds a volume of the same name or replaces the template's
 * volume of that name (pkg/controller/statefulset updateStorage).
 */
function withClaimVolumes(spec: StatefulSetSpec | undefined): StatefulSetSpec['template'] | undefined {
  const template = spec?.template;
  const claims = new Map<string, Volume>();
  for (const { metadata } of spec?.volumeClaimTemplates ?? []) {
    const name = metadata?.name ?? '';
    claims.set(name, { name, persistentVolumeClaim: { claimName: name } });
  }
  if (template?.spec === undefined || claims.size === 0) return template;
  const volumes = (template.spec.volumes ?? []).map((volume) => {
    const claim = claims.get(volume.name);
    claims.delete(volume.name);
    return claim ?? volume;
  });
  return { ...template, spec: { ...template.spec, volumes: [...volumes, ...claims.values()] } };
}

function validatePodManagement(policy: string | undefined): FieldError[] {
  const path = 'spec.podManagementPolicy';
  if (!isSet(policy)) return [fieldError.required(path)];
  return policy === 'OrderedReady' || policy === 'Parallel'
    ? []
    : [fieldError.invalid(path, policy, "must be 'OrderedReady' or 'Parallel'")];
}

function validateStrategy(strategy: StatefulSetSpec['updateStrategy']): FieldError[] {
  const path = 'spec.updateStrategy';
  const rolling = strategy?.rollingUpdate;
  switch (strategy?.type ?? '') {
    case '':
      return [fieldError.required(path)];
    case 'OnDelete':
      return rolling === undefined
        ? []
        : [fieldError.invalid(`${path}.rollingUpdate`, rolling, "only allowed for updateStrategy 'RollingUpdate'")];
    case 'RollingUpdate':
      return [
        ...validateNonNegative(rolling?.partition, `${path}.rollingUpdate.partition`),
        ...validateUnavailable(rolling?.maxUnavailable, `${path}.rollingUpdate.maxUnavailable`),
      ];
    default:
      return [fieldError.invalid(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")];
  }
}

function validateUnavailable(count: number | string | undefined, path: string): FieldError[] {
  const errors = validateCountOrPercent(count, path);
  if (count === 0 || percentOf(count) === 0) errors.push(fieldError.invalid(path, count, 'cannot be 0'));
  if ((percentOf(count) ?? 0) > 100) errors.push(fieldError.invalid(path, count, 'must not be greater than 100%'));
  return errors;
}

function validateRetention(policy: StatefulSetSpec['persistentVolumeClaimRetentionPolicy']): FieldError[] {
  if (policy === undefined) return [];
  return (['whenDeleted', 'whenScaled'] as const).flatMap((field) =>
    validateOneOf(policy[field] ?? '', ['Retain', 'Delete'], `spec.persistentVolumeClaimRetentionPolicy.${field}`),
  );
}

/** Fields of the spec that may change. */
const MUTABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

export function validateStatefulSetUpdate(set: StatefulSet, old: StatefulSet): FieldError[] {
  const fixed = (spec: StatefulSetSpec | undefined): unknown =>
    Object.fromEntries(Object.entries(spec ?? {}).filter(([field]) => !MUTABLE.includes(field)));
  if (semanticEqual(fixed(set.spec), fixed(old.spec))) return [];
  return [
    fieldError.forbidden(
      'spec',
      "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    ),
  ];
}

const COUNTS = ['replicas', 'readyReplicas', 'currentReplicas', 'updatedReplicas', 'availableReplicas'] as const;

export function validateStatefulSetStatus(set: StatefulSet, old: StatefulSet): FieldError[] {
  const status = set.status ?? { replicas: 0 };
  const errors = COUNTS.flatMap((field) => validateNonNegative(status[field], `status.${field}`));
  errors.push(...validateNonNegative(status.observedGeneration, 'status.observedGeneration'));
  errors.push(...validateCollisions(status.collisionCount, old.status?.collisionCount));
  const over = (field: (typeof COUNTS)[number], limit: 'replicas' | 'readyReplicas'): void => {
    if ((status[field] ?? 0) > (status[limit] ?? 0)) {
      errors.push(fieldError.invalid(`status.${field}`, status[field], `cannot be greater than status.${limit}`));
    }
  };
  over('readyReplicas', 'replicas');
  over('currentReplicas', 'replicas');
  over('updatedReplicas', 'replicas');
  over('availableReplicas', 'replicas');
  over('availableReplicas', 'readyReplicas');
  return errors;
}
