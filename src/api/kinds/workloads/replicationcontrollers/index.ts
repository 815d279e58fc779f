/**
 * Replication controllers. Source: k8s.io/kubernetes/pkg/registry/core/replicationcontroller, pkg/apis/core/validation.
 */

import { formatLabelSelector, matchesLabels, selectorOfLabels } from '../../../../base/selector.ts';
import type { ReplicationController } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { namedWorkloadWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { validatePodTemplate } from '../../../podspec/validate.ts';
import { ageColumn, column, labelsText, nameColumn, workloadColumns } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../registry/strategies.ts';
import { validateNonNegative } from '../../../validation/scalars.ts';
import { validateReplicaCounts } from '../replicasets/index.ts';
import { validateLongRunning } from '../workload/validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<ReplicationController>({
  initialStatus: () => ({ replicas: 0 }),
  validate,
  validateUpdate: validate,
  validateStatusUpdate: (controller) => validateReplicaCounts(controller.status),
  warnings: namedWorkloadWarnings,
});

function validate(controller: ReplicationController): FieldError[] {
  const spec = controller.spec;
  const errors = [
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateNonNegative(spec?.replicas, 'spec.replicas'),
  ];
  const selector = spec?.selector ?? {};
  if (Object.keys(selector).length === 0) errors.push(fieldError.required('spec.selector'));
  if (spec?.template === undefined) return [...errors, fieldError.required('spec.template')];
  const labels = spec.template.metadata?.labels;
  if (!matchesLabels(selectorOfLabels(selector), labels)) {
    errors.push(
      fieldError.invalid(
        'spec.template.metadata.labels',
        labels ?? null,
        '`selector` does not match template `labels`',
      ),
    );
  }
  errors.push(...validatePodTemplate(spec.template, 'spec.template'));
  errors.push(...validateLongRunning(spec.template, 'ReplicationController'));
  return errors;
}

export const replicationControllers: KindDefinition<ReplicationController> = {
  group: '',
  version: 'v1',
  kind: 'ReplicationController',
  plural: 'replicationcontrollers',
  singular: 'replicationcontroller',
  listKind: 'ReplicationControllerList',
  namespaced: true,
  shortNames: ['rc'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.ReplicationController',
  skeleton: { spec: {}, status: {} },
  storagePrefix: 'controllers',
  setDefaults(controller) {
    controller.spec ??= {};
    const spec = controller.spec;
    const labels = spec.template?.metadata?.labels;
    if (labels !== undefined && Object.keys(labels).length > 0) {
      if (Object.keys(spec.selector ?? {}).length === 0) spec.selector = { ...labels };
      if (Object.keys(controller.metadata?.labels ?? {}).length === 0) metadataOf(controller).labels = { ...labels };
    }
    spec.replicas ??= 1;
    if (spec.template !== undefined) setPodTemplateDefaults(spec.template);
  },
  strategy,
  statusStrategy,
  // Old clients expect that pods of a deleted controller remain.
  defaultPropagation: 'Orphan',
  columns: [
    nameColumn,
    column<ReplicationController>('Desired', 'Number of desired pods.', (each) => each.spec?.replicas ?? 0, {
      type: 'integer',
    }),
    column<ReplicationController>('Current', 'Number of existing pods.', (each) => each.status?.replicas ?? 0, {
      type: 'integer',
    }),
    column<ReplicationController>('Ready', 'Number of ready pods.', (each) => each.status?.readyReplicas ?? 0, {
      type: 'integer',
    }),
    ageColumn,
    ...workloadColumns<ReplicationController>(
      (each) => each.spec?.template,
      (each) => labelsText(each.spec?.selector),
    ),
  ],
  fieldSelectors: { 'status.replicas': (each) => String(each.status?.replicas ?? 0) },
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    selector: (object) => formatLabelSelector(selectorOfLabels((object as ReplicationController).spec?.selector)),
  },
};
