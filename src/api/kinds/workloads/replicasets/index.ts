/** Replica sets. Source: k8s.io/kubernetes/pkg/registry/apps/replicaset. */
import type { ReplicaSet, ReplicaSetSpec } from '../../../generated/apps/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { validateImmutable } from '../../../meta/validation.ts';
import { namedWorkloadWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { ageColumn, column, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';
import { validateWorkloadSelector, validateWorkloadTemplate } from '../workload/validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<ReplicaSet>({
  initialStatus: () => ({ replicas: 0 }),
  validate: validateReplicaSet,
  validateUpdate: (set, old) => [
    ...validateReplicaSet(set),
    ...validateImmutable(set.spec?.selector, old.spec?.selector, 'spec.selector'),
  ],
  validateStatusUpdate: (set) => validateReplicaCounts(set.status),
  warnings: namedWorkloadWarnings,
});

function validateReplicaSet(set: ReplicaSet): FieldError[] {
  const spec = set.spec;
  return [
    ...validateNonNegative(spec?.replicas, 'spec.replicas'),
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateWorkloadSelector(spec?.selector, 'deployment'),
    ...validateWorkloadTemplate(spec?.template, spec?.selector, 'ReplicaSet'),
  ];
}

interface ReplicaCounts {
  readonly replicas?: number;
  readonly fullyLabeledReplicas?: number;
  readonly readyReplicas?: number;
  readonly availableReplicas?: number;
  readonly observedGeneration?: number;
}

/** Validates the counters of the status. Also used for replication controllers. */
export function validateReplicaCounts(status: ReplicaCounts | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const total = status?.replicas ?? 0;
  errors.push(...validateNonNegative(status?.replicas, 'status.replicas'));
  for (const field of ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas'] as const) {
    const value = status?.[field] ?? 0;
    errors.push(...validateNonNegative(value, `status.${field}`));
    if (value > total) {
      errors.push(fieldError.invalid(`status.${field}`, value, 'cannot be greater than status.replicas'));
    }
  }
  errors.push(...validateNonNegative(status?.observedGeneration, 'status.observedGeneration'));
  if ((status?.availableReplicas ?? 0) > (status?.readyReplicas ?? 0)) {
    errors.push(
      fieldError.invalid('status.availableReplicas', status?.availableReplicas, 'cannot be greater than readyReplicas'),
    );
  }
  return errors;
}

export const replicaSets: KindDefinition<ReplicaSet> = {
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  singular: 'replicaset',
  listKind: 'ReplicaSetList',
  namespaced: true,
  shortNames: ['rs'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.apps.v1.ReplicaSet',
  skeleton: { spec: { selector: null, template: { metadata: {}, spec: { containers: null } } }, status: {} },
  storagePrefix: 'replicasets',
  setDefaults(set) {
    set.spec ??= {} as ReplicaSetSpec;
    const spec = set.spec;
    spec.template ??= {};
    spec.replicas ??= 1;
    setPodTemplateDefaults(spec.template);
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    column<ReplicaSet>('Desired', 'Number of desired pods.', (set) => set.spec?.replicas ?? 0, { type: 'integer' }),
    column<ReplicaSet>('Current', 'Number of existing pods.', (set) => set.status?.replicas ?? 0, { type: 'integer' }),
    column<ReplicaSet>('Ready', 'Number of ready pods.', (set) => set.status?.readyReplicas ?? 0, { type: 'integer' }),
    ageColumn,
    ...workloadColumns<ReplicaSet>(
      (set) => set.spec?.template,
      (set) => selectorText(set.spec?.selector),
    ),
  ],
  fieldSelectors: { 'status.replicas': (set) => String(set.status?.replicas ?? 0) },
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    selector(object) {
      const text = selectorText((object as ReplicaSet).spec?.selector);
      return text === '<none>' ? '' : text;
    },
  },
};
