/**
 * Deployments. Source: k8s.io/kubernetes/pkg/registry/apps/deployment, pkg/apis/apps/v1 defaults,
 * pkg/apis/apps/validation.
 */
import type { Deployment, DeploymentSpec } from '../../../generated/apps/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { namedWorkloadWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { ageColumn, column, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../registry/strategies.ts';
import { percentOf, validateCountOrPercent, validateNonNegative } from '../../../validation/scalars.ts';
import { validateCollisions, validateWorkloadSelector, validateWorkloadTemplate } from '../workload/validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<Deployment>({
  // Annotations are copied to replica sets, so a change of annotations increases the generation like a change of the
  // spec.
  counts: (deployment) => [deployment.spec, deployment.metadata?.annotations],
  validate: validateDeployment,
  validateUpdate: (deployment, old) => [
    ...validateDeployment(deployment),
    ...validateImmutable(deployment.spec?.selector, old.spec?.selector, 'spec.selector'),
  ],
  prepareForStatusUpdate(deployment, old) {
    const metadata = metadataOf(deployment);
    if (old.metadata?.labels === undefined) delete metadata.labels;
    else metadata.labels = old.metadata.labels;
  },
  validateStatusUpdate: validateDeploymentStatus,
  warnings: namedWorkloadWarnings,
});

function validateDeployment(deployment: Deployment): FieldError[] {
  const spec = deployment.spec;
  const errors: FieldError[] = [
    ...validateNonNegative(spec?.replicas, 'spec.replicas'),
    ...validateWorkloadSelector(spec?.selector, 'deployment'),
    ...validateWorkloadTemplate(spec?.template, spec?.selector, 'ReplicaSet'),
    ...validateStrategy(spec?.strategy),
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateNonNegative(spec?.revisionHistoryLimit, 'spec.revisionHistoryLimit'),
  ];
  const deadline = spec?.progressDeadlineSeconds;
  if (deadline !== undefined) {
    errors.push(...validateNonNegative(deadline, 'spec.progressDeadlineSeconds'));
    if (deadline <= (spec?.minReadySeconds ?? 0)) {
      errors.push(fieldError.invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds'));
    }
  }
  return errors;
}

function validateStrategy(given: DeploymentSpec['strategy']): FieldError[] {
  const path = 'spec.strategy';
  const types = ['Recreate', 'RollingUpdate'];
  const errors = types.includes(given?.type ?? '') ? [] : [fieldError.notSupported(path, given, types)];
  const rolling = given?.rollingUpdate;
  if (given?.type === 'Recreate') {
    return rolling === undefined
      ? errors
      : [
          ...errors,
          fieldError.forbidden(`${path}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'"),
        ];
  }
  if (given?.type !== 'RollingUpdate') return errors;
  if (rolling === undefined)
    return [...errors, fieldError.required(`${path}.rollingUpdate`, 'this should be defaulted and never be nil')];
  const at = `${path}.rollingUpdate`;
  errors.push(...validateCountOrPercent(rolling.maxUnavailable, `${at}.maxUnavailable`));
  errors.push(...validateCountOrPercent(rolling.maxSurge, `${at}.maxSurge`));
  if (isZero(rolling.maxUnavailable) && isZero(rolling.maxSurge)) {
    errors.push(
      fieldError.invalid(`${at}.maxUnavailable`, rolling.maxUnavailable, 'may not be 0 when `maxSurge` is 0'),
    );
  }
  if ((percentOf(rolling.maxUnavailable) ?? 0) > 100) {
    errors.push(fieldError.invalid(`${at}.maxUnavailable`, rolling.maxUnavailable, 'must not be greater than 100%'));
  }
  return errors;
}

function isZero(value: number | string | undefined): boolean {
  return value === undefined || value === 0 || percentOf(value) === 0;
}

const COUNTS = ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'] as const;

function validateDeploymentStatus(deployment: Deployment, old: Deployment): FieldError[] {
  const status = deployment.status ?? {};
  const errors = COUNTS.flatMap((field) => validateNonNegative(status[field], `status.${field}`));
  errors.push(
    ...validateNonNegative(status.observedGeneration, 'status.observedGeneration'),
    ...validateCollisions(status.collisionCount, old.status?.collisionCount),
  );
  const total = status.replicas ?? 0;
  for (const field of ['updatedReplicas', 'readyReplicas', 'availableReplicas'] as const) {
    if ((status[field] ?? 0) > total) {
      errors.push(fieldError.invalid(`status.${field}`, status[field], 'cannot be greater than status.replicas'));
    }
  }
  if ((status.availableReplicas ?? 0) > (status.readyReplicas ?? 0)) {
    errors.push(
      fieldError.invalid('status.availableReplicas', status.availableReplicas, 'cannot be greater than readyReplicas'),
    );
  }
  return errors;
}

export const deployments: KindDefinition<Deployment> = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  singular: 'deployment',
  listKind: 'DeploymentList',
  namespaced: true,
  shortNames: ['deploy'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.apps.v1.Deployment',
  skeleton: {
    spec: { selector: null, template: { metadata: {}, spec: { containers: null } }, strategy: {} },
    status: {},
  },
  storagePrefix: 'deployments',
  setDefaults(deployment) {
    deployment.spec ??= {} as DeploymentSpec;
    const spec = deployment.spec;
    spec.template ??= {};
    spec.replicas ??= 1;
    spec.strategy ??= {};
    const rollout = spec.strategy;
    if (!isSet(rollout.type)) rollout.type = 'RollingUpdate';
    if (rollout.type === 'RollingUpdate') {
      rollout.rollingUpdate ??= {};
      rollout.rollingUpdate.maxUnavailable ??= '25%';
      rollout.rollingUpdate.maxSurge ??= '25%';
    }
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    setPodTemplateDefaults(spec.template);
  },
  strategy,
  statusStrategy,
  statusResetFields: [['spec'], ['metadata', 'labels']],
  columns: [
    nameColumn,
    column<Deployment>(
      'Ready',
      'Number of ready pods out of those desired.',
      (deployment) => `${deployment.status?.readyReplicas ?? 0}/${deployment.spec?.replicas ?? 0}`,
    ),
    column<Deployment>(
      'Up-to-date',
      'Number of pods that have the desired template.',
      (deployment) => deployment.status?.updatedReplicas ?? 0,
    ),
    column<Deployment>(
      'Available',
      'Number of available pods (ready for at least minReadySeconds).',
      (deployment) => deployment.status?.availableReplicas ?? 0,
    ),
    ageColumn,
    ...workloadColumns<Deployment>(
      (deployment) => deployment.spec?.template,
      (deployment) => selectorText(deployment.spec?.selector),
    ),
  ],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    selector: (object) => scaleSelector((object as Deployment).spec?.selector),
  },
};

function scaleSelector(selector: DeploymentSpec['selector'] | undefined): string {
  const text = selectorText(selector);
  return text === '<none>' ? '' : text;
}
