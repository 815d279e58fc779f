/** Daemon sets. Source: k8s.io/kubernetes/pkg/registry/apps/daemonset. */
import type { DaemonSet, DaemonSetSpec } from '../../../generated/apps/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, validateImmutable } from '../../../meta/validation.ts';
import { workloadWarnings } from '../../../podspec/checks/workload-warnings.ts';
import { setPodTemplateDefaults } from '../../../podspec/defaults.ts';
import { ageColumn, column, labelsText, nameColumn, selectorText, workloadColumns } from '../../../printing/columns.ts';
import type { Column, KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS, metadataOf, specStatusStrategies } from '../../../registry/strategies.ts';
import { percentOf, validateCountOrPercent, validateNonNegative } from '../../../validation/scalars.ts';
import { validateCollisions, validateWorkloadSelector, validateWorkloadTemplate } from '../workload/validation.ts';

const { strategy, statusStrategy } = specStatusStrategies<DaemonSet>({
  initialStatus: () => ({
    currentNumberScheduled: 0,
    numberMisscheduled: 0,
    desiredNumberScheduled: 0,
    numberReady: 0,
  }),
  prepareForCreate(set) {
    writeTemplateGeneration(set, 1);
  },
  prepareForUpdate(set, old) {
    const before = templateGeneration(old);
    writeTemplateGeneration(set, semanticEqual(set.spec?.template, old.spec?.template) ? before : before + 1);
  },
  prepareForStatusUpdate(set, old) {
    writeTemplateGeneration(set, templateGeneration(old));
  },
  validate: validateDaemonSet,
  validateUpdate: (set, old) => [
    ...validateDaemonSet(set),
    ...validateImmutable(set.spec?.selector, old.spec?.selector, 'spec.selector'),
  ],
  validateStatusUpdate: validateDaemonSetStatus,
  warnings: workloadWarnings,
});

/** Annotation with the number of template changes, which the first API versions had in the field templateGeneration. */
const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

function templateGeneration(set: DaemonSet): number {
  return Number(set.metadata?.annotations?.[TEMPLATE_GENERATION] ?? '1') || 1;
}

function writeTemplateGeneration(set: DaemonSet, generation: number): void {
  const metadata = metadataOf(set);
  metadata.annotations = { ...metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
}

function validateDaemonSet(set: DaemonSet): FieldError[] {
  const spec = set.spec;
  return [
    ...validateWorkloadSelector(spec?.selector, 'daemonset'),
    ...validateWorkloadTemplate(spec?.template, spec?.selector, 'DaemonSet'),
    ...validateNonNegative(spec?.minReadySeconds, 'spec.minReadySeconds'),
    ...validateUpdateStrategy(spec?.updateStrategy),
    ...validateNonNegative(spec?.revisionHistoryLimit, 'spec.revisionHistoryLimit'),
  ];
}

function validateUpdateStrategy(given: DaemonSetSpec['updateStrategy']): FieldError[] {
  const path = 'spec.updateStrategy';
  if (given?.type === 'OnDelete') return [];
  if (given?.type !== 'RollingUpdate') return [fieldError.notSupported(path, given, ['RollingUpdate', 'OnDelete'])];
  const rolling = given.rollingUpdate;
  if (rolling === undefined) return [fieldError.required(`${path}.rollingUpdate`)];
  const at = `${path}.rollingUpdate`;
  const errors = [
    ...validateCountOrPercent(rolling.maxUnavailable, `${at}.maxUnavailable`),
    ...validateCountOrPercent(rolling.maxSurge, `${at}.maxSurge`),
  ];
  const unavailable = positive(rolling.maxUnavailable);
  const surge = positive(rolling.maxSurge);
  if (unavailable && surge) {
    errors.push(
      fieldError.invalid(`${at}.maxSurge`, rolling.maxSurge, 'may not be set when maxUnavailable is non-zero'),
    );
  } else if (!unavailable && !surge) {
    errors.push(fieldError.required(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
  for (const field of ['maxUnavailable', 'maxSurge'] as const) {
    if ((percentOf(rolling[field]) ?? 0) > 100) {
      errors.push(fieldError.invalid(`${at}.${field}`, rolling[field], 'must not be greater than 100%'));
    }
  }
  return errors;
}

function positive(value: number | string | undefined): boolean {
  return (typeof value === 'number' ? value : (percentOf(value) ?? 0)) > 0;
}

const COUNTS = [
  'currentNumberScheduled',
  'numberMisscheduled',
  'desiredNumberScheduled',
  'numberReady',
  'observedGeneration',
  'updatedNumberScheduled',
  'numberAvailable',
  'numberUnavailable',
] as const;

function validateDaemonSetStatus(set: DaemonSet, old: DaemonSet): FieldError[] {
  return [
    ...COUNTS.flatMap((field) => validateNonNegative(set.status?.[field], `status.${field}`)),
    ...validateCollisions(set.status?.collisionCount, old.status?.collisionCount),
  ];
}

function countColumn(name: string, description: string, field: (typeof COUNTS)[number]): Column<DaemonSet> {
  return column<DaemonSet>(name, description, (set) => set.status?.[field] ?? 0, { type: 'integer' });
}

export const daemonSets: KindDefinition<DaemonSet> = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  singular: 'daemonset',
  listKind: 'DaemonSetList',
  namespaced: true,
  shortNames: ['ds'],
  categories: ['all'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.apps.v1.DaemonSet',
  skeleton: {
    spec: { selector: null, template: { metadata: {}, spec: { containers: null } }, updateStrategy: {} },
    status: {},
  },
  storagePrefix: 'daemonsets',
  setDefaults(set) {
    set.spec ??= {} as DaemonSetSpec;
    const spec = set.spec;
    spec.template ??= {};
    spec.updateStrategy ??= {};
    const update = spec.updateStrategy;
    if (!isSet(update.type)) update.type = 'RollingUpdate';
    if (update.type === 'RollingUpdate') {
      update.rollingUpdate ??= {};
      update.rollingUpdate.maxUnavailable ??= 1;
      update.rollingUpdate.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
    setPodTemplateDefaults(spec.template);
    // If the client sends no template generation, the defaulted annotation belongs to the client's managed fields.
    if (set.metadata?.annotations?.[TEMPLATE_GENERATION] === undefined) writeTemplateGeneration(set, 0);
  },
  strategy,
  statusStrategy,
  columns: [
    nameColumn,
    countColumn('Desired', 'Number of nodes that should run the pod.', 'desiredNumberScheduled'),
    countColumn('Current', 'Number of nodes that should run the pod and run it.', 'currentNumberScheduled'),
    countColumn('Ready', 'Number of nodes whose pod is ready.', 'numberReady'),
    countColumn('Up-to-date', 'Number of nodes that run the updated pod.', 'updatedNumberScheduled'),
    countColumn('Available', 'Number of nodes whose pod is available.', 'numberAvailable'),
    column<DaemonSet>('Node Selector', 'Labels of the nodes that should run the pod.', (set) =>
      labelsText(set.spec?.template?.spec?.nodeSelector),
    ),
    ageColumn,
    ...workloadColumns<DaemonSet>(
      (set) => set.spec?.template,
      (set) => selectorText(set.spec?.selector),
    ),
  ],
};
